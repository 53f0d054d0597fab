use std::time::Duration;

use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Lease, Timing};

/// Until when the lease is held unless it is renewed, as both guards know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Until {
    /// The instant by which the whole tree must be dead.
    pub(super) deadline: Instant,
    /// The instant by which a healthy store has answered the next renewal.
    pub(super) renewed_by: Instant,
}

/// When one guard ends the tree unless the lease is renewed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) term_at: Instant,
    pub(super) kill_at: Instant,
}

impl Until {
    /// As the lease is held now. Rounded to the safe side: the clock is read before the lease.
    pub(super) fn of(lease: &Lease, timing: Timing) -> Self {
        let now = BootClock::new().now();
        Self { deadline: now + lease.remaining(), renewed_by: now + timing.period() + timing.timeout() }
    }

    /// The times of a guard that needs this margin. A margin that has grown takes from the grace first: a command whose
    /// lease is renewed as usual is not stopped because its guards are late.
    pub(super) fn times(&self, grace: Duration, margin: Duration) -> Times {
        let kill_at = self.deadline - margin;
        Times { term_at: (kill_at - grace).max(self.renewed_by).min(kill_at), kill_at }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        [self.deadline, self.renewed_by].map(|instant| instant.as_nanos().to_ne_bytes()).concat()
    }

    /// Takes one off the front.
    pub(super) fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { deadline: take_instant(bytes)?, renewed_by: take_instant(bytes)? })
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

    #[test]
    fn a_longer_margin_takes_from_the_grace_before_it_stops_a_command_that_is_renewed() {
        let until = Until { deadline: at(15_000), renewed_by: at(6_500) };
        let times = |margin| until.times(Duration::from_secs(5), Duration::from_millis(margin));
        assert_eq!(times(150), Times { term_at: at(9_850), kill_at: at(14_850) });
        assert_eq!(times(4_000), Times { term_at: at(6_500), kill_at: at(11_000) });
        assert_eq!(times(9_000), Times { term_at: at(6_000), kill_at: at(6_000) });
    }
}
