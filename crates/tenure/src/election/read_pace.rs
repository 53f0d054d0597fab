use std::time::Duration;

use tenure_core::machine::AcquireParams;
use tenure_core::record::Ttl;

/// Pace of the reads of an observer of leaders.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadPace {
    /// The ttl of the election, for the pace without a leader.
    pub(super) ttl: Ttl,
    /// Minimum time between two reads after hints.
    pub(super) hint_pause: Duration,
}

impl ReadPace {
    /// The pace of a contender with these parameters.
    pub(super) fn of(params: &AcquireParams) -> Self {
        Self { ttl: params.timing.ttl(), hint_pause: params.hint_pause.max(HINT_PAUSE_MIN) }
    }
}

/// A store that hints all the time must not keep the keeper busy.
const HINT_PAUSE_MIN: Duration = Duration::from_millis(10);
