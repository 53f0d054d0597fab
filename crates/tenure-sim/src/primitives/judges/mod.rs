//! Judges of the primitives, in true time, which the code under test cannot see. One file per invariant; those of the
//! lease are shared with the world of one key. The world of the driver uses those of slots, sets and plain keys, too.

mod a1_sets;
mod entries;
mod j1_period;
mod k1_revisions;
mod k2_owners;
mod l5_full_group;
mod l6_turns;
mod ledger;
mod s4_slots;

pub(crate) use a1_sets::{believes_only_whole, ends_with_first_loss, leaves_nothing_held};
pub(crate) use entries::{Entries, EntryOperation, EntryWrite};
pub(super) use j1_period::{is_due, was_reported};
pub(super) use l5_full_group::reads_are_few;
pub(super) use l6_turns::Turns;
pub(super) use ledger::AppliedWrite;
pub(crate) use s4_slots::GroupJudge;
pub(super) use s4_slots::is_not_evicted;

use tenure_core::machine::Write;
use tenure_core::record::Nonce;

use crate::oracle::{Beliefs, Judgement, Tokens};
use k1_revisions::replaces_what_it_expects;
use k2_owners::only_by_its_owner;
use ledger::Ledger;

/// The judges of one key.
#[derive(Debug)]
pub(super) struct KeyJudge {
    pub(super) tokens: Tokens,
    pub(super) beliefs: Beliefs,
    /// Its history as a plain key.
    pub(super) entries: Entries,
    ledger: Ledger,
    /// The last time at which the record was deleted from outside.
    tampered_at: Option<u64>,
}

impl KeyJudge {
    pub(super) fn new(store_has_clock: bool) -> Self {
        Self {
            tokens: Tokens::new(store_has_clock),
            beliefs: Beliefs::default(),
            entries: Entries::default(),
            ledger: Ledger::default(),
            tampered_at: None,
        }
    }

    /// A write was applied as the `order`-th of all keys.
    pub(super) fn applies(&mut self, now: u64, order: u64, write: &Write) -> Judgement {
        let is_grant = self.ledger.enter(now, order, write);
        if is_grant { self.tokens.applied(write.record.token.get()) } else { Ok(()) }
    }

    /// The applied write with this nonce.
    pub(super) fn applied(&self, nonce: Nonce) -> Option<AppliedWrite> {
        self.ledger.find(nonce)
    }

    /// The record was deleted from outside: present beliefs are no longer promised exclusion.
    pub(super) fn tampered(&mut self, now: u64) {
        self.tampered_at = Some(now);
        self.tokens.tampered();
        self.entries.deleted(now);
        self.beliefs.taint_all();
    }

    /// True if the record was deleted since this instant, or nothing is known of the write.
    pub(super) fn is_tainted_since(&self, at: Option<u64>) -> bool {
        self.tampered_at.is_some_and(|tampered| at.is_none_or(|at| tampered >= at))
    }
}
