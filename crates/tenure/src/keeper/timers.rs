use std::collections::BTreeSet;

use super::command::LeaseId;
use crate::clock::Instant;

/// Timers of all leases of a keeper.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Instant, LeaseId)>);

impl Timers {
    pub(crate) fn set(&mut self, at: Instant, lease: LeaseId) {
        self.0.insert((at, lease));
    }

    /// Removes a timer.
    pub(crate) fn unset(&mut self, at: Instant, lease: LeaseId) {
        self.0.remove(&(at, lease));
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// The next lease whose timer is due.
    pub(crate) fn due(&mut self, now: Instant) -> Option<LeaseId> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, lease)| lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_timer_is_due_at_its_instant_and_not_before_and_one_that_was_removed_never_is() {
        let (first, second) = (LeaseId(1), LeaseId(2));
        let mut timers = Timers::default();
        timers.set(at(20), second);
        timers.set(at(10), first);
        timers.set(at(15), second);
        timers.unset(at(15), second);
        assert_eq!(timers.next(), Some(at(10)));
        assert_eq!(timers.due(at(9)), None);
        assert_eq!(timers.due(at(10)), Some(first));
        assert_eq!(timers.due(at(19)), None);
        assert_eq!(timers.due(at(30)), Some(second), "also when the keeper comes late");
        assert_eq!((timers.next(), timers.due(at(30))), (None, None));
    }
}
