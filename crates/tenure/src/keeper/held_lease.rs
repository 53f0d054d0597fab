//! State that a lease and its keeper share.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tenure_core::machine::Lost;
use tenure_core::{Holder, Token};
use tenure_fence::FencingToken;
use tenure_store::Key;
use tokio::sync::{mpsc, watch};

use super::atomic::{AtomicU64, Belief, CancellationToken, Mutex, OnceLock, Ordering, Works};
use super::belief_mirror::BeliefMirror;
use super::lease_state::{LeaseState, Renewal};
use crate::clock::{Clock, Instant};
use crate::host::fork::ForkGuard;
use crate::host::simulation::{Duty, does};
use crate::host::witness;
use crate::{Error, ErrorKind};

/// State that a lease and its keeper share.
#[derive(Debug)]
pub(crate) struct HeldLease {
    pub(crate) key: Key,
    pub(crate) holder: Arc<Holder>,
    pub(crate) token: Token,
    pub(crate) fencing_token: FencingToken,
    pub(crate) store: Arc<str>,
    clock: Arc<dyn Clock>,
    fork_guard: ForkGuard,
    belief: Belief,
    /// Copy of the belief, if the lease is a term of an election. Behind a lock, so that a thread that ends the belief and
    /// finds no mirror comes before the thread that sets it, which then copies the end.
    mirror: Mutex<Option<Arc<BeliefMirror>>>,
    lost: OnceLock<Lost>,
    cancelled: CancellationToken,
    state: watch::Sender<LeaseState>,
    renewals: Mutex<Vec<mpsc::UnboundedSender<Renewal>>>,
    renewed: AtomicU64,
    works: Works,
    last_error: Mutex<Option<Arc<str>>>,
    /// Locked as long as work can run under the lease, which may be longer than the keeper keeps the lease.
    witness: Option<Arc<witness::Lock>>,
}

/// Facts of a grant.
pub(crate) struct Granted {
    pub(crate) key: Key,
    pub(crate) holder: Arc<Holder>,
    pub(crate) token: Token,
    pub(crate) store: Arc<str>,
    pub(crate) deadline: Instant,
    pub(crate) witness: Option<Arc<witness::Lock>>,
}

impl HeldLease {
    pub(crate) fn new(granted: Granted, clock: Arc<dyn Clock>, fork_guard: ForkGuard) -> Self {
        let fencing_token =
            FencingToken::new(granted.key.clone(), granted.token).expect("a granted token is not zero");
        Self {
            key: granted.key,
            fencing_token,
            holder: granted.holder,
            token: granted.token,
            store: granted.store,
            clock,
            fork_guard,
            belief: Belief::until(granted.deadline),
            mirror: Mutex::default(),
            lost: OnceLock::new(),
            cancelled: CancellationToken::new(),
            state: watch::Sender::new(LeaseState::Held),
            renewals: Mutex::default(),
            renewed: AtomicU64::new(0),
            works: Works::default(),
            last_error: Mutex::default(),
            witness: granted.witness.filter(|_| does(Duty::LockWitnessUnderWork)),
        }
    }

    // ── for the holder ───────────────────────────────────────────────────────────────────────────────────────────

    /// Costs one load, one clock read and another load.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.left().is_some()
    }

    /// Time until the deadline; `None` once the lease is lost.
    #[inline]
    pub(crate) fn left(&self) -> Option<Duration> {
        let left = self.belief.left(|| self.clock.now()).filter(|_| self.fork_guard.is_present());
        if left.is_none() {
            self.latch(Lost::Expired);
        }
        left
    }

    /// Cause of the loss; `None` while the lease is held.
    pub(crate) fn loss(&self) -> Option<Lost> {
        if self.is_held() {
            return None;
        }
        if !self.fork_guard.is_present() {
            return Some(Lost::Forked);
        }
        self.lost.get().cloned()
    }

    /// Waits for the loss, and returns its cause.
    pub(crate) async fn lost(&self) -> Lost {
        if self.is_held() {
            self.cancelled.cancelled().await;
        }
        self.loss().unwrap_or(Lost::Expired)
    }

    pub(crate) fn lost_error(&self) -> Error {
        let why = self.loss().unwrap_or(Lost::Expired);
        Error::new(
            ErrorKind::Lost,
            format!(
                "{} of {} (token {}) on {} is lost, stop acting: {why}",
                self.key.titled(),
                self.holder,
                self.token,
                self.store
            ),
        )
    }

    /// The deadline of the belief; `None` once it is latched. It changes nothing, not even a belief that has run out.
    #[cfg(feature = "simulation")]
    pub(crate) fn belief_deadline(&self) -> Option<Instant> {
        self.belief.deadline()
    }

    pub(crate) fn witness(&self) -> Option<&Arc<witness::Lock>> {
        self.witness.as_ref()
    }

    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancelled
    }

    pub(crate) fn states(&self) -> watch::Receiver<LeaseState> {
        self.state.subscribe()
    }

    pub(crate) fn renewals(&self) -> mpsc::UnboundedReceiver<Renewal> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut listeners = self.renewals.lock().unwrap_or_else(PoisonError::into_inner);
        // `latch` sets the cause before it clears this list: a listener that comes later receives nothing, and its
        // stream ends at once.
        if self.lost.get().is_none() {
            listeners.push(sender);
        }
        receiver
    }

    // ── work under the lease ─────────────────────────────────────────────────────────────────────────────────────

    /// Counts work in. The caller checks the belief *after* this, and counts the work out again if the lease is lost.
    pub(crate) fn begin_work(&self) {
        if does(Duty::CountWork) {
            self.works.begin();
        }
    }

    /// Counts work out. True if the keeper may be waiting for it.
    pub(crate) fn end_work(&self) -> bool {
        does(Duty::CountWork) && self.works.end(&self.belief) && does(Duty::TellDrained)
    }

    /// True if no work runs. The keeper asks after [`latch`](Self::latch).
    pub(crate) fn is_drained(&self) -> bool {
        self.works.is_drained()
    }

    // ── for the keeper ───────────────────────────────────────────────────────────────────────────────────────────

    /// Extends the belief; `false` if the lease is lost.
    pub(crate) fn extend(&self, deadline: Instant) -> bool {
        if !self.belief.extend(self.clock.now(), deadline) {
            return false;
        }
        self.copy_to_mirror();
        let count = self.renewed.fetch_add(1, Ordering::Relaxed) + 1;
        self.set_state(LeaseState::Held);
        let renewal = Renewal { deadline, count };
        let mut listeners = self.renewals.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.send(renewal).is_ok());
        true
    }

    /// Records the error of a failed call.
    pub(crate) fn set_last_error(&self, error: Arc<str>) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(crate) fn last_error(&self) -> Option<Arc<str>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn at_risk(&self) {
        self.set_state(LeaseState::AtRisk);
    }

    /// Ends the belief for good, and sets the cause unless one is set.
    ///
    /// The belief has ended when this returns, also if another thread began to latch and was preempted.
    #[cold]
    pub(crate) fn latch(&self, why: Lost) {
        if !self.fork_guard.is_present() {
            return;
        }
        let why = self.lost.get_or_init(|| why);
        self.belief.latch();
        self.copy_to_mirror();
        self.set_state(LeaseState::Lost(why.clone()));
        self.cancelled.cancel();
        self.renewals.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps a copy of the belief in this mirror from now on. Only the first mirror counts.
    pub(crate) fn mirror_in(&self, mirror: &Arc<BeliefMirror>) {
        let mut first = self.mirror.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| Arc::clone(mirror));
        drop(first);
        self.copy_to_mirror();
    }

    fn copy_to_mirror(&self) {
        let mirror = self.mirror.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(mirror) = mirror {
            mirror.copy(self.token, &self.belief);
        }
    }

    fn set_state(&self, state: LeaseState) {
        self.state.send_if_modified(|now| {
            let changes = !matches!(now, LeaseState::Lost(_)) && *now != state;
            if changes {
                *now = state;
            }
            changes
        });
    }
}
