use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Instant;

/// Until when a holder believes, as one atomic word; zero once it believes no more.
///
/// Whoever first sees the deadline passed latches it, and the keeper can only extend what is not latched, so nothing
/// revives.
#[derive(Debug, Default)]
pub struct Belief(AtomicU64);

impl Belief {
    /// Belief until `deadline`.
    pub fn until(deadline: Instant) -> Self {
        Self(AtomicU64::new(deadline.as_nanos()))
    }

    /// How much longer to believe, by this clock. `None` when it is over, and from then on for ever.
    ///
    /// The word is loaded first, then the clock is read: the other way round, a pause in between would make an old
    /// instant look young.
    #[inline]
    pub fn left(&self, clock: impl Fn() -> Instant) -> Option<Duration> {
        let deadline = self.0.load(Ordering::SeqCst);
        let now = clock();
        if now.as_nanos() < deadline {
            Some(Instant::from_nanos(deadline).since(now))
        } else {
            self.expire(deadline, clock)
        }
    }

    /// Latches a belief whose deadline has passed, unless the keeper has extended it just then.
    #[cold]
    fn expire(&self, deadline: u64, clock: impl Fn() -> Instant) -> Option<Duration> {
        match self.0.compare_exchange(deadline, 0, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => None,
            Err(0) => None,
            Err(_) => self.left(clock),
        }
    }

    /// Believes for longer, unless it is over or `now` is past the deadline it had. Says whether it does.
    pub fn extend(&self, now: Instant, deadline: Instant) -> bool {
        let had = self.0.load(Ordering::SeqCst);
        if had <= now.as_nanos() {
            return false;
        }
        self.0.compare_exchange(had, deadline.as_nanos(), Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ends the belief for good.
    pub fn latch(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn left(belief: &Belief, now: u64) -> Option<u128> {
        belief.left(|| at(now)).map(|left| left.as_nanos())
    }

    #[test]
    fn belief_is_extended_only_before_its_deadline() {
        let belief = Belief::until(at(100));
        assert!(belief.extend(at(99), at(200)));
        assert_eq!(left(&belief, 150), Some(50));
        assert!(!belief.extend(at(200), at(300)), "an answer learned at the deadline is too late");
    }

    #[test]
    fn whoever_sees_the_deadline_passed_latches_it_and_it_never_revives() {
        let belief = Belief::until(at(100));
        assert_eq!(left(&belief, 100), None);
        assert!(!belief.extend(at(1), at(200)));
        assert_eq!(left(&belief, 1), None, "not even for a clock that went back");
    }

    #[test]
    fn a_belief_extended_while_somebody_read_the_clock_is_not_lost() {
        let belief = Belief::until(at(100));
        // The keeper extends it between the load of the word and the reading of the clock.
        let clock = || {
            belief.extend(at(99), at(200));
            at(150)
        };
        assert_eq!(belief.left(clock), Some(Duration::from_nanos(50)));
    }

    #[test]
    fn latched_belief_never_revives() {
        let belief = Belief::until(at(100));
        belief.latch();
        assert!(!belief.extend(at(1), at(200)));
        assert_eq!(left(&belief, 1), None);
    }
}
