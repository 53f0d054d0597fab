use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, Either, select};
use futures_util::stream::FuturesUnordered;
use tenure_core::machine::Sighting;
use tenure_core::record::{Nonce, Witness};
use tenure_store::BoxFuture;

use super::command::LeaseId;
use super::jobs::Jobs;
use super::spare_witness::SpareWitness;
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
    spare: SpareWitness,
}

/// The result of a job on a witness.
#[derive(Debug)]
pub(crate) enum WitnessEvent {
    /// The witness of a lease was created, or could not be.
    Made(LeaseId, Option<Lock>),
    /// The spare witness was created, or could not be.
    SpareMade(Option<Lock>),
    /// Sighting of the witness that a record names.
    Seen { lease: LeaseId, witness: Arc<Witness>, nonce: Nonce, sighting: Sighting },
}

/// The witness of a new lease.
#[derive(Debug)]
pub(crate) enum NewWitness {
    /// It is ready.
    Ready(Lock),
    /// It is being created; [`WitnessEvent::Made`] follows.
    Pending,
    /// There is no directory for witnesses.
    None,
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
        Self {
            location,
            jobs,
            events: FuturesUnordered::new(),
            watching: HashMap::new(),
            unmade: 0,
            spare: SpareWitness::default(),
        }
    }

    /// The witness of a new lease: the spare one, or a new one.
    pub(crate) fn provide(&mut self, lease: LeaseId, random: u128) -> NewWitness {
        let Some(location) = self.location.clone() else { return NewWitness::None };
        if let Some(spare) = self.spare.take() {
            return NewWitness::Ready(spare);
        }
        self.make(location, random, move |made| WitnessEvent::Made(lease, made));
        NewWitness::Pending
    }

    /// Creates a spare witness after a grant, if this coordinator acquires leases again and again.
    pub(crate) fn refill(&mut self, random: u128) {
        if let Some(location) = self.location.clone()
            && self.spare.begin()
        {
            self.make(location, random, WitnessEvent::SpareMade);
        }
    }

    /// Keeps the spare witness. Returns it if it is not needed any more: the caller removes its file.
    pub(crate) fn spare_made(&mut self, made: Option<Lock>) -> Option<Lock> {
        self.spare.made(made)
    }

    /// Keeps no spare witness from now on. Returns the present one: the caller removes its file.
    pub(crate) fn retire_spare(&mut self) -> Option<Lock> {
        self.spare.retire()
    }

    fn make(
        &mut self,
        location: Arc<WitnessLocation>,
        random: u128,
        event: impl FnOnce(Option<Lock>) -> WitnessEvent + Send + 'static,
    ) {
        let creating = Arc::clone(&location);
        let made = self.jobs.run(MAKE_MAX, move || creating.create(random).ok().map(Unclaimed::new));
        self.unmade += 1;
        let workers = Arc::clone(&self.jobs.workers);
        self.events.push(Box::pin(async move {
            let made = made.await.flatten().and_then(Unclaimed::claim);
            if made.is_some() {
                workers.run_unheard(move || location.sweep());
            }
            Some(event(made))
        }));
    }

    /// Lists a nonce in the keeper's own witness. The request with the nonce is sent after this: a record whose nonce
    /// is not listed hides its holder's death. A disk that takes longer than `LIST_MAX` costs the listing, not the
    /// renewal. A file in memory waits for no disk, and needs no other thread.
    pub(crate) fn list(&self, witness: &Arc<Lock>, nonce: Nonce) -> BoxFuture<'static, ()> {
        let (witness, jobs) = (Arc::clone(witness), self.jobs.clone());
        // The listing and its limit start at the first poll: the request may have waited for its place before.
        Box::pin(async move {
            if witness.is_in_memory() {
                // A contender that does not find the nonce waits for the ttl.
                let _ = witness.list(nonce);
            } else {
                drop(jobs.run(LIST_MAX, move || witness.list(nonce)).await);
            }
        })
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
                let made = matches!(event, WitnessEvent::Made(..) | WitnessEvent::SpareMade(_));
                self.unmade -= usize::from(made);
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
    let mut probes = PROBES.iter();
    loop {
        // Also at the start: changes before the watch gave no event.
        let latest = *nonce.lock().unwrap_or_else(PoisonError::into_inner);
        let sighting = workers.run(look(&location, &witness, latest)).await.ok()?;
        let tree_freed = tree && !sighting.tree_locked;
        tree = sighting.tree_locked;
        if !sighting.is_locked() || (tree_freed && until == Until::PartFreed) {
            return Some((latest, sighting));
        }
        let pause = probes.next().copied().or(changes.is_none().then_some(UNTOLD));
        let paused = pause.map(|pause| clock.sleep_until(clock.now() + pause));
        let told = match (&mut changes, paused) {
            (Some(told), None) => Some(told.next().await),
            (Some(told), Some(paused)) => match select(pin!(told.next()), paused).await {
                Either::Left((told, _)) => Some(told),
                Either::Right(_) => None,
            },
            (None, paused) => {
                if let Some(paused) = paused {
                    paused.await;
                }
                None
            }
        };
        if let Some(told) = told {
            probes = PROBES.iter();
            changes = changes.filter(|_| told.is_some());
        }
    }
}

/// Delays of repeated checks: the kernel reports the close of a file just before it releases the locks. On a busy machine
/// the process that dies may have to wait in between, and no other report follows.
const PROBES: [Duration; 6] = [
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
];

/// Longest times that a lease waits for a witness.
const MAKE_MAX: Duration = Duration::from_secs(1);
const LOOK_MAX: Duration = Duration::from_secs(1);

/// A request waits for this before it is sent.
const LIST_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    use super::*;
    use crate::clock::BootClock;
    use crate::host::witness::WitnessPart;
    use crate::store::File;

    async fn pause(span: Duration) {
        BootClock.sleep_until(BootClock.now() + span).await;
    }

    /// A process that dies on a busy machine may have to wait between the report of its close and the release of its lock.
    #[tokio::test]
    async fn a_lock_that_is_released_some_time_after_the_last_report_is_noticed() {
        let path = std::env::temp_dir().join(format!("tenure-late-release-{}", std::process::id()));
        let location = WitnessLocation::of_store(&File::open(&path).unwrap()).unwrap();
        let lock = location.create(7).unwrap();
        let (witness, shared) = (Arc::clone(lock.named()), lock.share(WitnessPart::Guards).unwrap());
        let (workers, clock) = (Arc::new(Workers::new()), Arc::new(BootClock::new()));
        let nonce = Arc::new(Mutex::new(Nonce::from_bits(7)));
        let unlocked = until_unlocked(Arc::new(location), workers, clock, witness, nonce, Until::Unlocked);
        let late_release = async {
            pause(Duration::from_millis(300)).await;
            // The last report.
            drop(lock);
            pause(Duration::from_millis(200)).await;
            let everything = libc::flock {
                l_type: libc::F_UNLCK as libc::c_short,
                l_whence: libc::SEEK_SET as libc::c_short,
                l_start: 0,
                l_len: 0,
                l_pid: 0,
            };
            fcntl(&shared, FcntlArg::F_OFD_SETLK(&everything)).unwrap();
            pause(Duration::from_secs(30)).await;
        };
        let noticed = match select(pin!(unlocked), pin!(late_release)).await {
            Either::Left((seen, _)) => seen,
            Either::Right(_) => None,
        };
        std::fs::remove_dir_all(&path).unwrap();
        let (_, sighting) = noticed.expect("it is noticed");
        assert!(sighting.same_file && !sighting.is_locked(), "{sighting:?}");
    }
}
