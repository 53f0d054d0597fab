//! A store in the memory of one process: for tests, examples and leases between tasks.
//!
//! It keeps the complete contract. On request it injects every fault of a real store ([`Faults`]), or changes entries
//! like an operator or a foreign program ([`Memory::delete`], [`Memory::restore`], [`Memory::overwrite`]). With a
//! [`ManualClock`](crate::clock::ManualClock), nothing in it depends on real time.

mod admin;
mod builder;
mod calls;
mod faults;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tenure_store::{
    Administration, Applied, BoxStream, Conflict, Entry, Expect, Guarantees, Identity, Key, Listed, Prefix,
    Put, Reading, Reason, Removal, Scratch, Store, StoreClock, StoreError, StoreFuture, StoreTime, Version,
    Write,
};

pub use builder::MemoryBuilder;
pub use calls::Calls;
pub use faults::{Faults, GetFault, PutFault};
pub use snapshot::Snapshot;

use crate::clock::{Clock, Instant};
use state::MemoryState;

/// A store in the memory of this process. Clones are the same store.
///
/// ```
/// use tenure::store::Memory;
/// use tenure_store::{Expect, Key, Put, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let memory = Memory::new();
/// let key = Key::parse("billing/nightly")?;
///
/// // Only one of two creates is applied.
/// let Put::Applied(first) = memory.put(&key, "one".into(), Expect::Absent).await? else { panic!() };
/// assert!(matches!(memory.put(&key, "two".into(), Expect::Absent).await?, Put::Conflict(_)));
///
/// // And only one of two replaces of the same version.
/// let seen = Expect::Version(first.version);
/// assert!(matches!(memory.put(&key, "three".into(), seen.clone()).await?, Put::Applied(_)));
/// assert!(matches!(memory.put(&key, "four".into(), seen).await?, Put::Conflict(_)));
/// assert_eq!(memory.get(&key).await?.entry.unwrap().value, "three");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Memory {
    shared: Arc<MemoryInner>,
}

struct MemoryInner {
    name: String,
    clock: Arc<dyn Clock>,
    guarantees: Guarantees,
    /// The latest reported time, in microseconds. A wall clock may be set back, and the time of a store that forgets
    /// entries must not go back with it.
    latest_time: AtomicU64,
    state: Mutex<MemoryState>,
}

/// The call that an answer with a time belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeOf {
    Read,
    Write,
}

impl Memory {
    /// Maximum size of a value, in bytes, unless the builder declares another.
    pub const VALUE_MAX: usize = 1 << 20;

    /// An empty store on the real clock.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Starts to build a store with settings other than the defaults.
    pub fn builder() -> MemoryBuilder {
        MemoryBuilder::new()
    }

    /// Number of calls so far.
    pub fn calls(&self) -> Calls {
        self.lock().calls
    }

    /// A handle that injects faults into calls.
    pub fn faults(&self) -> Faults {
        Faults::new(self.clone())
    }

    fn with(name: String, clock: Arc<dyn Clock>, guarantees: Guarantees) -> Self {
        let (latest_time, state) = (AtomicU64::new(0), Mutex::new(MemoryState::new()));
        Self { shared: Arc::new(MemoryInner { name, clock, guarantees, latest_time, state }) }
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        // Every change is complete before the lock is released, so a panic elsewhere leaves no partial change.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// The time in an answer. Each write raises it, unless the clock is declared to have a tick.
    fn time(&self, of: TimeOf) -> Option<StoreTime> {
        let guarantees = &self.shared.guarantees;
        let has_clock = guarantees.clock >= StoreClock::Floors;
        has_clock.then(|| {
            let wall = self.shared.clock.wall().as_millis().saturating_mul(1_000);
            let tick = u64::try_from(guarantees.clock_tick.as_micros()).unwrap_or(u64::MAX);
            let shown = wall - wall.checked_rem(tick).unwrap_or(0);
            let least = u64::from(of == TimeOf::Write && tick == 0);
            let raised = |latest: u64| Some(shown.max(latest.saturating_add(least)));
            let latest = &self.shared.latest_time;
            let before = latest.fetch_update(Ordering::SeqCst, Ordering::SeqCst, raised);
            StoreTime::from_micros(before.ok().and_then(raised).unwrap_or(shown))
        })
    }

    /// Performs a read that has reached the store.
    fn read(&self, key: &Key) -> Reading {
        let tells_ages = self.shared.guarantees.clock >= StoreClock::Ages;
        // Clock and entries are read under one lock: no entry is newer than the time that its age is measured at.
        let state = self.lock();
        let now = self.now();
        let entry = state.get(key).map(|stored| {
            let age = tells_ages.then(|| now.since(stored.written));
            Entry::new(stored.value.clone(), stored.version.clone()).with_age(age)
        });
        Reading::new(entry).with_time(self.time(TimeOf::Read))
    }

    /// Performs a conditional write that has reached the store.
    fn apply(&self, key: &Key, value: Bytes, expect: &Expect) -> Put {
        let (version, time, hints) = {
            let mut state = self.lock();
            if !state.is(key, expect) {
                return Put::Conflict(Conflict);
            }
            let (version, hints) = state.write(key, value, self.now());
            (version, self.time(TimeOf::Write), hints)
        };
        hints.send();
        Put::Applied(Applied::new(version).with_time(time))
    }

    async fn pause(&self, span: Duration) {
        self.shared.clock.sleep_until(self.now() + span).await;
    }

    async fn faulty_get(&self, key: &Key, fault: GetFault) -> Result<Reading, StoreError> {
        match fault {
            GetFault::Fail => Err(StoreError::unknown("the read failed deliberately")),
            GetFault::Refuse(reason) => Err(StoreError::refused(reason, ON_PURPOSE)),
            GetFault::Throttle(after) => Err(StoreError::throttled(after)),
            GetFault::SlowAnswer(span) => {
                let reading = self.read(key);
                self.pause(span).await;
                Ok(reading)
            }
            GetFault::Hang => std::future::pending().await,
        }
    }

    async fn faulty_put(
        &self,
        key: &Key,
        value: Bytes,
        expect: Expect,
        fault: PutFault,
    ) -> Result<Put, StoreError> {
        match fault {
            PutFault::LoseRequest => Err(StoreError::unknown("the request was lost deliberately")),
            PutFault::LoseAnswer => {
                let _lost = self.apply(key, value, &expect);
                Err(StoreError::unknown("the answer was lost deliberately"))
            }
            PutFault::Late => {
                self.lock().plan.hold_back(key, value, expect);
                Err(StoreError::unknown("the request was held back deliberately"))
            }
            PutFault::Twice => {
                let _unseen = self.apply(key, value.clone(), &expect);
                Ok(self.apply(key, value, &expect))
            }
            PutFault::Refuse(reason) => Err(StoreError::refused(reason, ON_PURPOSE)),
            PutFault::Throttle(after) => Err(StoreError::throttled(after)),
            PutFault::ThrottleAfterApplying(after) => {
                let _lost = self.apply(key, value, &expect);
                Err(StoreError::throttled(after))
            }
            PutFault::ThrottleLate(after) => {
                self.lock().plan.hold_back(key, value, expect);
                Err(StoreError::throttled(after))
            }
            PutFault::SlowAnswer(span) => {
                let answer = self.apply(key, value, &expect);
                self.pause(span).await;
                Ok(answer)
            }
            PutFault::Hang => std::future::pending().await,
            PutFault::HangAfterApplying => {
                let _lost = self.apply(key, value, &expect);
                std::future::pending().await
            }
        }
    }
}

const ON_PURPOSE: &str = "the call was refused deliberately";

impl Store for Memory {
    fn guarantees(&self) -> Guarantees {
        self.shared.guarantees
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(async move {
            let fault = {
                let mut state = self.lock();
                state.calls.gets += 1;
                state.plan.take_get()
            };
            match fault {
                None => Ok(self.read(key)),
                Some(fault) => self.faulty_get(key, fault).await,
            }
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(async move {
            let Write { value, expect, .. } = write;
            let max = self.shared.guarantees.value_max;
            let fault = {
                let mut state = self.lock();
                state.calls.puts += 1;
                // A value that is too large is not sent, so no fault applies to it.
                if value.len() > max {
                    let message = format!("{self} takes values of at most {max} bytes, not {}", value.len());
                    return Err(StoreError::refused(Reason::Invalid, message));
                }
                state.plan.take_put()
            };
            match fault {
                None => Ok(self.apply(key, value, &expect)),
                Some(fault) => self.faulty_put(key, value, expect, fault).await,
            }
        })
    }

    /// The keys at the time of the first poll, in order.
    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        let keys = stream::once(async move {
            let mut state = self.lock();
            state.calls.lists += 1;
            stream::iter(state.keys(prefix)).map(Ok)
        });
        keys.flatten().boxed()
    }

    /// The entries at the time of the first poll, in order.
    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        let entries = stream::once(async move {
            let mut state = self.lock();
            state.calls.lists += 1;
            stream::iter(state.listed(prefix)).map(Ok)
        });
        Some(entries.flatten().boxed())
    }

    /// Hints are merged: any number of changes since the last poll are one hint. The stream ends when the store is
    /// gone.
    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        if !self.shared.guarantees.watch {
            return None;
        }
        let changes = self.lock().watch(prefix);
        let hints = stream::unfold(changes, async |mut changes| {
            changes.changed().await.ok()?;
            Some(((), changes))
        });
        Some(hints.boxed())
    }

    /// Only if its clock is declared to give floors.
    fn administration(&self) -> Option<&dyn Administration> {
        (self.shared.guarantees.clock >= StoreClock::Floors).then_some(self)
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        Some(self)
    }

    fn identity(&self) -> Identity {
        Identity::new(Version::new(MemoryState::IMPOSSIBLE_VERSION.to_string()))
    }
}

impl Scratch for Memory {
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            key.must_be_sweepable()?;
            self.delete(key);
            Ok(())
        })
    }
}

impl Administration for Memory {
    fn remove<'a>(&'a self, key: &'a Key, version: &'a Version) -> StoreFuture<'a, Removal> {
        Box::pin(async move {
            let hints = {
                let mut state = self.lock();
                if !state.is(key, &Expect::Version(version.clone())) {
                    return Ok(Removal::Conflict(Conflict));
                }
                state.delete(key).1
            };
            hints.send();
            Ok(Removal::Removed)
        })
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory:{}", self.shared.name)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.lock().len();
        f.debug_struct("Memory").field("name", &self.shared.name).field("keys", &keys).finish_non_exhaustive()
    }
}
