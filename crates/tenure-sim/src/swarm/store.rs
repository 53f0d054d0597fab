use tenure_store::StoreClock;

use crate::rng::Rng;

/// What the store is like.
#[derive(Clone, Debug)]
pub(crate) struct StoreKind {
    pub(crate) clock: StoreClock,
    pub(crate) versions: Versions,
    /// What its wall clock shows at the beginning, in microseconds since 1970. Some were never set.
    pub(crate) epoch: u64,
    /// How fast the clock runs by which it tells ages: a million is true.
    pub(crate) rate: u64,
    /// How many of a thousand writes are hinted at to each process.
    pub(crate) hints: u32,
}

/// How a store makes its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// A counter that never goes back.
    Counter,
    /// A hash of the content: equal records have equal versions.
    ContentHash,
    /// A counter of the key, which begins anew when the key is made anew, and goes back with a restored record.
    PerKey,
}

impl StoreKind {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        Self {
            clock: rng.pick(&[StoreClock::Nothing, StoreClock::Floors, StoreClock::Floors, StoreClock::Ages]),
            epoch: if rng.chance(30) { rng.pick(&[0, YEAR_9999]) } else { YEAR_2026 },
            versions: rng.pick(&[Versions::Counter, Versions::ContentHash, Versions::PerKey]),
            rate: rng.pick(&[950_000, 1_000_000, 1_050_000]),
            hints: rng.pick(&[0, 0, 0, 0, 300]),
        }
    }

    /// Whether its clock can be the floor of tokens.
    pub(crate) fn has_floors(&self) -> bool {
        self.clock > StoreClock::Nothing && self.epoch == YEAR_2026
    }
}

/// The beginning of 2026, in microseconds since 1970.
const YEAR_2026: u64 = 1_767_225_600_000_000;

/// The beginning of 9999, in microseconds since 1970.
const YEAR_9999: u64 = 253_370_764_800_000_000;
