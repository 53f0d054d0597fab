use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use tenure_core::machine::Sighting;
use tenure_core::record::{Nonce, Witness};
use tenure_store::BoxFuture;

use super::command::LeaseId;
use super::jobs::Jobs;
use crate::clock::Clock;
use crate::host::inotify::UNTOLD;
use crate::host::witness::{Lock, WitnessLocation};
use crate::host::workers::Workers;

/// The witnesses of those whose leases are kept, and those of others that are watched.
///
/// Workers do everything that waits for the disk; see [`Background`](super::background::Background).
pub(crate) struct Witnesses {
    location: Option<Arc<WitnessLocation>>,
    jobs: Jobs,
    events: FuturesUnordered<BoxFuture<'static, Option<WitnessEvent>>>,
    watching: HashMap<LeaseId, Watching>,
    /// Number of files that are being made: a process that ends before that would leave them behind.
    unmade: usize,
}

/// The result of a job on a witness.
#[derive(Debug)]
pub(crate) enum WitnessEvent {
    /// A witness was made for this lease, or could not be made.
    Made(LeaseId, Option<Lock>),
    /// A contender has seen what became of the witness that a record names.
    Seen { lease: LeaseId, witness: Arc<Witness>, nonce: Nonce, sighting: Sighting },
}

/// A contender waits for somebody's death.
struct Watching {
    witness: Arc<Witness>,
    /// What the latest record carries. The holder renews meanwhile.
    nonce: Arc<Mutex<Nonce>>,
    abort: AbortHandle,
}

impl Witnesses {
    pub(crate) fn new(location: Option<Arc<WitnessLocation>>, jobs: Jobs) -> Self {
        Self { location, jobs, events: FuturesUnordered::new(), watching: HashMap::new(), unmade: 0 }
    }

    /// Makes a witness for a lease; `false` where there is no place for one.
    pub(crate) fn make(&mut self, lease: LeaseId, random: u128) -> bool {
        let Some(location) = self.location.clone() else { return false };
        let creating = Arc::clone(&location);
        let made = self.jobs.run(MAKE_MAX, move || creating.create(random).ok().map(Unclaimed::new));
        self.unmade += 1;
        let workers = Arc::clone(&self.jobs.workers);
        self.events.push(Box::pin(async move {
            let made = made.await.flatten().and_then(Unclaimed::claim);
            if made.is_some() {
                workers.run_unheard(move || location.sweep());
            }
            Some(WitnessEvent::Made(lease, made))
        }));
        true
    }

    /// Lists a nonce in a witness of ours. The request that carries the nonce is sent when this has ended: a record in the
    /// store whose nonce is not listed yet would hide its holder's death. A disk that takes longer than `LIST_MAX` costs
    /// just that, and not the renewal.
    pub(crate) fn list(&self, witness: &Arc<Lock>, nonce: Nonce) -> BoxFuture<'static, ()> {
        let witness = Arc::clone(witness);
        let listed = self.jobs.run(LIST_MAX, move || witness.list(nonce));
        Box::pin(async move { drop(listed.await) })
    }

    /// Looks at the witness that a record names; `false` where there is none to be seen.
    pub(crate) fn look(&mut self, lease: LeaseId, witness: &Arc<Witness>, nonce: Nonce) -> bool {
        let Some(location) = &self.location else { return false };
        let seen = self.jobs.run(LOOK_MAX, look(location, witness, nonce));
        let witness = Arc::clone(witness);
        self.events.push(Box::pin(async move {
            let sighting = seen.await.unwrap_or_default();
            Some(WitnessEvent::Seen { lease, witness, nonce, sighting })
        }));
        true
    }

    /// Tells when the witness that this contender has seen locked is locked no more, or at least the tree's part of it.
    pub(crate) fn watch(&mut self, lease: LeaseId, witness: &Arc<Witness>, nonce: Nonce) {
        let Some(location) = self.location.clone() else { return };
        if let Some(watching) = self.watching.get(&lease)
            && watching.witness == *witness
            && !watching.abort.is_aborted()
        {
            *watching.nonce.lock().unwrap_or_else(PoisonError::into_inner) = nonce;
            return;
        }
        self.stop(lease);
        let nonce = Arc::new(Mutex::new(nonce));
        let (abort, registration) = AbortHandle::new_pair();
        let unlocked = until_unlocked(
            location,
            Arc::clone(&self.jobs.workers),
            Arc::clone(&self.jobs.clock),
            Arc::clone(witness),
            Arc::clone(&nonce),
            Until::PartFreed,
        );
        let ends = abort.clone();
        self.watching.insert(lease, Watching { witness: Arc::clone(witness), nonce, abort });
        let witness = Arc::clone(witness);
        self.events.push(Box::pin(async move {
            let seen = Abortable::new(unlocked, registration).await.ok().flatten();
            // Whoever watches next begins anew.
            ends.abort();
            let (nonce, sighting) = seen?;
            Some(WitnessEvent::Seen { lease, witness, nonce, sighting })
        }));
    }

    /// This contender waits no more.
    pub(crate) fn stop(&mut self, lease: LeaseId) {
        if let Some(watching) = self.watching.remove(&lease) {
            watching.abort.abort();
        }
    }

    /// Removes what a dead holder left behind, in a job; `None` where there is no place for witnesses.
    pub(crate) fn removal_of_dead(&self, witness: Arc<Witness>) -> Option<impl FnOnce() + Send + 'static> {
        let location = self.location.clone()?;
        Some(move || location.remove_dead(&witness))
    }

    /// Whether a file is being made.
    pub(crate) fn is_making(&self) -> bool {
        self.unmade > 0
    }

    /// The next event; `None` if none is to come.
    pub(crate) async fn next(&mut self) -> Option<WitnessEvent> {
        loop {
            if let Some(event) = self.events.next().await? {
                self.unmade -= usize::from(matches!(event, WitnessEvent::Made(..)));
                return Some(event);
            }
        }
    }
}

impl fmt::Debug for Witnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witnesses")
            .field("location", &self.location)
            .field("watching", &self.watching.len())
            .finish_non_exhaustive()
    }
}

/// A witness that is removed again if it comes too late.
struct Unclaimed(Option<Lock>);

impl Unclaimed {
    fn new(witness: Lock) -> Self {
        Self(Some(witness))
    }

    fn claim(mut self) -> Option<Lock> {
        self.0.take()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(witness) = &self.0 {
            let _ = witness.remove();
        }
    }
}

fn look(
    location: &Arc<WitnessLocation>,
    witness: &Arc<Witness>,
    nonce: Nonce,
) -> impl FnOnce() -> Sighting + Send + 'static {
    let (location, witness) = (Arc::clone(location), Arc::clone(witness));
    move || location.look(&witness, nonce)
}

/// The event that a watch of a witness waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// No part of it is locked.
    Unlocked,
    /// The same, or the tree's part is locked no more.
    PartFreed,
}

/// Looks whenever somebody who could write to the witness has closed it: its holder does so with every renewal, and for
/// the last time when it dies. Where the kernel tells nobody, for a user has only so many who are told, it looks from time
/// to time. `None` when it cannot be looked at.
pub(crate) async fn until_unlocked(
    location: Arc<WitnessLocation>,
    workers: Arc<Workers>,
    clock: Arc<dyn Clock>,
    witness: Arc<Witness>,
    nonce: Arc<Mutex<Nonce>>,
    until: Until,
) -> Option<(Nonce, Sighting)> {
    let watched = (Arc::clone(&location), Arc::clone(&witness));
    let mut changes = workers.run(move || watched.0.watch(&watched.1)).await.ok()?;
    let mut tree = false;
    loop {
        // At once also the first time: what happened before it was watched was told to nobody.
        for pause in PROBES {
            if !pause.is_zero() {
                clock.sleep_until(clock.now() + pause).await;
            }
            let nonce = *nonce.lock().unwrap_or_else(PoisonError::into_inner);
            let sighting = workers.run(look(&location, &witness, nonce)).await.ok()?;
            let tree_freed = tree && !sighting.tree_locked;
            tree = sighting.tree_locked;
            if !sighting.is_locked() || (tree_freed && until == Until::PartFreed) {
                return Some((nonce, sighting));
            }
        }
        match &mut changes {
            Some(told) => {
                if told.next().await.is_none() {
                    changes = None;
                }
            }
            None => clock.sleep_until(clock.now() + UNTOLD).await,
        }
    }
}

/// The kernel tells that a file was closed just before it gives the locks back.
const PROBES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(5), Duration::from_millis(20)];

/// Nobody waits longer for a witness than it is worth.
const MAKE_MAX: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(1);

/// A request waits for this before it is sent.
const LIST_MAX: Duration = Duration::from_millis(100);
