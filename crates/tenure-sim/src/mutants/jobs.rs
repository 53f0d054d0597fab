//! Wrong rules about jobs that run once per period.

use std::time::Duration;

use tenure_core::WallTime;
use tenure_core::machine::{Due, Rules, Standard};
use tenure_core::record::LastSuccess;
use tenure_store::StoreTime;

#[derive(Debug)]
pub(super) struct AlwaysDue;

impl Rules for AlwaysDue {
    fn due(&self, _: LastSuccess, _: Duration, _: StoreTime, _: WallTime) -> Due {
        Due::Now
    }
}

#[derive(Debug)]
pub(super) struct DueByTheWallClock;

impl Rules for DueByTheWallClock {
    fn due(&self, last: LastSuccess, period: Duration, _: StoreTime, wall: WallTime) -> Due {
        let now = StoreTime::from_micros(wall.as_millis().saturating_mul(1_000));
        Standard.due(last, period, now, wall)
    }
}

#[derive(Debug)]
pub(super) struct FailuresCount;

impl Rules for FailuresCount {
    fn counts_as_done(&self, _: bool) -> bool {
        true
    }
}
