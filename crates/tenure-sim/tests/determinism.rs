//! The same seed gives the same history on every run and every thread.

use tenure_sim::{Fleet, Focus, Seed};

#[test]
fn the_same_seed_gives_the_same_trace_hash() {
    for number in 0..200 {
        let seed = Seed::new(number).minutes(3);
        let (once, again) = (seed.run(), seed.run());
        assert_eq!((once.hash, once.tally), (again.hash, again.tally), "seed {number}");
    }
}

/// A refactoring keeps every history. After a change of the protocol or of the world, `UPDATE_TRACES=1` rewrites them.
#[test]
fn two_hundred_seeds_match_the_committed_traces() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces.txt");
    let traces: String = (0..200)
        .map(|number| format!("{number} {:016x}\n", Seed::new(number).minutes(10).run().hash))
        .collect();
    if std::env::var_os("UPDATE_TRACES").is_some() {
        std::fs::write(path, &traces).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    for (ours, theirs) in traces.lines().zip(committed.lines()) {
        assert_eq!(ours, theirs, "the history of this seed has changed");
    }
    assert_eq!(traces.len(), committed.len());
}

#[test]
fn the_same_seed_of_the_primitives_gives_the_same_trace_hash() {
    let mut hashes = std::collections::BTreeSet::new();
    for number in 0..60 {
        let seed = Seed::new(number).focus(Focus::Primitives).minutes(3);
        let (once, again) = (seed.run(), seed.run());
        assert_eq!((once.hash, once.tally), (again.hash, again.tally), "seed {number}");
        assert!(hashes.insert(once.hash), "seed {number} has a history of its own");
    }
}

#[test]
fn a_readable_trace_changes_nothing() {
    let seed = Seed::new(7).minutes(5);
    let (silent, told) = (seed.run(), seed.clone().readable().run());
    assert_eq!((silent.hash, silent.lines.len()), (told.hash, 0));
    assert!(told.lines.len() > 100, "there is something to read");
}

#[test]
fn two_seeds_have_different_histories() {
    assert_ne!(Seed::new(1).minutes(3).run().hash, Seed::new(2).minutes(3).run().hash);
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let run = |workers| Fleet { workers, minutes: 3 }.run(500, 60, Focus::None);
    let (one, three) = (run(1), run(3));
    assert_eq!(one.tally, three.tally);
    assert_eq!(one.violations, three.violations);
}
