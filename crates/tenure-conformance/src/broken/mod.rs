//! Stores that lie, each in one way that was observed in a real system. All of them declare every guarantee.
//!
//! They exist to show that the suite, the check at connect and the simulation catch them: a check that has never failed
//! has not proved anything.

mod engine;
mod fault;
mod harness;
mod hints;
mod lie;
mod pause;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tenure::clock::ManualClock;
use tenure_store::{
    Administration, BoxStream, Guarantees, Identity, Key, Listed, Prefix, Put, Reach, Reading, Removal,
    Scratch, Store, StoreClock, StoreError, StoreFuture, Version, Write,
};

use crate::TestTime;
use engine::Engine;
pub use lie::Lie;

/// A small memory store that tells one [`Lie`], or none. A clone is another connection to the same store.
///
/// It declares every guarantee, network reach (so that the check at connect runs), ages and a watch. Tests move its
/// clock: calls take no time, and [`advance`](Self::advance) lets time pass. The store throttles writes that come
/// sooner than its declared interval.
///
/// It is its own [`Harness`](crate::Harness), with every hook. Leases on it use the same clock, so the suite must run
/// in a tokio runtime with io enabled: see [`TestTime`].
///
/// ```
/// use tenure_conformance::broken::{Broken, Lie};
/// use tenure_conformance::Suite;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let racy = Broken::lying(Lie::RacyCheckThenAct);
/// let report = Suite::new(1).racers(8).rounds(3).only_contract().run(&racy).await;
/// assert!(!report.passed());
/// assert!(report.failures().any(|finding| finding.clause == Lie::RacyCheckThenAct.caught_by()));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Broken {
    engine: Arc<Engine>,
    guarantees: Guarantees,
    /// Time of the store, and of the machines that use it.
    time: TestTime,
    /// The clock of machines whose clock has stopped.
    stopped: ManualClock,
}

impl Broken {
    /// A store that keeps every promise: the control of the experiment.
    pub fn honest() -> Self {
        Self::of(None)
    }

    /// A store that tells this lie.
    pub fn lying(lie: Lie) -> Self {
        Self::of(Some(lie))
    }

    fn of(lie: Option<Lie>) -> Self {
        let mut guarantees = Guarantees::default();
        guarantees.atomic_create = true;
        guarantees.atomic_replace = true;
        guarantees.linearizable_reads = true;
        guarantees.keeps_acknowledged = true;
        guarantees.unique_versions = true;
        guarantees.reach = Reach::Network;
        let has_clock = lie != Some(Lie::RemovesWithoutAClock);
        guarantees.clock = if has_clock { StoreClock::Ages } else { StoreClock::Nothing };
        // Its clock shows whole seconds.
        let tick = Duration::from_secs(1);
        guarantees.clock_tick = if lie == Some(Lie::TickUndeclared) { Duration::ZERO } else { tick };
        guarantees.watch = true;
        guarantees.write_interval = Duration::ZERO;
        guarantees.value_max = engine::VALUE_MAX;
        let time = TestTime::new();
        let engine = Arc::new(Engine::new(lie, time.clock().clone()));
        Self { engine, guarantees, time, stopped: ManualClock::new() }
    }

    /// The same store, declaring other guarantees.
    pub fn declaring(mut self, guarantees: Guarantees) -> Self {
        self.guarantees = guarantees;
        self
    }

    /// The same store, declaring another reach.
    pub fn reach(mut self, reach: Reach) -> Self {
        self.guarantees.reach = reach;
        self
    }

    /// The lie it tells.
    pub fn lie(&self) -> Option<Lie> {
        self.engine.lie()
    }

    /// Lets time pass on the store's clock.
    pub fn advance(&self, time: Duration) {
        self.time.clock().advance(time);
    }
}

impl Store for Broken {
    fn guarantees(&self) -> Guarantees {
        self.guarantees
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(async { Ok(self.engine.get(key)) })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(self.engine.put(key, write.value, write.expect, self.guarantees.write_interval))
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        Box::pin(stream::iter(self.engine.list(prefix).into_iter().map(Ok)))
    }

    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        Some(Box::pin(stream::iter(self.engine.listed(prefix).into_iter().map(Ok))))
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        Some(Box::pin(self.engine.watch(prefix)))
    }

    fn administration(&self) -> Option<&dyn Administration> {
        let has_clock = self.guarantees.clock >= StoreClock::Floors;
        (has_clock || self.lie() == Some(Lie::RemovesWithoutAClock)).then_some(self)
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        Some(self)
    }

    fn identity(&self) -> Identity {
        Identity::new(Version::new("impossible"))
    }
}

impl Scratch for Broken {
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()> {
        Box::pin(async {
            key.must_be_sweepable()?;
            self.engine.delete(key);
            Ok(())
        })
    }
}

impl Administration for Broken {
    fn remove<'a>(&'a self, key: &'a Key, version: &'a Version) -> StoreFuture<'a, Removal> {
        Box::pin(async { Ok(self.engine.remove(key, version).await) })
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lie() {
            None => f.write_str("an honest store"),
            Some(lie) => write!(f, "a store that {}", lie.describe()),
        }
    }
}
