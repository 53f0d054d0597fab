//! Belief is one word: the first thread that sees the deadline passed latches it, and nothing revives it.

use std::time::Duration;

use tenure_core::{Belief, Instant};

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn left(belief: &Belief, now: u64) -> Option<u128> {
    belief.left(|| at(now)).map(|left| left.as_nanos())
}

#[test]
fn belief_is_extended_only_before_its_deadline() {
    let belief = Belief::until(at(100));
    assert!(belief.extend(at(99), at(200)));
    assert_eq!(left(&belief, 150), Some(50));
    assert!(!belief.extend(at(200), at(300)), "an answer learned at the deadline is too late");
}

#[test]
fn the_first_thread_that_sees_the_deadline_passed_latches_it_for_good() {
    let belief = Belief::until(at(100));
    assert_eq!(left(&belief, 100), None);
    assert!(!belief.extend(at(1), at(200)));
    assert_eq!(left(&belief, 1), None, "not even for a clock that went back");
}

#[test]
fn a_belief_extended_during_a_read_of_the_clock_is_not_lost() {
    let belief = Belief::until(at(100));
    // The keeper extends it between the load of the word and the read of the clock.
    let clock = || {
        belief.extend(at(99), at(200));
        at(150)
    };
    assert_eq!(belief.left(clock), Some(Duration::from_nanos(50)));
}

#[test]
fn latched_belief_never_revives() {
    let belief = Belief::until(at(100));
    belief.latch();
    assert!(!belief.extend(at(1), at(200)));
    assert_eq!(left(&belief, 1), None);
}

#[test]
fn the_deadline_is_that_of_the_latest_extension_and_a_belief_is_over_only_once_latched() {
    let belief = Belief::until(at(100));
    assert_eq!((belief.deadline(), belief.is_over()), (Some(at(100)), false));
    belief.extend(at(99), at(200));
    assert_eq!(
        (belief.deadline(), belief.is_over()),
        (Some(at(200)), false),
        "nothing has looked at the clock"
    );
    belief.latch();
    assert_eq!((belief.deadline(), belief.is_over()), (None, true));
}
