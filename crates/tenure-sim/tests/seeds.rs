//! A few hundred histories, and those that once found something.

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
fn every_invariant_holds_in_every_corner() {
    for focus in Focus::ALL {
        let run = fleet(5).run(1_000, 25, *focus);
        assert_eq!(run.violations, [], "{}", focus.name());
    }
}

/// Each of these seeds broke an invariant with the machine as it was before the sentence was true.
const FOUND: &[(u64, Focus, &str)] = &[
    (
        2451,
        Focus::GoingBack,
        "S1: a token went back between two answers, and a still greater one that another handle saw in between hid it; \
         what had been seen when a request was sent is now kept with the request",
    ),
    (3986, Focus::GoingBack, "S1: the same"),
    (
        2951,
        Focus::Recounting,
        "S2: on a store without a clock an answer of any age was acted on, and the record that was made anew after a \
         deletion had the version of the one in that answer; answers are now acted on for one ttl on every store",
    ),
    (1135, Focus::Recounting, "S2: the same"),
    (
        307,
        Focus::Restores,
        "S1: the answer to a read waited while its process was paused, and counted as new when it was looked at; an \
         answer is now as old as its request",
    ),
    (952, Focus::Restores, "S1: the same, and two grants had one token"),
    (
        2,
        Focus::Scripts,
        "S6: the answer to a renewal by handle waited while its command was paused, and the command said that the term goes on \
         after the deadline at which its script had stopped; it is now refused as expired",
    ),
    (6, Focus::Scripts, "S6: the same"),
];

#[test]
fn what_was_found_once_is_not_found_again() {
    for (number, focus, story) in FOUND {
        let outcome = Seed::new(*number).focus(*focus).run();
        assert_eq!(outcome.violation, None, "{story}");
    }
}
