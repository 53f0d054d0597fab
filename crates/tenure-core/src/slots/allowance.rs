use std::time::Duration;

use crate::Instant;

/// Limits the calls of a waiting contender: on average one per pause. It saves up a few calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    /// Instant until which the calls so far use up the allowance.
    used_until: Option<Instant>,
}

impl Allowance {
    /// Earliest instant of the next call.
    pub(super) fn ready_at(&self, now: Instant, pause: Duration) -> Instant {
        self.used_until.map_or(now, |used| now.max(used - pause * SAVED_MAX))
    }

    /// Instant at which all calls are saved up that can be.
    pub(super) fn full_at(&self, now: Instant) -> Instant {
        self.used_until.map_or(now, |used| used.max(now))
    }

    /// Counts a call.
    pub(super) fn spend(&mut self, now: Instant, pause: Duration) {
        self.used_until = Some(self.used_until.map_or(now, |used| used.max(now)) + pause);
    }
}

/// Maximum number of saved calls.
const SAVED_MAX: u32 = 2;
