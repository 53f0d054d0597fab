use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::LeaseId;
use crate::clock::Instant;

/// One queue of timers for everything a keeper keeps.
#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Instant, Timer)>>);

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A lease wants to be woken.
    Wake(LeaseId),
    /// A call has had its time.
    Timeout(CallId),
}

/// One call on the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CallId(pub(super) u64);

impl Timers {
    pub(super) fn set(&mut self, at: Instant, timer: Timer) {
        self.0.push(Reverse((at, timer)));
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// The next timer that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<(Instant, Timer)> {
        if self.next()? > now {
            return None;
        }
        self.0.pop().map(|Reverse(timer)| timer)
    }
}
