use crate::atomic::{AtomicUsize, Ordering, fence};
use crate::belief::Belief;

/// Pieces of work that go on under a lease. The record is vacated only when there are none.
///
/// The count and the belief are two words, and each side writes one of them before it reads the other. Without a fence in
/// between, both sides could read what was there before: work would begin under a record that is being vacated, or the last
/// piece would end and the keeper would wait for it until the ttl is over. `tests/loom.rs` checks every order of events.
#[derive(Debug, Default)]
pub struct Works(AtomicUsize);

impl Works {
    /// Counts a piece of work in. The caller looks at the belief *after* this, and counts the work out again if that is over:
    /// either it sees the end of the belief, or the keeper sees the work.
    pub fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Counts a piece of work out, after it has been dropped. True if it was the last and the belief is over: the keeper may
    /// wait for just that, and must be told.
    pub fn end(&self, belief: &Belief) -> bool {
        // What all pieces did comes before what follows from this, as when the last reference to a value is dropped.
        if self.0.fetch_sub(1, Ordering::AcqRel) != 1 {
            return false;
        }
        fence(Ordering::SeqCst);
        belief.is_over()
    }

    /// True if no work goes on. The keeper asks this *after* it has latched the belief: either it sees that the work has
    /// ended, or [`end`](Self::end) sees that the belief has.
    pub fn is_drained(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Acquire) == 0
    }
}
