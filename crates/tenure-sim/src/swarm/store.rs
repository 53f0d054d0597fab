use tenure_store::StoreClock;

use crate::rng::Rng;
use crate::time::SECOND;

/// Kind of store.
#[derive(Clone, Debug)]
pub(crate) struct StoreKind {
    pub(crate) clock: StoreClock,
    pub(crate) versions: Versions,
    /// Initial time on its wall clock, in microseconds since 1970. Some were never set.
    pub(crate) epoch: u64,
    /// Tick of that clock, in nanoseconds; zero if it shows every microsecond.
    pub(crate) tick: u64,
    /// Rate of the clock that measures ages: a million is exact.
    pub(crate) rate: u64,
    /// Writes for which a process gets a hint, per thousand.
    pub(crate) hints: u32,
}

/// Method by which a store makes its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// A counter that never goes back.
    Counter,
    /// A hash of the content: equal records have equal versions.
    ContentHash,
    /// A counter of the key, which restarts when the key is created again, and goes back with a restored record.
    PerKey,
}

impl StoreKind {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self {
            clock: rng.pick(&[StoreClock::Nothing, StoreClock::Floors, StoreClock::Floors, StoreClock::Ages]),
            epoch: if rng.chance(30) { rng.pick(&[0, YEAR_9999]) } else { YEAR_2026 },
            tick: rng.aside().pick(&[0, SECOND]),
            versions: rng.pick(&[Versions::Counter, Versions::ContentHash, Versions::PerKey]),
            rate: rng.pick(&[950_000, 1_000_000, 1_050_000]),
            hints: rng.pick(&[0, 0, 0, 0, 300]),
        }
    }

    /// Gives it a clock that was set, unless it has one.
    pub(crate) fn gets_floors(&mut self) {
        self.clock = self.clock.max(StoreClock::Floors);
        self.epoch = YEAR_2026;
    }

    /// True if its clock gives a floor for tokens.
    pub(crate) fn has_floors(&self) -> bool {
        self.clock > StoreClock::Nothing && self.epoch == YEAR_2026
    }
}

/// The beginning of 2026, in microseconds since 1970.
pub(super) const YEAR_2026: u64 = 1_767_225_600_000_000;

/// The beginning of 9999, in microseconds since 1970.
const YEAR_9999: u64 = 253_370_764_800_000_000;
