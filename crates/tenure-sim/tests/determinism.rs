//! The same seed gives the same history, whoever lives through it.

use tenure_sim::{Fleet, Focus, Seed};

#[test]
fn the_same_seed_gives_the_same_trace_hash() {
    for number in 0..200 {
        let seed = Seed::new(number).minutes(3);
        let (once, again) = (seed.run(), seed.run());
        assert_eq!((once.hash, once.tally), (again.hash, again.tally), "seed {number}");
    }
}

#[test]
fn reading_along_changes_nothing() {
    let seed = Seed::new(7).minutes(5);
    let (silent, told) = (seed.run(), seed.clone().readable().run());
    assert_eq!((silent.hash, silent.lines.len()), (told.hash, 0));
    assert!(told.lines.len() > 100, "there is something to read");
}

#[test]
fn two_seeds_have_two_histories() {
    assert_ne!(Seed::new(1).minutes(3).run().hash, Seed::new(2).minutes(3).run().hash);
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let run = |workers| Fleet { workers, minutes: 3 }.run(500, 60, Focus::None);
    let (one, three) = (run(1), run(3));
    assert_eq!(one.tally, three.tally);
    assert_eq!(one.violations, three.violations);
}
