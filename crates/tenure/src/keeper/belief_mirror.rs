use std::sync::PoisonError;

use tenure_core::Token;

use super::atomic::{AtomicU64, Belief, Mutex, Ordering};
use crate::clock::Clock;

/// A copy of the belief in the latest of several terms. A thread reads it without a lock, and without finding the lease
/// of the present term first.
#[derive(Debug, Default)]
pub(crate) struct BeliefMirror {
    /// The token of the latest term, once there was one. Only writers lock it.
    term: Mutex<Option<Token>>,
    /// The deadline in nanoseconds; zero without a belief.
    deadline: AtomicU64,
}

impl BeliefMirror {
    /// Copies the belief of the term with this token, unless a later term has begun.
    ///
    /// It is called after every change of the belief but the passing of the deadline, which a reader sees by the clock.
    /// Each call copies the state at that moment, so the last one copies the last state, in whatever order threads arrive.
    pub(super) fn copy(&self, token: Token, belief: &Belief) {
        let mut term = self.term.lock().unwrap_or_else(PoisonError::into_inner);
        if Some(token) >= *term {
            *term = Some(token);
            let nanos = belief.deadline().map_or(0, |deadline| deadline.as_nanos());
            self.deadline.store(nanos, Ordering::SeqCst);
        }
    }

    /// True before the deadline, and false without a belief. `None` after the deadline: then the caller asks the lease,
    /// which latches its belief unless it was extended. An answer of false without the latch could be followed by true.
    ///
    /// The word is loaded before the clock is read, as in [`Belief::left`].
    #[inline]
    pub(crate) fn is_held(&self, clock: &dyn Clock) -> Option<bool> {
        let deadline = self.deadline.load(Ordering::SeqCst);
        if deadline == 0 {
            return Some(false);
        }
        (clock.now().as_nanos() < deadline).then_some(true)
    }
}
