use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{AbortHandle, Abortable};

use crate::clock::Instant;

/// Cancels futures that take too long.
///
/// All deadlines share the keeper's one timer. A timer for each would cost five system calls, more than most of the
/// work that it guards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines(Arc<Mutex<Pending>>);

#[derive(Debug, Default)]
struct Pending {
    by_end: BTreeMap<(Instant, u64), AbortHandle>,
    next: u64,
}

/// Removes its deadline when dropped.
struct PendingDeadline {
    deadlines: Deadlines,
    at: (Instant, u64),
}

impl Deadlines {
    /// The output of the future; `None` if [`end`](Self::end) reaches `at` first.
    pub(crate) fn until<F: Future>(
        &self,
        at: Instant,
        future: F,
    ) -> impl Future<Output = Option<F::Output>> + use<F> {
        let (abort, registration) = AbortHandle::new_pair();
        let mut pending = self.lock();
        let at = (at, pending.next);
        pending.next += 1;
        pending.by_end.insert(at, abort);
        drop(pending);
        let entry = PendingDeadline { deadlines: self.clone(), at };
        async move {
            let outcome = Abortable::new(future, registration).await.ok();
            drop(entry);
            outcome
        }
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.lock().by_end.first_key_value().map(|((at, _), _)| *at)
    }

    /// Cancels every future whose deadline has passed.
    pub(crate) fn end(&self, now: Instant) {
        let mut pending = self.lock();
        while let Some(first) = pending.by_end.first_entry()
            && first.key().0 <= now
        {
            first.remove().abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // No panic under the lock can leave the table inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PendingDeadline {
    fn drop(&mut self) {
        self.deadlines.lock().by_end.remove(&self.at);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_call_that_ends_in_time_returns_its_output_and_its_limit_is_forgotten() {
        let deadlines = Deadlines::default();
        let done = deadlines.until(at(5), ready(7));
        assert_eq!(deadlines.next(), Some(at(5)));
        assert_eq!(done.now_or_never(), Some(Some(7)));
        drop(deadlines.until(at(6), pending::<()>()));
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn a_call_that_takes_too_long_is_cancelled_and_no_other_is() {
        let deadlines = Deadlines::default();
        let (mut late, mut later) = (
            Box::pin(deadlines.until(at(5), pending::<()>())),
            Box::pin(deadlines.until(at(6), pending::<()>())),
        );
        assert_eq!((&mut late).now_or_never(), None);
        deadlines.end(at(4));
        assert_eq!((&mut late).now_or_never(), None);
        deadlines.end(at(5));
        assert_eq!((&mut late).now_or_never(), Some(None));
        assert_eq!((&mut later).now_or_never(), None);
        assert_eq!(deadlines.next(), Some(at(6)));
    }
}
