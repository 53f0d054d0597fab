use std::fmt;
use std::time::Duration;

/// Bound on the difference between the rate of this machine's clock and true time, in parts per million.
///
/// Each process bounds *its own* clock: a holder counts less than the ttl, and a contender counts more. Within the
/// bound, the first always ends before the second begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Drift(u32);

impl Drift {
    /// One percent: twenty times the largest slew of NTP.
    pub const DEFAULT: Self = Self(10_000);

    /// The smallest bound, 500 ppm: NTP may slew a healthy clock by that much.
    pub const MIN: Self = Self(500);

    /// The largest bound, one fifth: a clock beyond it is broken.
    pub const MAX: Self = Self(200_000);

    /// A bound of this many parts per million; `None` outside [`MIN`](Self::MIN) to [`MAX`](Self::MAX).
    pub const fn from_ppm(ppm: u32) -> Option<Self> {
        if ppm >= Self::MIN.0 && ppm <= Self::MAX.0 { Some(Self(ppm)) } else { None }
    }

    /// Parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// `span × (1 − drift)`, rounded down: the time that a holder may count on.
    pub const fn shorten(self, span: Duration) -> Duration {
        let nanos = nanos(span);
        let kept = MILLION - self.0 as u64;
        Duration::from_nanos(nanos / MILLION * kept + nanos % MILLION * kept / MILLION)
    }

    /// `span × (1 + drift)`, rounded up: the time that a contender must wait.
    pub const fn lengthen(self, span: Duration) -> Duration {
        let nanos = nanos(span);
        let extra = self.0 as u64;
        Duration::from_nanos(nanos + nanos / MILLION * extra + (nanos % MILLION * extra).div_ceil(MILLION))
    }
}

impl Default for Drift {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ppm", self.0)
    }
}

/// Ttls are at most a day, so their nanoseconds leave room for the arithmetic.
const fn nanos(span: Duration) -> u64 {
    let nanos = span.as_nanos();
    assert!(nanos < u64::MAX as u128 / 4, "a span beyond a century is not a ttl");
    nanos as u64
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_store::{QuarantineRules, StandardQuarantine};

    #[test]
    fn a_quarantine_lasts_as_long_as_a_contender_with_the_largest_drift_would_wait() {
        for millis in [50, 10_000, 60_000] {
            let ttl = Duration::from_millis(millis);
            assert!(StandardQuarantine.lasts(ttl) >= Drift::MAX.lengthen(ttl), "{ttl:?}");
        }
    }

    #[test]
    fn a_holder_rounds_down_and_a_contender_rounds_up() {
        let drift = Drift::DEFAULT;
        assert_eq!(drift.shorten(Duration::from_secs(10)), Duration::from_millis(9_900));
        assert_eq!(drift.lengthen(Duration::from_secs(10)), Duration::from_millis(10_100));
        assert_eq!(drift.shorten(Duration::from_nanos(99)), Duration::from_nanos(98));
        assert_eq!(drift.lengthen(Duration::from_nanos(99)), Duration::from_nanos(100));
        assert_eq!(drift.lengthen(Duration::from_nanos(1)), Duration::from_nanos(2));
    }

    #[test]
    fn a_day_does_not_overflow() {
        let day = Duration::from_secs(86_400);
        assert_eq!(Drift::MAX.lengthen(day), Duration::from_secs(103_680));
    }

    #[test]
    fn a_perfect_clock_cannot_be_declared() {
        assert_eq!(Drift::from_ppm(0), None);
        assert_eq!(Drift::from_ppm(499), None);
        assert_eq!(Drift::from_ppm(1_000_000), None);
    }
}
