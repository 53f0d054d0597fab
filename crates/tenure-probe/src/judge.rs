//! What it means for leases when a store breaks a clause of the contract.
//!
//! The whole judgement is one table, [`Clause::ALL`]: leases rest on conditional writes, on reads that show them, and on what was
//! acknowledged being kept; nothing but convenience rests on the others.

use tenure_conformance::{CheckOutcome, Finding};

/// One clause of the contract, and what follows if it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clause {
    /// What the suite calls it.
    pub name: &'static str,
    /// What it is called by people.
    pub title: &'static str,
    /// What follows if it is broken.
    pub weight: Weight,
    /// Why that follows: what could happen.
    pub because: &'static str,
}

impl Clause {
    /// Every clause, in the order in which they are checked.
    pub const ALL: &[Self] = &[
        refuses("guarantees", "what it declares", "it does not do what it says of itself"),
        refuses("create", "conditional create", "two contenders could create the same record"),
        refuses("replace", "conditional replace", "two contenders could be granted the same lease"),
        refuses("reads", "reads", "a former holder could act"),
        refuses("values", "values", "a record could come back unreadable"),
        limits(
            "keys",
            "unusual keys",
            "keep to plain names for leases: some others do not work there, or mean the same",
        ),
        refuses("versions", "versions", "a delayed contender could replace a record that it never saw"),
        refuses("races", "races", "two contenders could be granted the same lease at once"),
        refuses("unknown", "lost answers", "a grant could be taken for a loss, or be torn"),
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
        refuses("ages", "ages", "a lease could be taken from a holder that is alive"),
        limits("removal", "removal", "do not use forget there: it could remove a held lease"),
        refuses("keeps", "acknowledged writes", "a grant could be forgotten, and given to another holder"),
    ];
}

/// What follows if a clause is broken.
///
/// Exhaustive: whoever uses the store must not, or must know its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The store is refused: two could act at once.
    Refuses,
    /// The store can be used, within limits.
    Limits,
}

/// One check, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judged {
    /// The clause that it belongs to.
    pub clause: Clause,
    /// What it says of a good store, as a sentence.
    pub check: &'static str,
    /// What became of it.
    pub verdict: CheckOutcome,
    /// What was counted on the way, if anything.
    pub note: String,
}

const fn refuses(name: &'static str, title: &'static str, because: &'static str) -> Clause {
    Clause { name, title, weight: Weight::Refuses, because }
}

const fn limits(name: &'static str, title: &'static str, because: &'static str) -> Clause {
    Clause { name, title, weight: Weight::Limits, because }
}

/// The clause of this name. One that the table does not know is judged as one that leases rest on.
pub(crate) fn clause(name: &'static str) -> Clause {
    let known = Clause::ALL.iter().find(|clause| clause.name == name);
    known.copied().unwrap_or(refuses(name, name, "it breaks a promise"))
}

impl Judged {
    pub(crate) fn of(finding: Finding) -> Self {
        let Finding { check, verdict, note, .. } = finding;
        Self { clause: clause(finding.clause), check, verdict, note }
    }

    /// What was seen, if the store broke the contract here.
    pub fn broken(&self) -> Option<&str> {
        match &self.verdict {
            CheckOutcome::Failed(why) => Some(why),
            CheckOutcome::Passed | CheckOutcome::Skipped(_) => None,
        }
    }
}

/// Why a store is not simply fit: a sentence for each clause of this weight that it breaks.
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
