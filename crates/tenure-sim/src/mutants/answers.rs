//! Wrong rules about outcomes.

use tenure_core::machine::{Fault, Mine, Outcome, Proof, Rules, Standard};
use tenure_core::record::{Nonce, Record};

#[derive(Debug)]
pub(super) struct UnknownAsSuccess;

impl Rules for UnknownAsSuccess {
    fn proof(&self, outcome: &Outcome) -> Proof {
        match outcome {
            Outcome::Fault(Fault::Unknown) => Proof::Done,
            outcome => Standard.proof(outcome),
        }
    }
}

#[derive(Debug)]
pub(super) struct UnknownAsLoss;

impl Rules for UnknownAsLoss {
    fn proof(&self, outcome: &Outcome) -> Proof {
        match outcome {
            Outcome::Fault(Fault::Unknown) => Proof::Lost,
            outcome => Standard.proof(outcome),
        }
    }
}

#[derive(Debug)]
pub(super) struct ConflictBelieved;

impl Rules for ConflictBelieved {
    fn proof(&self, outcome: &Outcome) -> Proof {
        match outcome {
            Outcome::Conflict => Proof::Lost,
            outcome => Standard.proof(outcome),
        }
    }
}

#[derive(Debug)]
pub(super) struct ConflictSettles;

impl Rules for ConflictSettles {
    fn stays_outstanding(&self, outcome: &Outcome) -> bool {
        !matches!(outcome, Outcome::Conflict) && Standard.stays_outstanding(outcome)
    }
}

#[derive(Debug)]
pub(super) struct ThrottledSettles;

impl Rules for ThrottledSettles {
    fn stays_outstanding(&self, outcome: &Outcome) -> bool {
        !matches!(outcome, Outcome::Fault(Fault::Throttled(_))) && Standard.stays_outstanding(outcome)
    }
}

#[derive(Debug)]
pub(super) struct AttemptsForgotten;

impl Rules for AttemptsForgotten {
    fn keeps_earlier_attempts(&self) -> bool {
        false
    }
}

#[derive(Debug)]
pub(super) struct NameAsProof;

impl Rules for NameAsProof {
    fn is_ours(&self, record: &Record, mine: Mine<'_>) -> bool {
        record.holder.as_ref().is_some_and(|holder| **holder.id() == *mine.holder)
    }
}

#[derive(Debug)]
pub(super) struct NoNonce;

impl Rules for NoNonce {
    fn nonce(&self, _: Nonce, previous: Nonce) -> Nonce {
        previous
    }
}
