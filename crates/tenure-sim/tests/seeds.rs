//! A few hundred histories, and the seeds that once found a bug.

use tenure_sim::{Fleet, Focus, Number, Seed};

fn fleet(minutes: u64) -> Fleet {
    Fleet { minutes, ..Fleet::new() }
}

#[test]
fn every_invariant_holds_in_a_few_hundred_seeds() {
    let run = fleet(10).run(0, 600, Focus::None);
    assert_eq!(run.violations, []);
    assert!(run.tally.number(Number::Grants) > 10_000, "{:?}", run.tally);
}

#[test]
fn every_invariant_of_the_primitives_holds_in_a_few_hundred_seeds() {
    let run = fleet(10).run(0, 300, Focus::Primitives);
    assert_eq!(run.violations, []);
    assert!(run.tally.number(Number::Grants) > 5_000, "{:?}", run.tally);
}

#[test]
fn every_invariant_holds_under_every_focus() {
    for focus in Focus::ALL {
        let run = fleet(5).run(1_000, 25, *focus);
        assert_eq!(run.violations, [], "{}", focus.name());
    }
}

/// Each of these seeds broke an invariant before the fix that its text describes.
const FOUND: &[(u64, Focus, &str)] = &[
    (
        2451,
        Focus::GoingBack,
        "S1: a token went back between two answers, hidden by a still greater one that another handle saw in between; \
         a request now keeps what had been seen when it was sent",
    ),
    (3986, Focus::GoingBack, "S1: the same"),
    (
        2951,
        Focus::Recounting,
        "S2: on a store without a clock a contender acted on an answer of any age, and the record created after a \
         deletion had the version of the one in that answer; answers are now used for one ttl on every store",
    ),
    (1135, Focus::Recounting, "S2: the same"),
    (
        307,
        Focus::Restores,
        "S1: the answer to a read waited while its process was paused, and counted as new when it was processed; the \
         age of an answer now counts from its request",
    ),
    (952, Focus::Restores, "S1: the same, and two grants had the same token"),
    (
        2,
        Focus::Scripts,
        "S6: the answer to a renewal by handle waited while its command was paused, and the command reported the term as \
         continued after the deadline at which its script had stopped; it is now refused as expired",
    ),
    (6, Focus::Scripts, "S6: the same"),
];

#[test]
fn fixed_bugs_stay_fixed() {
    for (number, focus, story) in FOUND {
        let outcome = Seed::new(*number).focus(*focus).run();
        assert_eq!(outcome.violation, None, "{story}");
    }
}
