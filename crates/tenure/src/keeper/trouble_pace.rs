use std::time::Duration;

use crate::clock::Instant;

/// Limit on the calls per second while the store fails calls.
///
/// A store that comes back meets every lease that it failed, and many of them need a read before their write. Without a
/// limit that is a burst, just when the store is weakest. The limit is twice the calls that the leases need when nothing
/// fails, so that all of them are renewed again within half a period, or within one period if each needs a read first.
#[derive(Debug, Default)]
pub(crate) struct TroublePace {
    /// Calls per million seconds that the leases need when nothing fails.
    needed: u64,
    /// Number of calls that ended in the last second before the trouble: short leases make more than `needed` says.
    usual: u64,
    /// Beginning of the present second, and the calls that have ended in it.
    second: (Instant, u64),
    /// End of the trouble; `None` if there is none.
    until: Option<Instant>,
    /// True if there is no limit any more.
    lifted: bool,
    /// Time of the next call if all calls kept the same distance.
    even: Instant,
}

impl TroublePace {
    /// Adds a lease that is renewed or polled once in this period.
    pub(crate) fn add(&mut self, period: Duration) {
        self.needed += rate(period);
    }

    /// Removes a lease that was added with this period.
    pub(crate) fn remove(&mut self, period: Duration) {
        self.needed -= rate(period);
    }

    /// A call has ended.
    pub(crate) fn ended(&mut self, now: Instant) {
        let (began, count) = self.second;
        let passed = now.since(began);
        if passed < Duration::from_secs(1) {
            self.second.1 += 1;
        } else {
            if !self.is_on() {
                self.usual = if passed < Duration::from_secs(2) { count } else { 0 };
            }
            self.second = (now, 1);
        }
    }

    /// A call has failed. The limit holds for `span` from now on, and for a minute at most.
    pub(crate) fn failed(&mut self, now: Instant, span: Duration) {
        if !self.lifted {
            self.until = self.until.max(Some(now + span.min(TROUBLE_MAX)));
        }
    }

    /// Ends the limit for good.
    pub(crate) fn lift(&mut self) {
        (self.until, self.lifted) = (None, true);
    }

    /// Ends the trouble if no call has failed for long enough.
    pub(crate) fn end(&mut self, now: Instant) {
        self.until.take_if(|until| *until <= now);
    }

    /// True while the limit holds.
    pub(crate) fn is_on(&self) -> bool {
        self.until.is_some()
    }

    /// Earliest time of the next call.
    pub(crate) fn next_at(&self) -> Instant {
        if self.is_on() { self.even - self.distance() * BURST } else { Instant::default() }
    }

    /// A call is sent now.
    pub(crate) fn sent(&mut self, now: Instant) {
        if self.is_on() {
            self.even = self.even.max(now) + self.distance();
        }
    }

    /// Distance of two calls under the limit.
    fn distance(&self) -> Duration {
        let least = LEAST.max(self.usual + self.usual / 2) * 1_000_000;
        Duration::from_nanos(1_000_000 * SECOND / (2 * self.needed).max(least))
    }
}

/// Calls per million seconds of a lease with this period.
fn rate(period: Duration) -> u64 {
    let rate = u128::from(1_000_000 * SECOND) / period.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Longest time for which one failed call limits the others.
const TROUBLE_MAX: Duration = Duration::from_secs(60);

const SECOND: u64 = 1_000_000_000;

/// Number of calls by which the coordinator may be ahead of the even distance: the limit must not delay a coordinator
/// with few leases.
const BURST: u32 = 16;

/// Calls per second that are always allowed. Any store bears them, and leases with long ttls would otherwise take minutes
/// to release.
const LEAST: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Calls that are sent from `from` to `to`, as early as the limit allows.
    fn sent(pace: &mut TroublePace, from: Instant, to: Instant) -> u64 {
        let (mut now, mut count) = (from, 0);
        loop {
            now = now.max(pace.next_at());
            if now >= to {
                return count;
            }
            pace.sent(now);
            count += 1;
        }
    }

    #[test]
    fn in_trouble_twice_as_many_calls_are_sent_as_the_leases_need() {
        let mut pace = TroublePace::default();
        (0..10_000).for_each(|_| pace.add(PERIOD));
        pace.failed(at(60_000), Duration::from_secs(15));
        let count = sent(&mut pace, at(60_000), at(65_000));
        assert!((19_990..=20_000 + u64::from(BURST)).contains(&count), "{count}");
    }

    #[test]
    fn few_leases_are_not_delayed() {
        let mut pace = TroublePace::default();
        pace.add(PERIOD);
        pace.failed(at(60_000), Duration::from_secs(15));
        for _ in 0..BURST {
            assert!(pace.next_at() <= at(60_000));
            pace.sent(at(60_000));
        }
        let count = sent(&mut pace, at(61_000), at(62_000));
        assert!((LEAST..=LEAST + u64::from(BURST)).contains(&count), "{count}");
    }

    #[test]
    fn without_a_failed_call_there_is_no_limit_and_it_ends_with_the_trouble() {
        let mut pace = TroublePace::default();
        pace.add(PERIOD);
        (0..1_000).for_each(|_| pace.sent(at(1)));
        assert_eq!(pace.next_at(), Instant::default());
        pace.failed(at(1), Duration::from_secs(15));
        pace.failed(at(2), Duration::from_secs(3));
        pace.end(at(15_000));
        assert!(pace.is_on(), "the longer trouble counts");
        pace.end(at(15_001));
        assert!(!pace.is_on());
    }

    #[test]
    fn a_program_with_many_short_leases_keeps_its_usual_calls_in_trouble() {
        let mut pace = TroublePace::default();
        pace.add(PERIOD);
        // 1,000 calls per second.
        (0..3_000).for_each(|call| pace.ended(at(60_000 + call)));
        pace.failed(at(63_000), Duration::from_secs(15));
        let count = sent(&mut pace, at(63_000), at(64_000));
        assert!((1_480..=1_501 + u64::from(BURST)).contains(&count), "{count}");
    }

    #[test]
    fn a_shutdown_has_no_limit() {
        let mut pace = TroublePace::default();
        pace.failed(at(0), Duration::from_secs(15));
        pace.lift();
        pace.failed(at(1), Duration::from_secs(15));
        assert!(!pace.is_on());
    }

    #[test]
    fn a_lease_that_has_ended_no_longer_counts() {
        let mut pace = TroublePace::default();
        for period in [PERIOD, Duration::from_millis(7), Duration::from_nanos(1)] {
            pace.add(period);
            pace.remove(period);
        }
        assert_eq!(pace.needed, 0);
    }
}
