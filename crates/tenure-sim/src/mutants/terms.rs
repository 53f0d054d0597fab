//! Wrong answers about terms.

use tenure::machine::Rules;
use tenure::machine::rules::Mine;
use tenure::record::{Record, Ttl};

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
