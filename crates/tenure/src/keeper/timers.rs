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
