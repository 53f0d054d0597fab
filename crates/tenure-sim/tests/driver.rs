//! The driver under virtual time. The command runs many more seeds, and hunts every mutant.

use std::collections::BTreeSet;

use tenure_sim::{DRIVER_MUTANTS, DriverFocus, DriverMutant, DriverRun, DriverSeed, Fleet, OutageManner};

#[test]
fn no_invariant_is_broken_under_any_focus() {
    let fleet = Fleet { minutes: 1, ..Fleet::new() };
    for focus in DriverFocus::ALL.iter().filter(|focus| **focus != DriverFocus::Outage) {
        let run = fleet.run_driver(0, 6, *focus);
        assert_eq!(run.violations, [], "{}", focus.name());
    }
}

/// The command does the same with 10,000 leases.
#[test]
fn a_thousand_leases_survive_an_outage_of_each_manner_and_send_the_store_no_burst() {
    let run = Fleet::new().run_driver(1, OutageManner::ALL.len() as u64, DriverFocus::Outage);
    assert_eq!(run.violations, []);
}

#[test]
fn the_same_seed_of_the_driver_gives_the_same_trace_hash() {
    let mut hashes = BTreeSet::new();
    for number in 0..12 {
        let seed = DriverSeed::new(number).minutes(1);
        let (once, again) = (seed.run(), seed.clone().readable().run());
        assert_eq!((once.hash, &once.reached), (again.hash, &again.reached), "seed {number}");
        assert!(once.lines.is_empty() && again.lines.len() > 10, "only one of them is readable");
        assert!(hashes.insert(once.hash), "seed {number} has a history of its own");
    }
}

/// Caught in the first seeds, also without optimization. The command hunts all of them.
const SOON: &[&str] = &[
    "call-without-timeout",
    "panic-ends-keeper",
    "timer-stays",
    "hints-alone",
    "used-key-evicted",
    "released-and-renewed",
    "belief-without-keeper",
    "reply-before-witness-is-gone",
    "grant-after-shutdown",
    "keeper-ends-early",
    "any-secret",
    "renewals-in-line",
    "polls-starve",
    "place-kept",
    "waiting-call-sent",
    "burst-after-outage",
    "denial-ends-patience",
    "denial-never-reported",
    "key-write-forgotten",
    "any-group-size",
    "denied-set-kept",
];

#[test]
fn mutants_of_the_driver_are_caught_by_their_invariant() {
    let fleet = Fleet { minutes: DriverSeed::MINUTES, ..Fleet::new() };
    for mutant in SOON.iter().map(|name| DriverMutant::named(name).expect("a mutant")) {
        let hunt = fleet.hunt_driver(mutant, 0, 20);
        let (name, others) = (mutant.name, hunt.by_others);
        assert!(hunt.caught.is_some(), "{name} survived, or another invariant caught it: {others:?}");
    }
}

#[test]
fn a_run_that_reaches_too_little_is_below_its_quotas() {
    let fleet = Fleet { minutes: 1, ..Fleet::new() };
    let mut run = fleet.run_driver(0, 1, DriverFocus::Paced);
    run.seeds = DriverRun::QUOTA_SEEDS;
    let missed = run.below_quota();
    let is_missed = |words: &str| missed.iter().any(|missed| missed.starts_with(words));
    assert!(is_missed("storm of 409, 429 and 503: 0,"), "a fault: {missed:?}");
    assert!(is_missed("outages of the store: 0,"), "a state: {missed:?}");
    assert!(is_missed("resume of a handle dropped after more polls: 0,"), "a future: {missed:?}");
}

#[test]
fn mutant_names_of_the_driver_are_unique_and_resolve() {
    let names: BTreeSet<&str> = DRIVER_MUTANTS.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), DRIVER_MUTANTS.len());
    assert!(DRIVER_MUTANTS.iter().all(|mutant| DriverMutant::named(mutant.name).is_some()));
}
