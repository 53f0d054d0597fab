use std::time::Duration;

use super::urgency::Urgency;
use crate::clock::Instant;

/// The time that a call has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTime {
    /// Time before it is queued or sent: a deadline that it extends counts from here.
    pub(crate) sent: Instant,
    /// Time for which it waits for the store's write interval.
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    pub(crate) urgency: Urgency,
    /// Longest wait for a place, after the interval.
    pub(crate) wait_max: Duration,
}

impl CallTime {
    /// Time from which it may be sent.
    pub(crate) fn due(&self) -> Instant {
        self.sent + self.interval
    }

    /// End of the wait for a place. A renewal is not sent after the deadline that it extends.
    pub(crate) fn waits_until(&self) -> Instant {
        let waits_until = self.due() + self.wait_max;
        match self.urgency {
            Urgency::Renewal(deadline) => waits_until.min(deadline),
            Urgency::Poll => waits_until,
        }
    }

    /// Time at which a call that got its place at `given_at` counts as unanswered. The timeout of a renewal includes its
    /// wait, because the arithmetic of `Timing` counts with it. A poll has no deadline: its timeout counts from its
    /// place.
    pub(crate) fn ends(&self, given_at: Option<Instant>) -> Instant {
        match (self.urgency, given_at) {
            (Urgency::Poll, Some(given_at)) => given_at + self.timeout,
            (Urgency::Poll, None) | (Urgency::Renewal(_), _) => self.due() + self.timeout,
        }
    }
}
