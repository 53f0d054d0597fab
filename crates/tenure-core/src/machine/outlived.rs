//! Work that outlives its holder: a record has run out by its ttl, and its witness shows whether its work still runs.

use std::sync::Arc;

use super::context::Context;
use super::{AcquireMode, Effect, Event, Heed, Sighting};
use crate::Instant;
use crate::record::{Nonce, Record};

/// A record that was seen to run out by its ttl.
#[derive(Debug)]
pub(super) struct Outlived {
    record: Arc<Record>,
    /// Instant since which this contender knows that it has run out.
    since: Instant,
    /// True if an inspection of its witness is pending that began after the run-out.
    asked: bool,
    /// The result of that inspection.
    sighting: Option<Sighting>,
    /// True if the event of the locked witness was reported.
    told: bool,
}

/// Decision of a contender on a record that has run out by its ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterRunOut {
    /// Take over the lease.
    Take,
    /// Wait for the inspection of its witness.
    Look,
    /// Wait until the work has ended, but at most until this instant.
    Wait(Option<Instant>),
}

impl Context<'_> {
    /// The decision on this record, which has run out by its ttl. A contender that does not heed the tree takes over at
    /// once, and inspects the witness only to report what it shows.
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
            // An inspection that began earlier may show the state before the run-out, so its answer must come first.
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

    /// Handles the result of a witness inspection. If the witness of a record that has run out is still locked, this
    /// reports that once. True if it shows the end of the work that the contender waited for.
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

    /// The store was read: the witness must be inspected again.
    pub(super) fn forget_outlived_sighting(&mut self) {
        if let Some(outlived) = self.outlived {
            outlived.sighting = None;
            outlived.asked = false;
        }
    }

    /// Sighting of the witness of this record after it had run out, if this contender waits for its work.
    pub(super) fn waits_for_tree(&self, record: &Record) -> Option<Sighting> {
        let outlived = self.outlived.as_ref().filter(|outlived| outlived.record.nonce == record.nonce)?;
        outlived.sighting.filter(|sighting| self.heeds_tree_of(record) && self.rules.work_goes_on(*sighting))
    }

    /// True if this contender inspects the witness of this record before it takes over by its ttl.
    pub(super) fn heeds_tree_of(&self, record: &Record) -> bool {
        self.heed() != Heed::Ttl && record.witness.is_some() && record.is_held()
    }

    /// A contender that takes over without waiting does not wait for the work either.
    fn heed(&self) -> Heed {
        if matches!(self.params.mode, AcquireMode::TakeNow(_)) { Heed::Ttl } else { self.params.heed }
    }
}
