use std::time::Duration;

use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Lease, Timing};

use super::lateness::Lateness;

/// The end of the lease unless it is renewed, as both guards know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Until {
    /// The instant by which the complete tree must be dead.
    pub(super) deadline: Instant,
    /// The instant by which a healthy store has answered the next renewal.
    pub(super) renewed_by: Instant,
    /// Longest duration of this answer.
    pub(super) answer: Duration,
}

/// The times at which one guard stops the tree unless the lease is renewed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Times {
    pub(super) term_at: Instant,
    pub(super) kill_at: Instant,
}

impl Until {
    /// The current state of the lease. Rounded to the safe side: the clock is read before the lease.
    pub(super) fn of(lease: &Lease, timing: Timing) -> Self {
        let now = BootClock::new().now();
        let answer = timing.timeout();
        Self { deadline: now + lease.remaining(), renewed_by: now + timing.period() + answer, answer }
    }

    /// The times of a guard that is never late by more than its least margin.
    pub(super) fn times(&self, grace: Duration, least: Duration) -> Times {
        let kill_at = self.deadline - least;
        Times { term_at: kill_at - grace, kill_at }
    }

    /// The times of a guard that has been late: earlier, but not so early that a regular renewal comes too late. A
    /// guard does not act on a lateness before its supervisor, which may have been frozen with it, could renew.
    pub(super) fn times_if_late(&self, grace: Duration, least: Duration, lateness: &Lateness) -> Times {
        let renewed_by =
            lateness.grew_at().map_or(self.renewed_by, |at| self.renewed_by.max(at + self.answer));
        let in_time = self.times(grace, least);
        let kill_at = (self.deadline - lateness.margin(least)).max(renewed_by).min(in_time.kill_at);
        Times { term_at: (kill_at - grace).max(renewed_by).min(kill_at).min(in_time.term_at), kill_at }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let answer = Instant::from_nanos(0) + self.answer;
        [self.deadline, self.renewed_by, answer].map(|instant| instant.as_nanos().to_ne_bytes()).concat()
    }

    /// Takes one off the front.
    pub(super) fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (deadline, renewed_by) = (take_instant(bytes)?, take_instant(bytes)?);
        Some(Self { deadline, renewed_by, answer: take_instant(bytes)?.since(Instant::from_nanos(0)) })
    }
}

/// Takes an instant off the front.
pub(super) fn take_instant(bytes: &mut &[u8]) -> Option<Instant> {
    let (first, rest) = bytes.split_at_checked(8)?;
    *bytes = rest;
    Some(Instant::from_nanos(u64::from_ne_bytes(first.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    const SECOND: Duration = Duration::from_secs(1);
    const LEAST: Duration = Duration::from_millis(150);

    /// The times of a guard that was late by this many milliseconds, as it found at `now`.
    fn times(late: u64, now: u64) -> Times {
        let until = Until { deadline: at(15_000), renewed_by: at(6_500), answer: 3 * SECOND / 2 };
        let mut lateness = Lateness::new(at(0));
        lateness.note(at(now - late), at(now));
        until.times_if_late(5 * SECOND, LEAST, &lateness)
    }

    #[test]
    fn a_longer_margin_takes_from_the_grace_first_and_leaves_time_for_the_next_renewal() {
        assert_eq!(times(0, 1_000), Times { term_at: at(9_850), kill_at: at(14_850) });
        assert_eq!(times(500, 1_000), Times { term_at: at(8_950), kill_at: at(13_950) });
        assert_eq!(times(2_000, 3_000), Times { term_at: at(6_500), kill_at: at(10_950) });
        assert_eq!(times(6_000, 6_000), Times { term_at: at(7_500), kill_at: at(7_500) });
    }

    #[test]
    fn a_guard_that_was_frozen_leaves_its_supervisor_the_time_to_renew() {
        assert_eq!(times(5_000, 9_000), Times { term_at: at(9_850), kill_at: at(10_500) });
        assert_eq!(
            times(9_000, 14_000),
            Times { term_at: at(9_850), kill_at: at(14_850) },
            "not past the least margin"
        );
    }

    #[test]
    fn a_guard_that_is_late_for_the_end_of_the_tree_does_not_wait_for_a_renewal() {
        let until = Until { deadline: at(15_000), renewed_by: at(6_500), answer: 3 * SECOND / 2 };
        let mut lateness = Lateness::new(at(0));
        lateness.note_at_the_end(at(9_850), at(13_000));
        let times = until.times_if_late(5 * SECOND, LEAST, &lateness);
        assert_eq!(
            times,
            Times { term_at: at(6_500), kill_at: at(8_650) },
            "both have passed: it kills at once"
        );
    }
}
