//! Wrong rules of plain keys.

use tenure_core::keys::{KeyOwner, KeyRules};
use tenure_core::machine::{Fault, Outcome, Proof, Rules};
use tenure_core::record::{Record, Ttl};
use tenure_core::{Drift, Instant, Token};
use tenure_store::StoreTime;

/// Defines rules of plain keys that keep the standard rules of leases.
macro_rules! keeps_the_lease {
    ($($name:ident),*) => {
        $(
            #[derive(Debug)]
            pub(super) struct $name;

            impl Rules for $name {}
        )*
    };
}

keeps_the_lease!(
    RevisionReused,
    AnyRevision,
    RunOutUpdated,
    CreatedOver,
    RunsOutEarly,
    RenewedByAnother,
    ReleasedByAnother,
    OwnerByName,
    RenewedLate,
    RenewalGrows,
    LostAnswerWithoutDoubt,
    OvertakenAsConflict
);

impl KeyRules for RevisionReused {
    fn next_revision(&self, previous: Token, _: Token, _: Option<StoreTime>) -> Option<Token> {
        Some(previous)
    }
}

impl KeyRules for AnyRevision {
    fn may_update(&self, _: Token, _: Token) -> bool {
        true
    }
}

impl KeyRules for RunOutUpdated {
    fn may_update_run_out(&self) -> bool {
        true
    }
}

impl KeyRules for CreatedOver {
    fn may_create_over(&self, _: &Record) -> bool {
        true
    }
}

impl KeyRules for RunsOutEarly {
    fn has_run_out(&self, from: Instant, ttl: Option<Ttl>, _: Drift, now: Instant) -> bool {
        ttl.is_some_and(|ttl| from + ttl.as_duration() / 2 <= now)
    }
}

impl KeyRules for RenewedByAnother {
    fn may_renew(&self, _: &Record, _: &KeyOwner, _: Instant, _: Drift, _: Instant) -> bool {
        true
    }
}

impl KeyRules for ReleasedByAnother {
    fn may_release(&self, _: &Record, _: &KeyOwner) -> bool {
        true
    }
}

impl KeyRules for OwnerByName {
    fn is_owner(&self, record: &Record, owner: &KeyOwner) -> bool {
        record.holder.as_ref().is_some_and(|holder| holder.id() == owner.holder.id())
    }
}

impl KeyRules for RenewedLate {
    fn may_renew(&self, record: &Record, owner: &KeyOwner, _: Instant, _: Drift, _: Instant) -> bool {
        self.is_owner(record, owner)
    }
}

impl KeyRules for RenewalGrows {
    fn revision_of_renewal(&self, revision: Token) -> Token {
        revision.next().unwrap_or(revision)
    }
}

impl KeyRules for LostAnswerWithoutDoubt {
    fn may_have_landed(&self, _: &Outcome) -> bool {
        false
    }
}

impl KeyRules for OvertakenAsConflict {
    fn was_replaced_directly(&self, _: &Record, _: &Record) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct ReleaseForgetsRevision;

impl Rules for ReleaseForgetsRevision {
    fn token_left_behind(&self, _: Token) -> Token {
        Token::ZERO
    }
}

impl KeyRules for ReleaseForgetsRevision {}

#[derive(Debug)]
pub(super) struct UnknownAsDone;

impl Rules for UnknownAsDone {
    fn proof(&self, outcome: &Outcome) -> Proof {
        match outcome {
            Outcome::Applied { .. } | Outcome::Fault(Fault::Unknown) => Proof::Done,
            Outcome::Fault(Fault::Refused(_)) => Proof::NoEffect,
            Outcome::Conflict | Outcome::Fault(_) => Proof::ReadBack,
        }
    }
}

impl KeyRules for UnknownAsDone {}

#[derive(Debug)]
pub(super) struct UnknownAsConflict;

impl Rules for UnknownAsConflict {
    fn proof(&self, outcome: &Outcome) -> Proof {
        match outcome {
            Outcome::Applied { .. } => Proof::Done,
            Outcome::Fault(Fault::Unknown) => Proof::Lost,
            Outcome::Fault(Fault::Refused(_)) => Proof::NoEffect,
            Outcome::Conflict | Outcome::Fault(_) => Proof::ReadBack,
        }
    }
}

impl KeyRules for UnknownAsConflict {}
