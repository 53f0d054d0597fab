use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Guarantees, Reach, StoreClock};

use super::Memory;
use crate::clock::{BootClock, Clock};

/// Builds a [`Memory`] that differs from the ordinary one.
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
        guarantees.watch = true;
        guarantees.write_interval = Duration::ZERO;
        guarantees.value_max = Memory::VALUE_MAX;
        Self { name: String::new(), clock: Arc::new(BootClock::new()), guarantees }
    }

    /// What people see: `memory:name`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The store's own clock: ages, the store's time and slow answers go by it.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What the store's clock is declared good for. The answers are made to match: without a clock they carry
    /// neither time nor age, with one for floors they carry the time alone.
    pub fn store_clock(mut self, good_for: StoreClock) -> Self {
        self.guarantees.clock = good_for;
        self
    }

    /// How far the store is declared to reach. It is still memory: this is for tests of what happens on the network.
    pub fn reach(mut self, reach: Reach) -> Self {
        self.guarantees.reach = reach;
        self
    }

    /// Declares anything else. Only clock, watch and the largest value have an effect on what the store does; one
    /// that declares too little is for tests that it is refused.
    pub fn declare(mut self, change: impl FnOnce(&mut Guarantees)) -> Self {
        change(&mut self.guarantees);
        self
    }

    /// The store, empty.
    pub fn build(self) -> Memory {
        Memory::with(self.name, self.clock, self.guarantees)
    }
}
