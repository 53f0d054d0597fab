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

/// Witnesses of the keeper's own leases, and the witnesses of holders that its contenders watch.
///
/// Workers do everything that waits for the disk; see [`Background`](super::background::Background).
pub(crate) struct Witnesses {
    location: Option<Arc<WitnessLocation>>,
    jobs: Jobs,
    events: FuturesUnordered<BoxFuture<'static, Option<WitnessEvent>>>,
    watching: HashMap<LeaseId, Watching>,
    /// Number of files that are being created. A process that exits before that would leave them behind.
    unmade: usize,
}

/// The result of a job on a witness.
#[derive(Debug)]
pub(crate) enum WitnessEvent {
    /// The witness of a lease was created, or could not be.
    Made(LeaseId, Option<Lock>),
    /// Sighting of the witness that a record names.
    Seen { lease: LeaseId, witness: Arc<Witness>, nonce: Nonce, sighting: Sighting },
}

/// A contender that waits for the death of a holder.
struct Watching {
    witness: Arc<Witness>,
    /// Nonce of the latest record: the holder may renew during the watch.
    nonce: Arc<Mutex<Nonce>>,
    abort: AbortHandle,
}

impl Witnesses {
    pub(crate) fn new(location: Option<Arc<WitnessLocation>>, jobs: Jobs) -> Self {
        Self { location, jobs, events: FuturesUnordered::new(), watching: HashMap::new(), unmade: 0 }
    }

    /// Creates a witness for a lease; `false` if there is no directory for one.
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

    /// Lists a nonce in the keeper's own witness. The request with the nonce is sent after this: a record whose nonce
    /// is not listed hides its holder's death. A disk that takes longer than `LIST_MAX` costs the listing, not the
    /// renewal.
    pub(crate) fn list(&self, witness: &Arc<Lock>, nonce: Nonce) -> BoxFuture<'static, ()> {
        let witness = Arc::clone(witness);
        let listed = self.jobs.run(LIST_MAX, move || witness.list(nonce));
        Box::pin(async move { drop(listed.await) })
    }

    /// Inspects the witness that a record names; `false` if there is no directory for one.
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

    /// Reports when a witness that the contender saw locked is unlocked, or at least the tree's part of it.
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
            // The next watch starts anew.
            ends.abort();
            let (nonce, sighting) = seen?;
            Some(WitnessEvent::Seen { lease, witness, nonce, sighting })
        }));
    }

    /// Stops the watch of this contender.
    pub(crate) fn stop(&mut self, lease: LeaseId) {
        if let Some(watching) = self.watching.remove(&lease) {
            watching.abort.abort();
        }
    }

    /// Job that removes the witness of a dead holder; `None` if there is no directory for witnesses.
    pub(crate) fn removal_of_dead(&self, witness: Arc<Witness>) -> Option<impl FnOnce() + Send + 'static> {
        let location = self.location.clone()?;
        Some(move || location.remove_dead(&witness))
    }

    /// True if a file is being created.
    pub(crate) fn is_making(&self) -> bool {
        self.unmade > 0
    }

    /// The next event; `None` if none is pending.
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

/// A new witness, removed on drop unless claimed: it may come too late.
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

/// Event that ends a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// No part of it is locked.
    Unlocked,
    /// No part of it is locked, or the tree's part was unlocked during the watch.
    PartFreed,
}

/// Checks the witness whenever a process that could write it closes it: its holder does so at every renewal, and for
/// the last time when it dies. Polls when the inotify limit is reached. `None` if the witness cannot be inspected.
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
        // Also at the start: changes before the watch gave no event.
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

/// Delays of repeated checks: the kernel reports the close of a file just before it releases the locks.
const PROBES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(5), Duration::from_millis(20)];

/// Longest times that a lease waits for a witness.
const MAKE_MAX: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(1);

/// A request waits for this before it is sent.
const LIST_MAX: Duration = Duration::from_millis(100);
