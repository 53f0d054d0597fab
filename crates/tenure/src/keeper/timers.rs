use std::collections::BTreeSet;

use super::command::LeaseId;
use crate::clock::Instant;

/// One queue of timers for everything a keeper keeps.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Instant, Timer)>);

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A lease wants to be woken.
    Wake(LeaseId),
    /// A call has had its time.
    Timeout(CallId),
}

/// One call on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallId(pub(crate) u64);

impl Timers {
    pub(crate) fn set(&mut self, at: Instant, timer: Timer) {
        self.0.insert((at, timer));
    }

    /// Forgets a timer that nobody waits for any more.
    pub(crate) fn unset(&mut self, at: Instant, timer: Timer) {
        self.0.remove(&(at, timer));
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// The next timer that is due.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }
}
