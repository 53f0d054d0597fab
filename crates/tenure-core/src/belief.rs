use std::time::Duration;

use crate::Instant;
use crate::atomic::{AtomicU64, Ordering};

/// The belief of a holder: its deadline as one atomic word, or zero once the belief has ended.
///
/// The first thread that sees the deadline passed latches it. The keeper can only extend a belief that is not latched,
/// so a lost lease never revives.
#[derive(Debug, Default)]
pub struct Belief(AtomicU64);

impl Belief {
    /// A belief until `deadline`.
    pub fn until(deadline: Instant) -> Self {
        Self(AtomicU64::new(deadline.as_nanos()))
    }

    /// Time until the deadline, by this clock; `None` once the belief has ended, and from then on.
    ///
    /// The word is loaded before the clock is read. In the other order, a pause in between would make an old instant
    /// look young.
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

    /// Latches a belief whose deadline has passed, unless the keeper has just extended it.
    #[cold]
    fn expire(&self, deadline: u64, clock: impl Fn() -> Instant) -> Option<Duration> {
        match self.0.compare_exchange(deadline, 0, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => None,
            Err(0) => None,
            Err(_) => self.left(clock),
        }
    }

    /// Extends the belief, unless it has ended or `now` is past its deadline. True if it was extended.
    pub fn extend(&self, now: Instant, deadline: Instant) -> bool {
        let had = self.0.load(Ordering::SeqCst);
        if had <= now.as_nanos() {
            return false;
        }
        self.0.compare_exchange(had, deadline.as_nanos(), Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// The deadline; `None` once latched. A deadline that has passed without being checked is returned, too.
    pub fn deadline(&self) -> Option<Instant> {
        Some(Instant::from_nanos(self.0.load(Ordering::SeqCst)))
            .filter(|deadline| *deadline != Instant::default())
    }

    /// True once latched. A deadline that has passed without being checked is not latched.
    pub fn is_over(&self) -> bool {
        self.deadline().is_none()
    }

    /// Ends the belief for good.
    pub fn latch(&self) {
        // A swap costs the same as a store. The model checker also orders it with the exchange of an extension.
        self.0.swap(0, Ordering::SeqCst);
    }
}
