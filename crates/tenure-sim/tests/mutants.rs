//! The oracle catches mutants. The command hunts every mutant; these tests hunt those that are caught soon.

use std::collections::BTreeSet;

use tenure_sim::{Fleet, MUTANTS, Mutant};

/// Caught in few seeds: left to the command, which has the time.
const RARE: &[&str] = &[
    "any-time-is-a-floor",
    "resumes-in-quarantine",
    "quarantine-by-uptime",
    "quarantine-without-drift",
    "version-of-another-run",
    "freshness-from-return",
    "second-steal-restarts",
    "slot-unseen",
    "slot-stamps-unread",
    "shows-older-leader",
    "seen-by-another-clock",
];

#[test]
fn mutants_are_caught_by_their_invariant() {
    let fleet = Fleet { minutes: 30, ..Fleet::new() };
    for mutant in MUTANTS.iter().filter(|mutant| !RARE.contains(&mutant.name)) {
        let hunt = fleet.hunt(mutant, 0, 40);
        let (_, violation) = hunt.caught.unwrap_or_else(|| panic!("{} survived", mutant.name));
        assert_eq!(violation.invariant, mutant.caught_by, "{}: {}", mutant.name, violation.sentence);
    }
}

#[test]
fn mutant_names_are_unique_and_resolve() {
    let names: BTreeSet<&str> = MUTANTS.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), MUTANTS.len());
    assert!(MUTANTS.iter().all(|mutant| Mutant::named(mutant.name).is_some()));
    assert!(RARE.iter().all(|name| names.contains(name)));
}
