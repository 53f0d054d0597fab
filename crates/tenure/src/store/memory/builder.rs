use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Guarantees, Reach, StoreClock};

use super::Memory;
use crate::clock::{BootClock, Clock};

/// Builds a [`Memory`] with settings other than the defaults.
///
/// ```
/// # use std::sync::Arc;
/// # use tenure::{clock::ManualClock, store::Memory};
/// # use tenure_store::StoreClock;
/// let clock = ManualClock::new();
/// let memory = Memory::builder()
///     .name("orders")
///     .clock(Arc::new(clock.clone()))
///     .store_clock(StoreClock::Floors)
///     .build();
/// assert_eq!(memory.to_string(), "memory:orders");
/// ```
#[derive(Clone, Debug)]
pub struct MemoryBuilder {
    name: String,
    clock: Arc<dyn Clock>,
    guarantees: Guarantees,
}

impl MemoryBuilder {
    pub(super) fn new() -> Self {
        let mut guarantees = Guarantees::default();
        guarantees.atomic_create = true;
        guarantees.atomic_replace = true;
        guarantees.linearizable_reads = true;
        guarantees.keeps_acknowledged = true;
        guarantees.unique_versions = true;
        guarantees.reach = Reach::Process;
        guarantees.clock = StoreClock::Ages;
        guarantees.clock_tick = Duration::ZERO;
        guarantees.watch = true;
        guarantees.write_interval = Duration::ZERO;
        guarantees.value_max = Memory::VALUE_MAX;
        Self { name: String::new(), clock: Arc::new(BootClock::new()), guarantees }
    }

    /// Sets the name in messages: `memory:name`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the store's own clock, for ages, the store's time and slow answers.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the declared use of the store's clock. The answers match it: without a clock they carry neither time nor
    /// age, with a clock for floors they carry only the time.
    pub fn store_clock(mut self, good_for: StoreClock) -> Self {
        self.guarantees.clock = good_for;
        self
    }

    /// Sets the declared reach. The store is still memory: this is for tests of networked stores.
    pub fn reach(mut self, reach: Reach) -> Self {
        self.guarantees.reach = reach;
        self
    }

    /// Changes any other declaration. Only clock, tick, watch and the maximum size of a value affect the behaviour of the
    /// store. Tests use a store that declares too little to verify that it is refused.
    pub fn declare(mut self, change: impl FnOnce(&mut Guarantees)) -> Self {
        change(&mut self.guarantees);
        self
    }

    /// Creates the store, empty.
    pub fn build(self) -> Memory {
        Memory::with(self.name, self.clock, self.guarantees)
    }
}
