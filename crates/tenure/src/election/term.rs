use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream;
use tenure_core::Token;
use tenure_core::election::HealthState;
use tenure_core::machine::Lost;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::seat::Seat;
use crate::{Error, Lease, LeaseState};

/// A term of this node as the leader. Clones are the same term; when the last one is dropped, the node resigns.
///
/// Send the [token](Self::token) with every write, and run the work under [`run`](Self::run).
#[derive(Clone)]
#[must_use = "dropping a term resigns"]
pub struct Term {
    owner: Arc<TermOwner>,
    health: Option<watch::Receiver<HealthState>>,
}

/// Resigns when dropped.
struct TermOwner {
    lease: Arc<Lease>,
    seat: Arc<Seat>,
}

impl Term {
    /// Takes the seat of this node.
    pub(super) fn begin(
        lease: Arc<Lease>,
        seat: Arc<Seat>,
        health: Option<watch::Receiver<HealthState>>,
    ) -> Self {
        seat.take(&lease);
        Self { owner: Arc::new(TermOwner { lease, seat }), health }
    }

    /// The lease that makes this node the leader.
    pub fn lease(&self) -> &Lease {
        &self.owner.lease
    }

    /// The token. Send it with every write.
    pub fn token(&self) -> Token {
        self.lease().token()
    }

    /// Time until the deadline; zero once the term is over.
    pub fn remaining(&self) -> Duration {
        self.lease().remaining()
    }

    /// `Ok` while this node leads, otherwise an error of kind [`Lost`](crate::ErrorKind::Lost). It costs one clock read
    /// and a few atomic loads.
    #[inline]
    pub fn check(&self) -> Result<(), Error> {
        self.lease().check()
    }

    /// Waits for the end of the term, and returns its cause.
    pub async fn lost(&self) -> Lost {
        self.lease().lost().await
    }

    /// A token that is cancelled when the term is over, for spawned and blocking work.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.lease().cancellation_token()
    }

    /// Runs `work` while this node leads: polls it only then, and drops it when the term is over.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.lease().run(work).await
    }

    /// The state of the term, now and at every change, until it is lost. It is at risk when a renewal failed, and when the
    /// health check is not healthy. Intermediate states may be skipped; the loss never is.
    pub fn states(&self) -> impl Stream<Item = LeaseState> + Send + use<> {
        let lease = self.lease().shared().states();
        stream::unfold((lease, self.health.clone(), None), |(mut lease, mut health, last)| async move {
            loop {
                if matches!(last, Some(LeaseState::Lost(_))) {
                    return None;
                }
                let state = lease.borrow_and_update().clone();
                let is_ill =
                    health.as_mut().is_some_and(|health| *health.borrow_and_update() != HealthState::Healthy);
                let state = match state {
                    LeaseState::Held if is_ill => LeaseState::AtRisk,
                    state => state,
                };
                if last.as_ref() != Some(&state) {
                    return Some((state.clone(), (lease, health, Some(state))));
                }
                tokio::select! {
                    biased;
                    changed = lease.changed() => changed.ok()?,
                    () = changed(&mut health) => {}
                }
            }
        })
    }

    /// Resigns, and waits until the next contender can be granted: see [`Lease::release`]. This node then lets the others
    /// try first.
    pub async fn resign(&self) -> Result<(), Error> {
        self.lease().release().await
    }

    /// Ends the belief now, whatever clones of the term exist.
    pub(super) fn end(&self) {
        self.owner.seat.leave(&self.owner.lease);
    }
}

/// Waits for a change of the health; without an end if there is no check.
async fn changed(health: &mut Option<watch::Receiver<HealthState>>) {
    let is_changed = match health {
        Some(health) => health.changed().await.is_ok(),
        None => false,
    };
    if !is_changed {
        std::future::pending().await
    }
}

impl Drop for TermOwner {
    fn drop(&mut self) {
        self.seat.leave(&self.lease);
    }
}

impl AsRef<Lease> for Term {
    fn as_ref(&self) -> &Lease {
        self.lease()
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Term").field(self.lease()).finish()
    }
}
