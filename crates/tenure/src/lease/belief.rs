use std::sync::atomic::{AtomicU64, Ordering};

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

    /// Until when to believe; the clock's zero once it is over. Load this first, then read the clock.
    #[inline]
    pub fn deadline(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::SeqCst))
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

    #[test]
    fn belief_is_extended_only_before_its_deadline() {
        let belief = Belief::until(at(100));
        assert!(belief.extend(at(99), at(200)));
        assert_eq!(belief.deadline(), at(200));
        assert!(!belief.extend(at(200), at(300)), "an answer learned at the deadline is too late");
        assert_eq!(belief.deadline(), at(200));
    }

    #[test]
    fn latched_belief_never_revives() {
        let belief = Belief::until(at(100));
        belief.latch();
        assert!(!belief.extend(at(1), at(200)));
        assert_eq!(belief.deadline(), at(0));
    }
}
