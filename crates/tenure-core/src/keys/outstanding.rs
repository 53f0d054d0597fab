use std::sync::Arc;

use tenure_store::Version;

use super::KeyRules;
use crate::Instant;
use crate::machine::in_flight::SentWrite;
use crate::machine::rules::Mine;
use crate::machine::{Attempt, Attempts, Outcome, Purpose};
use crate::record::{Record, State};

/// The writes of one operation whose outcome is not settled, and the record that they replace.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    attempts: Attempts,
    replaced: Option<Arc<Record>>,
    /// The records that they write.
    written: Vec<Arc<Record>>,
    /// True if one of them may have been applied and replaced since.
    in_doubt: bool,
}

impl Outstanding {
    /// True if a write of this operation may have been applied, or may still be.
    pub(super) fn in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// True if only a read can tell whether a write has landed.
    pub(super) fn may_land(&self) -> bool {
        self.attempts.may_land()
    }

    /// Adds a write that replaces this version of this record by another one.
    pub(super) fn add(
        &mut self,
        rules: &dyn KeyRules,
        attempt: Attempt,
        (version, replaced): (&Version, &Arc<Record>),
        written: &Arc<Record>,
    ) {
        if !rules.keeps_earlier_attempts() {
            self.attempts.forget_outstanding();
        }
        self.attempts.add(attempt, version);
        self.replaced = Some(Arc::clone(replaced));
        self.written.retain(|earlier| self.attempts.find(earlier.nonce).is_some());
        self.written.push(Arc::clone(written));
    }

    /// Records that this write is sent only now.
    pub(super) fn sent(&mut self, attempt: &Attempt) {
        self.attempts.sent(attempt.nonce, attempt.sent);
    }

    /// Records that this write is never sent.
    pub(super) fn never_sent(&mut self, attempt: &Attempt) {
        self.attempts.settle(attempt.nonce);
    }

    /// The record that this write left behind, given a later record of its term. The owner may have released the entry
    /// elsewhere since, and the later record then has no value.
    pub(super) fn entry_of<'a>(&'a self, attempt: &Attempt, found: &'a Arc<Record>) -> &'a Arc<Record> {
        let is_released = attempt.purpose == Purpose::Grant && found.state == State::Vacant;
        let written = self.written.iter().find(|written| is_released && written.nonce == attempt.nonce);
        written.unwrap_or(found)
    }

    /// True if this record is of another term than the record that the writes replace.
    pub(super) fn is_of_another_term(&self, found: &Record) -> bool {
        self.replaced.as_ref().is_some_and(|replaced| replaced.term != found.term)
    }

    /// Takes in the answer to a write.
    pub(super) fn answered(&mut self, rules: &dyn KeyRules, write: &SentWrite, outcome: &Outcome) {
        if !write.attempt.purpose.is_of_a_term() {
            return;
        }
        if !rules.stays_outstanding(outcome) {
            self.attempts.settle(write.attempt.nonce);
        }
        self.in_doubt |= rules.may_have_landed(outcome);
    }

    /// The own write that left this record, if one did. An entry that its owner has renewed since has the term of the own
    /// write.
    pub(super) fn behind(&self, rules: &dyn KeyRules, record: &Record, holder: &str) -> Option<Attempt> {
        let mine = Mine { term: None, attempts: &self.attempts, holder };
        if rules.is_ours(record, mine) {
            let unknown = Attempt { nonce: record.nonce, sent: Instant::default(), purpose: Purpose::Grant };
            return Some(self.attempts.find(record.nonce).copied().unwrap_or(unknown));
        }
        self.attempts.find(record.term).copied().filter(|attempt| attempt.purpose == Purpose::Grant)
    }

    /// Takes in a read, sent at `sent`, that showed another participant's record. True if a write of this operation may
    /// have been applied and replaced since.
    pub(super) fn overtaken(
        &mut self,
        rules: &dyn KeyRules,
        sent: Instant,
        found: &Record,
        version: &Version,
    ) -> bool {
        let later = self.attempts.latest_sent().is_none_or(|last| last <= sent);
        if !later || self.attempts.expects().is_none_or(|expected| expected == version) {
            return false;
        }
        // The expected version never comes back, so no write can land any more.
        self.attempts.forget_outstanding();
        let directly =
            self.replaced.as_ref().is_some_and(|replaced| rules.was_replaced_directly(replaced, found));
        self.in_doubt &= !directly;
        self.in_doubt
    }
}
