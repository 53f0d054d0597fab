//! Consequences for leases when a store breaks a clause of the contract.
//!
//! The complete judgement is one table, [`Clause::ALL`]. Leases depend on conditional writes, on reads that show them,
//! and on the durability of acknowledged writes. Only convenience depends on the other clauses.

use tenure_conformance::{CheckOutcome, Finding};

/// One clause of the contract, and the consequence of breaking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clause {
    /// Name of the clause in the suite.
    pub name: &'static str,
    /// Human-readable name.
    pub title: &'static str,
    /// Consequence if the store breaks it.
    pub weight: Weight,
    /// Reason for the consequence: what could happen.
    pub because: &'static str,
}

impl Clause {
    /// Every clause, in the order of the checks.
    pub const ALL: &[Self] = &[
        refuses("guarantees", "what it declares", "it does not keep what it declares"),
        refuses("create", "conditional create", "two contenders could create the same record"),
        refuses("replace", "conditional replace", "two contenders could be granted the same lease"),
        refuses("reads", "reads", "a former holder could act"),
        refuses("values", "values", "a record could come back unreadable"),
        limits(
            "keys",
            "unusual keys",
            "use plain names for leases: some other names do not work there, or are not distinct",
        ),
        refuses("versions", "versions", "a delayed contender could replace a record that it never saw"),
        refuses("races", "races", "two contenders could be granted the same lease at once"),
        refuses(
            "unknown",
            "lost answers",
            "a holder could mistake its grant for a loss, or a record could be torn",
        ),
        limits(
            "list",
            "listing",
            "ls, watch and forget cannot be relied on there; leases do not need a listing",
        ),
        limits("watch", "hints", "contenders notice a release later; leases do not need hints"),
        limits(
            "clock",
            "the store's time",
            "tokens may not grow there when a record is deleted from outside",
        ),
        refuses("ages", "ages", "a contender could take over from a live holder"),
        limits("removal", "removal", "do not use forget there: it could remove a held lease"),
        refuses("keeps", "acknowledged writes", "a grant could be forgotten, and given to another holder"),
    ];
}

/// Consequence of a broken clause.
///
/// Exhaustive: a user of the store must either not use it, or know its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The store is refused: two holders could act at once.
    Refuses,
    /// The store is usable, within limits.
    Limits,
}

/// One check with its judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judged {
    /// The clause that the check belongs to.
    pub clause: Clause,
    /// Requirement on a correct store, as a sentence.
    pub check: &'static str,
    /// Outcome of the check.
    pub verdict: CheckOutcome,
    /// Counts collected by the check; may be empty.
    pub note: String,
}

const fn refuses(name: &'static str, title: &'static str, because: &'static str) -> Clause {
    Clause { name, title, weight: Weight::Refuses, because }
}

const fn limits(name: &'static str, title: &'static str, because: &'static str) -> Clause {
    Clause { name, title, weight: Weight::Limits, because }
}

/// The clause with this name. A clause that is not in the table is judged as one that leases depend on.
pub(crate) fn clause(name: &'static str) -> Clause {
    let known = Clause::ALL.iter().find(|clause| clause.name == name);
    known.copied().unwrap_or(refuses(name, name, "it breaks a promise"))
}

impl Judged {
    pub(crate) fn of(finding: Finding) -> Self {
        let Finding { check, verdict, note, .. } = finding;
        Self { clause: clause(finding.clause), check, verdict, note }
    }

    /// Observation of the check, if the store broke the contract here.
    pub fn broken(&self) -> Option<&str> {
        match &self.verdict {
            CheckOutcome::Failed(why) => Some(why),
            CheckOutcome::Passed | CheckOutcome::Skipped(_) => None,
        }
    }
}

/// Reasons why a store is not simply fit: a sentence for each clause of this weight that it breaks.
pub(crate) fn reasons(checks: &[Judged], weight: Weight) -> Vec<String> {
    let mut reasons = Vec::new();
    for clause in Clause::ALL.iter().filter(|clause| clause.weight == weight) {
        let broken: Vec<_> = checks
            .iter()
            .filter(|check| check.clause.name == clause.name)
            .filter_map(Judged::broken)
            .collect();
        let Some(first) = broken.first() else { continue };
        let more = match broken.len() - 1 {
            0 => String::new(),
            1 => " (and one check more)".to_owned(),
            more => format!(" (and {more} checks more)"),
        };
        reasons.push(format!("{}: {first}{more}, so {}", clause.title, clause.because));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use tenure_conformance::Suite;

    use super::*;

    #[test]
    fn every_clause_of_the_contract_has_its_row_and_no_other() {
        let named: Vec<_> = Clause::ALL.iter().map(|clause| clause.name).collect();
        assert_eq!(named, Suite::clauses()[..named.len()]);
        let contract = Suite::new(1).only_contract();
        let rows = named.iter().fold(Suite::new(1), |suite, name| suite.only(*name));
        assert_eq!(rows.checks(), contract.checks());
    }
}
