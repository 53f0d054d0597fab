//! Wrong rules about terms.

use tenure_core::Instant;
use tenure_core::machine::{Mine, Rules, TermRef};
use tenure_core::record::{Record, State, Ttl};

#[derive(Debug)]
pub(super) struct TtlChanges;

impl Rules for TtlChanges {
    fn ttl_of_renewal(&self, term: Ttl, fresh: u32) -> Ttl {
        let shorter = Ttl::from_millis(term.as_millis() / 2);
        if fresh.is_multiple_of(4) { shorter.unwrap_or(term) } else { term }
    }
}

#[derive(Debug)]
pub(super) struct LateVacate;

impl Rules for LateVacate {
    fn may_vacate(&self, record: &Record, mine: Mine<'_>) -> bool {
        record.holder.as_ref().is_some_and(|holder| **holder.id() == *mine.holder)
    }
}

#[derive(Debug)]
pub(super) struct VacateUnderWork;

impl Rules for VacateUnderWork {
    fn vacates_under_work(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct ResumeBelievesFirst;

impl Rules for ResumeBelievesFirst {
    fn resume_believes_at_once(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct HandleGoodTwice;

impl Rules for HandleGoodTwice {
    fn may_resume(&self, record: &Record, handle: &TermRef) -> bool {
        record.state == State::Held && record.term == handle.term
    }
}

#[derive(Debug)]
pub(super) struct ResumeRevives;

impl Rules for ResumeRevives {
    fn resumable_until(&self, _: Instant, own: Instant) -> Instant {
        own
    }
}

#[derive(Debug)]
pub(super) struct DoubtfulResumeVacated;

impl Rules for DoubtfulResumeVacated {
    fn vacates_doubtful_resume(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct VacatesItsTerm;

impl Rules for VacatesItsTerm {
    fn may_vacate(&self, record: &Record, mine: Mine<'_>) -> bool {
        mine.term == Some(record.term)
    }
}

#[derive(Debug)]
pub(super) struct SecondStealRestarts;

impl Rules for SecondStealRestarts {
    fn revokes_again(&self) -> bool {
        true
    }
}

#[derive(Debug)]
pub(super) struct StealWithoutWaiting;

impl Rules for StealWithoutWaiting {
    fn waits_after_revoking(&self) -> bool {
        false
    }
}
