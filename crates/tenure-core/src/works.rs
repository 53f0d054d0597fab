use crate::atomic::{AtomicUsize, Ordering, fence};
use crate::belief::Belief;

/// Number of pieces of work under a lease. The record is vacated only when there are none.
///
/// The count and the belief are two words, and each side writes one before it reads the other. Without a fence in
/// between, both could read the old values. Work would then begin under a record that is being vacated, or the last
/// piece would end while the keeper waits for it until the ttl is over. `tests/loom.rs` checks every order of events.
#[derive(Debug, Default)]
pub struct Works(AtomicUsize);

impl Works {
    /// Counts a piece of work in. The caller checks the belief *after* this, and counts the work out again if the
    /// belief has ended: either it sees the end of the belief, or the keeper sees the work.
    pub fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Counts a piece of work out, after it was dropped. True if it was the last one and the belief has ended: the
    /// keeper may be waiting for it, and must be notified.
    pub fn end(&self, belief: &Belief) -> bool {
        // The effects of all work come before this, as when the last reference to a value is dropped.
        if self.0.fetch_sub(1, Ordering::AcqRel) != 1 {
            return false;
        }
        fence(Ordering::SeqCst);
        belief.is_over()
    }

    /// True if no work runs. The keeper asks *after* it has latched the belief: either it sees that the work has ended,
    /// or [`end`](Self::end) sees that the belief has.
    pub fn is_drained(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Acquire) == 0
    }
}
