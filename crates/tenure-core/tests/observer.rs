//! An observer alone: the standing of a key by what it read, and never an older token after a newer one.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{Content, Look, ObservedRead, Observer, Remaining, Sighting, Standing};
use tenure_core::record::{Closure, Nonce, Record, Revocation, State, Ttl};
use tenure_core::{Instant, Token, WallTime};
use tenure_store::{StoreClock, Version};

const SECOND: Duration = Duration::from_secs(1);

/// With the default drift, a version with a ttl of ten seconds has run out after 10.1 s.
const RUN_OUT: Duration = Duration::from_millis(10_100);

fn at(millis: u64) -> Instant {
    Instant::from_nanos((1_000_000 + millis) * 1_000_000)
}

fn record(token: u64, state: State) -> Record {
    let nonce = Nonce::from_bits(u128::from(token));
    let mut record = Record::new(Token::new(token).unwrap(), nonce, WallTime::default());
    (record.state, record.ttl) = (state, Ttl::from_millis(10_000));
    record
}

fn read(record: Record, returned: Instant) -> ObservedRead {
    let version = Version::new(format!("version {}", record.token));
    let look = Look { content: Content::Record(Arc::new(record), version), age: None, time: None };
    ObservedRead {
        look,
        clock: StoreClock::Nothing,
        sent: returned - SECOND,
        returned,
        wall: WallTime::default(),
    }
}

fn judged(record: Record) -> Standing {
    Observer::new().judge(&read(record, at(0)), Sighting::default()).unwrap()
}

fn revoked() -> State {
    State::Revoked(Arc::new(Revocation::new("ops", "maintenance", Nonce::from_bits(7))))
}

#[test]
fn an_observer_never_shows_a_token_that_is_smaller_than_one_it_has_shown() {
    let mut observer = Observer::new();
    let shown = |observer: &mut Observer, token| {
        let content = read(record(token, State::Held), at(0)).look.content;
        observer.show(&content).map(|record| record.token.get())
    };
    assert_eq!(shown(&mut observer, 8), Some(8));
    assert_eq!(shown(&mut observer, 7), None, "a replica that is behind");
    assert_eq!(shown(&mut observer, 8), Some(8), "the same term may be shown again");
    assert_eq!(shown(&mut observer, 9), Some(9));
    assert_eq!(observer.judge(&read(record(8, State::Held), at(0)), Sighting::default()), None);
}

#[test]
fn each_state_of_a_record_has_its_standing() {
    let remaining = Remaining::new(RUN_OUT, false);
    assert_eq!(judged(record(7, State::Held)), Standing::Held(remaining));
    assert_eq!(judged(record(7, revoked())), Standing::Revoked(remaining));
    assert_eq!(judged(record(7, State::Reserved("web-2".into()))), Standing::Reserved(remaining));
    assert_eq!(judged(record(7, State::Vacant)), Standing::Vacant);
    assert_eq!(judged(record(7, State::Closed(Arc::new(Closure::new("ops", "retired"))))), Standing::Closed);
    let key = Record::new_key(Token::new(7).unwrap(), Nonce::from_bits(7), WallTime::default());
    assert_eq!(judged(key), Standing::PlainKey);
}

#[test]
fn only_a_key_that_is_granted_at_once_is_free_and_only_a_term_has_a_remaining_time() {
    let remaining = Remaining::new(SECOND, true);
    for free in [Standing::Absent, Standing::Vacant, Standing::RanOut, Standing::Dead] {
        assert!(free.is_free() && !free.is_held() && free.remaining().is_none(), "{free:?}");
    }
    for held in [Standing::Held(remaining), Standing::Revoked(remaining)] {
        assert!(held.is_held() && !held.is_free() && held.remaining() == Some(remaining), "{held:?}");
    }
    let reserved = Standing::Reserved(remaining);
    assert!(!reserved.is_free() && !reserved.is_held() && reserved.remaining() == Some(remaining));
    assert!(!Standing::Closed.is_free() && Standing::Closed.remaining().is_none());
}

#[test]
fn a_version_has_run_out_for_an_observer_when_it_was_seen_for_the_ttl_and_the_drift_and_not_before() {
    let mut observer = Observer::new();
    let mut standing =
        |millis| observer.judge(&read(record(7, State::Held), at(millis)), Sighting::default()).unwrap();
    assert_eq!(standing(0), Standing::Held(Remaining::new(RUN_OUT, false)), "counted from the answer");
    let last = Remaining::new(Duration::from_millis(1), true);
    assert_eq!(standing(10_099), Standing::Held(last));
    assert_eq!(standing(10_100), Standing::RanOut);
}

#[test]
fn a_sighting_of_an_earlier_process_counts_for_the_same_version_alone() {
    let mut first = Observer::new();
    first.judge(&read(record(7, State::Held), at(0)), Sighting::default());
    let recalled = first.to_recall().unwrap().clone();
    let standing = |token| {
        let mut next = Observer::new();
        next.recall(recalled.clone());
        next.judge(&read(record(token, State::Held), at(10_100)), Sighting::default()).unwrap()
    };
    assert_eq!(standing(7), Standing::RanOut);
    assert_eq!(standing(8), Standing::Held(Remaining::new(RUN_OUT, false)), "another version");
}

#[test]
fn the_age_that_a_store_reports_counts_only_if_its_clock_measures_ages() {
    let standing = |clock, age| {
        let mut read = read(record(7, State::Held), at(0));
        read.clock = clock;
        read.look.age = Some(age);
        Observer::new().judge(&read, Sighting::default()).unwrap()
    };
    assert_eq!(standing(StoreClock::Ages, RUN_OUT), Standing::RanOut);
    let left = Remaining::new(RUN_OUT - 4 * SECOND, true);
    assert_eq!(standing(StoreClock::Ages, 4 * SECOND), Standing::Held(left));
    let unknown = Standing::Held(Remaining::new(RUN_OUT, false));
    assert_eq!(standing(StoreClock::Floors, RUN_OUT), unknown, "a wall clock may have been stepped");
}

#[test]
fn a_held_record_is_dead_only_if_its_own_witness_is_there_unlocked_and_lists_its_nonce() {
    let dead = Sighting { found: true, same_file: true, lists_nonce: true, ..Sighting::default() };
    let standing = |state, sighting| Observer::new().judge(&read(record(7, state), at(0)), sighting).unwrap();
    assert_eq!(standing(State::Held, dead), Standing::Dead);
    assert_eq!(standing(revoked(), dead), Standing::Dead);
    assert_eq!(standing(State::Vacant, dead), Standing::Vacant);
    let remaining = Remaining::new(RUN_OUT, false);
    assert_eq!(standing(State::Reserved("web-2".into()), dead), Standing::Reserved(remaining));
    for unknown in [
        Sighting { guards_locked: true, ..dead },
        Sighting { tree_locked: true, ..dead },
        Sighting { same_file: false, ..dead },
        Sighting { lists_nonce: false, ..dead },
    ] {
        assert_eq!(standing(State::Held, unknown), Standing::Held(remaining), "{unknown:?}");
    }
}
