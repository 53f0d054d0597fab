use std::time::Duration;

use crate::Instant;
use crate::atomic::{AtomicU64, Ordering};

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

    /// True once it was latched. A deadline that has passed and that no thread has looked at is not.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    /// Ends the belief for good.
    pub fn latch(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}
