//! Work that outlives its holder: a record has run out by its ttl, and its witness shows whether its work goes on.

use std::sync::Arc;

use super::context::Context;
use super::{AcquireMode, Effect, Event, Heed, Sighting};
use crate::Instant;
use crate::record::{Nonce, Record};

/// A record that was seen to run out by its ttl.
#[derive(Debug)]
pub(super) struct Outlived {
    record: Arc<Record>,
    /// The instant since which this contender knows that it has run out.
    since: Instant,
    /// True if a look at its witness is under way that was begun after the run-out.
    asked: bool,
    /// The sighting of that look.
    sighting: Option<Sighting>,
    /// True if it was told that the witness is still locked.
    told: bool,
}

/// The decision of a contender on a record that has run out by its ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterRunOut {
    /// Take it.
    Take,
    /// Wait for what its witness shows.
    Look,
    /// Wait until the work has ended, but no longer than until then.
    Wait(Option<Instant>),
}

impl Context<'_> {
    /// The decision on this record, which has run out by its ttl. A contender that does not heed the tree takes it, and
    /// looks beside that, to tell of it.
    pub(super) fn after_run_out(&mut self, record: &Arc<Record>) -> AfterRunOut {
        let (now, heed) = (self.ambient.now, self.heed());
        let Some(witness) = record.witness.as_ref().filter(|_| record.is_held()) else {
            return AfterRunOut::Take;
        };
        if self.outlived.as_ref().is_none_or(|outlived| outlived.record.nonce != record.nonce) {
            let record = Arc::clone(record);
            *self.outlived = Some(Outlived { record, since: now, asked: false, sighting: None, told: false });
        }
        let Some(outlived) = self.outlived else { return AfterRunOut::Take };
        let limit = match heed {
            Heed::Ttl => None,
            Heed::Tree { limit } => Some(limit.map(|limit| outlived.since + limit)),
        };
        let Some(sighting) = outlived.sighting else {
            // The answer to a look that was begun before may show a time before the run-out, so it must come first.
            if !*self.looking_at_witness {
                outlived.asked = true;
                *self.looking_at_witness = true;
                let (witness, nonce) = (Arc::clone(witness), record.holders_nonce());
                self.effects.push(Effect::LookAtWitness { witness, nonce });
            }
            return if limit.is_some() { AfterRunOut::Look } else { AfterRunOut::Take };
        };
        let Some(limit) = limit.filter(|_| self.rules.work_goes_on(sighting)) else {
            return AfterRunOut::Take;
        };
        if limit.is_none_or(|limit| limit > now) {
            return AfterRunOut::Wait(limit);
        }
        let record = Arc::clone(record);
        self.tell(Event::Outlived { record, sighting, taken: true });
        AfterRunOut::Take
    }

    /// A witness was looked at. If it is that of a record that has run out, and still locked, that is told once. Returns
    /// whether it shows the end of the work that was waited for.
    pub(super) fn outlived_seen(&mut self, nonce: Nonce, sighting: Sighting) -> bool {
        *self.looking_at_witness = false;
        let (goes_on, heed) = (self.rules.work_goes_on(sighting), self.heed());
        let Some(outlived) = self.outlived else { return false };
        if outlived.record.holders_nonce() != nonce || !(outlived.asked || outlived.sighting.is_some()) {
            return false;
        }
        outlived.asked = false;
        let before = outlived.sighting.replace(sighting);
        if sighting.same_file && sighting.is_locked() && !std::mem::replace(&mut outlived.told, true) {
            let taken = heed == Heed::Ttl || !goes_on;
            let record = Arc::clone(&outlived.record);
            self.tell(Event::Outlived { record, sighting, taken });
        }
        !goes_on && before.is_some_and(|before| self.rules.work_goes_on(before))
    }

    /// The store was read: what the witness showed before is looked at again.
    pub(super) fn forget_outlived_sighting(&mut self) {
        if let Some(outlived) = self.outlived {
            outlived.sighting = None;
            outlived.asked = false;
        }
    }

    /// The sighting of the witness of this record after it had run out, if this contender waits for that.
    pub(super) fn waits_for_tree(&self, record: &Record) -> Option<Sighting> {
        let outlived = self.outlived.as_ref().filter(|outlived| outlived.record.nonce == record.nonce)?;
        outlived.sighting.filter(|sighting| self.heeds_tree_of(record) && self.rules.work_goes_on(*sighting))
    }

    /// True if the witness of this record is looked at before it is taken by its ttl.
    pub(super) fn heeds_tree_of(&self, record: &Record) -> bool {
        self.heed() != Heed::Ttl && record.witness.is_some() && record.is_held()
    }

    /// A contender that takes the lease without waiting does not wait for its work either.
    fn heed(&self) -> Heed {
        if matches!(self.params.mode, AcquireMode::TakeNow(_)) { Heed::Ttl } else { self.params.heed }
    }
}
