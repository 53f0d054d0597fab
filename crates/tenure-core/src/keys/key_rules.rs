use std::time::Duration;

use tenure_store::StoreTime;

use super::KeyOwner;
use crate::machine::{Fault, Outcome, Rules, Standard};
use crate::record::{Record, Ttl};
use crate::{Drift, Instant, Token};

/// The decisions of plain keys, each with its correct implementation. Every mutant of the simulation replaces exactly
/// one.
pub trait KeyRules: Rules {
    /// Revision of the next entry: greater than every earlier one, by the same floors as a token.
    fn next_revision(&self, previous: Token, highest: Token, floor: Option<StoreTime>) -> Option<Token> {
        self.next_token(previous, highest, floor)
    }

    /// Revision of a renewed entry: the same. A renewal changes nothing that a participant compares.
    fn revision_of_renewal(&self, revision: Token) -> Token {
        revision
    }

    /// True if this participant knows that an entry has run out: it has seen this version for the entry's ttl and the
    /// drift. An entry without a ttl never runs out.
    fn has_run_out(&self, from: Instant, ttl: Option<Ttl>, drift: Drift, now: Instant) -> bool {
        ttl.is_some_and(|ttl| self.runs_out_at(from, ttl, ttl, drift) <= now)
    }

    /// True if an entry that this participant knows to have run out may be replaced by its old revision. Never: it counts
    /// as absent, and no entry has its revision.
    fn may_update_run_out(&self) -> bool {
        false
    }

    /// True if the present entry may be replaced: it has exactly the expected revision.
    fn may_update(&self, present: Token, expected: Token) -> bool {
        present == expected
    }

    /// True if an entry may be created over the present one, which has not run out for this participant. Never.
    fn may_create_over(&self, present: &Record) -> bool {
        let _ = present;
        false
    }

    /// True if this participant owns the entry: it knows the secret. A twin has the same name.
    fn is_owner(&self, record: &Record, owner: &KeyOwner) -> bool {
        record.secret_hash == Some(owner.secret_hash)
    }

    /// True if this participant may renew the entry: it is the owner, and no participant can know yet that the entry has
    /// run out. `from` is the earliest instant at which the version may have been written, as far as this one knows. An
    /// entry that was absent for one participant would otherwise come back with the same revision.
    fn may_renew(
        &self,
        record: &Record,
        owner: &KeyOwner,
        from: Instant,
        drift: Drift,
        now: Instant,
    ) -> bool {
        let in_time = |ttl| self.may_go_on(now, self.deadline(from, from, ttl, drift));
        self.is_owner(record, owner) && record.ttl.is_none_or(in_time)
    }

    /// True if this participant may remove the entry: it is the owner.
    fn may_release(&self, record: &Record, owner: &KeyOwner) -> bool {
        self.is_owner(record, owner)
    }

    /// True if a write with this outcome may have been applied, and then replaced by another participant before it could
    /// be read back. A conflict is the store's statement that it was not.
    fn may_have_landed(&self, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Fault(Fault::Unknown | Fault::Throttled(_)))
    }

    /// True if `found` proves that no write of this operation replaced `replaced`: exactly one write came after that
    /// version, and it is another participant's. More than one may have replaced an own write.
    fn was_replaced_directly(&self, replaced: &Record, found: &Record) -> bool {
        replaced.sequence.checked_add(1) == Some(found.sequence) && found.sequence < Token::MAX.get()
    }

    /// Pause of a waiting participant between two reads of an entry.
    fn look_after(&self, entry: Option<Ttl>, fresh_for: Ttl, jitter: u32) -> Duration {
        self.poll_after(entry.unwrap_or(fresh_for), jitter)
    }
}

impl KeyRules for Standard {}
