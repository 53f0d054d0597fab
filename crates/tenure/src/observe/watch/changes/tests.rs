use std::time::Duration;

use tenure_core::Holder;
use tenure_core::machine::Remaining;
use tenure_core::record::{Closure, Kind, Revocation, Ttl, decode};

use super::*;

const HELD: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tenure-core/tests/fixtures/records/v1/held.json"
));

fn number(token: u64) -> Token {
    Token::new(token).unwrap()
}

/// The record of the term with this token, after the terms in `history`.
fn held(token: u64, history: &[Past]) -> Record {
    changed(decode(HELD).unwrap(), |it| {
        it.state = State::Held;
        it.token = number(token);
        it.nonce = Nonce::from_bits(u128::from(token) << 64);
        it.holder = Some(Arc::new(Holder::new(&format!("h{token}")).unwrap()));
        it.history = history.into();
    })
}

fn changed(mut record: Record, change: impl FnOnce(&mut Record)) -> Record {
    change(&mut record);
    record
}

fn vacant(token: u64, history: &[Past]) -> Record {
    changed(renewed(&held(token, history)), |it| {
        it.state = State::Vacant;
        it.holder = None;
    })
}

fn planted(token: u64) -> Record {
    changed(vacant(token, &[]), |it| it.ttl = None)
}

fn renewed(record: &Record) -> Record {
    changed(record.clone(), |it| it.nonce = Nonce::from_bits(record.nonce.to_bits() + 1))
}

fn revoked(record: &Record) -> Record {
    let revocation = Revocation::new("ops", "stuck", record.nonce);
    changed(renewed(record), |it| it.state = State::Revoked(Arc::new(revocation)))
}

fn past(token: u64, end: End) -> Past {
    Past::new(
        number(token),
        format!("h{token}"),
        WallTime::from_millis(token),
        WallTime::from_millis(token + 1),
        end,
    )
}

fn standing(record: &Record) -> Standing {
    let left = Remaining::new(Duration::from_secs(1), true);
    match &record.state {
        State::Vacant => Standing::Vacant,
        State::Held => Standing::Held(left),
        State::Reserved(_) => Standing::Reserved(left),
        State::Revoked(_) => Standing::Revoked(left),
        State::Closed(_) => Standing::Closed,
        other => unreachable!("{other:?}"),
    }
}

fn nothing(standing: Standing) -> Observation {
    let key = Key::parse("k").unwrap();
    Observation { key, record: None, standing, seen_at: WallTime::default() }
}

fn seen(record: &Record) -> Observation {
    seen_as(record, standing(record))
}

fn seen_as(record: &Record, standing: Standing) -> Observation {
    Observation { record: Some(Arc::new(record.clone())), ..nothing(standing) }
}

/// One line for each change between the observations, after the first observation.
fn reported(looks: &[Observation]) -> Vec<String> {
    told_with(looks, false)
}

fn told_with(looks: &[Observation], renewals: bool) -> Vec<String> {
    let mut reported = Reported::of(&looks[0]);
    let changes: Vec<_> = looks[1..].iter().flat_map(|seen| reported.update(seen, renewals)).collect();
    let tokens: Vec<_> = changes.iter().filter_map(|change| change.token).collect();
    assert!(tokens.is_sorted(), "never an older token after a newer one: {changes:?}");
    changes.iter().map(line).collect()
}

fn line(change: &Change) -> String {
    let what = match &change.kind {
        ChangeKind::Ended(end) => format!("{end:?}"),
        what => format!("{what:?}"),
    };
    let what = what.split([' ', '(', '{']).next().unwrap().to_owned();
    let token = change.token.map_or("-".to_owned(), |token| token.to_string());
    format!("{what} {token} {}", change.holder.as_deref().unwrap_or("-"))
}

#[test]
fn the_same_observation_twice_reports_nothing() {
    let (a, b) = (held(1, &[]), vacant(1, &[past(1, End::Released)]));
    assert!(reported(&[seen(&a), seen(&a)]).is_empty());
    assert!(reported(&[seen(&b), seen(&b)]).is_empty());
    assert!(reported(&[nothing(Standing::Absent), nothing(Standing::Absent)]).is_empty());
    let foreign = || nothing(Standing::Foreign("of another".into()));
    assert!(reported(&[foreign(), foreign()]).is_empty());
}

#[test]
fn a_term_from_no_record_to_its_release() {
    let first = held(5, &[]);
    let left = vacant(5, &[past(5, End::Released)]);
    let looks = [nothing(Standing::Absent), seen(&planted(4)), seen(&first), seen(&left)];
    assert_eq!(reported(&looks), ["Granted 5 h5", "Released 5 h5"]);
    let foreign = nothing(Standing::Foreign("of another".into()));
    assert_eq!(reported(&[foreign, seen(&planted(4))]), ["Appeared - -"]);
}

#[test]
fn renewals_are_reported_on_request() {
    let first = held(5, &[]);
    let looks = [seen(&first), seen(&renewed(&first)), seen(&renewed(&renewed(&first)))];
    assert!(reported(&looks).is_empty());
    assert_eq!(told_with(&looks, true), ["Renewed 5 h5", "Renewed 5 h5"]);
}

#[test]
fn skipped_terms_are_reported_from_the_history() {
    let history = [past(3, End::RanOut), past(4, End::Died), past(6, End::Other("evicted".into()))];
    let looks = [seen(&held(3, &[])), seen(&held(9, &history))];
    let expected = ["RanOut 3 h3", "Granted 4 h4", "Died 4 h4", "Granted 6 h6", "Other 6 h6", "Granted 9 h9"];
    assert_eq!(reported(&looks), expected);
}

#[test]
fn a_term_between_two_observations_is_reported_completely() {
    let before = vacant(3, &[past(3, End::Released)]);
    let after = vacant(4, &[past(3, End::Released), past(4, End::Released)]);
    assert_eq!(reported(&[seen(&before), seen(&after)]), ["Granted 4 h4", "Released 4 h4"]);
}

#[test]
fn more_terms_than_the_record_remembers_are_reported_as_missed() {
    let history: Vec<_> = (10..18).map(|token| past(token, End::Released)).collect();
    let lines = reported(&[seen(&held(3, &[])), seen(&held(18, &history))]);
    assert_eq!((lines[0].as_str(), lines.len()), ("Missed 3 -", 18), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "Granted 18 h18");
    let lines = reported(&[seen(&vacant(3, &[past(3, End::Released)])), seen(&held(18, &history))]);
    assert_eq!(lines[0], "Missed 3 -");
    // The record was created anew, so the end of the earlier term is unknown.
    assert_eq!(reported(&[seen(&held(3, &[])), seen(&held(8, &[]))]), ["Missed 3 -", "Granted 8 h8"]);
}

#[test]
fn running_out_and_death_are_reported_once_and_not_again_at_the_next_grant() {
    let first = held(5, &[]);
    for (standing, end, word) in
        [(Standing::RanOut, End::RanOut, "RanOut 5 h5"), (Standing::Dead, End::Died, "Died 5 h5")]
    {
        let over = seen_as(&first, standing);
        let next = seen(&held(6, &[past(5, end)]));
        assert_eq!(reported(&[seen(&first), over.clone(), over.clone(), next]), [word, "Granted 6 h6"]);
    }
    // First found dead, then run out: the watch reports one end.
    let looks = [seen(&first), seen_as(&first, Standing::Dead), seen_as(&first, Standing::RanOut)];
    assert_eq!(reported(&looks), ["Died 5 h5"]);
}

#[test]
fn a_term_that_only_seemed_over_is_reported_without_request() {
    let first = held(5, &[]);
    let looks = [seen_as(&first, Standing::RanOut), seen(&renewed(&first))];
    assert_eq!(reported(&looks), ["Renewed 5 h5"]);
    let left = vacant(5, &[past(5, End::Released)]);
    assert_eq!(reported(&[seen_as(&first, Standing::RanOut), seen(&left)]), ["Released 5 h5"]);
    // An old copy is back, under the same token.
    assert_eq!(reported(&[seen(&left), seen(&first)]), ["Renewed 5 h5"]);
}

#[test]
fn a_steal_is_reported_when_it_is_requested_and_when_it_is_done() {
    let first = held(5, &[]);
    let end = End::Revoked { by: "ops".into(), because: "stuck".into() };
    let looks =
        [seen(&first), seen(&revoked(&first)), seen(&revoked(&first)), seen(&held(6, &[past(5, end)]))];
    assert_eq!(reported(&looks), ["Revoked 5 h5", "Revoked 5 h5", "Granted 6 h6"]);
    // Both in one observation.
    let second = revoked(&held(6, &[past(5, End::Released)]));
    assert_eq!(reported(&[seen(&first), seen(&second)]), ["Released 5 h5", "Granted 6 h6", "Revoked 6 h6"]);
    let dead = seen_as(&revoked(&first), Standing::Dead);
    assert_eq!(reported(&[seen(&first), dead]), ["Revoked 5 h5", "Died 5 h5"]);
}

#[test]
fn a_reservation_begins_and_runs_out() {
    let first = held(5, &[]);
    let left = vacant(5, &[past(5, End::Released)]);
    let reserved = changed(left, |it| {
        it.state = State::Reserved("h6".into());
        it.ttl = Ttl::from_millis(9_000);
    });
    let looks = [seen(&first), seen(&reserved), seen_as(&reserved, Standing::RanOut)];
    assert_eq!(reported(&looks), ["Released 5 h5", "Reserved 5 -", "RanOut 5 -"]);
}

#[test]
fn a_key_is_closed_deleted_and_taken_by_another_program() {
    let left = vacant(5, &[past(5, End::Released)]);
    let closure = Closure::new("ops", "moved");
    let closed = changed(left.clone(), |it| it.state = State::Closed(Arc::new(closure)));
    let foreign = nothing(Standing::Foreign("of another".into()));
    let gone = nothing(Standing::Absent);
    let looks = [seen(&left), seen(&closed), gone, foreign, seen(&closed), seen(&closed)];
    assert_eq!(reported(&looks), ["Closed 5 -", "Gone 5 -", "Foreign 5 -", "Appeared 5 -"]);
}

#[test]
fn a_plain_key_is_reported_once_and_its_revisions_are_no_terms() {
    let key = |token| {
        let key = changed(held(token, &[]), |it| it.kind = Kind::Key);
        seen_as(&key, Standing::PlainKey)
    };
    assert!(reported(&[key(5), key(6)]).is_empty());
    let looks = [nothing(Standing::Absent), key(5), key(6), nothing(Standing::Absent), seen(&held(9, &[]))];
    assert_eq!(reported(&looks), ["PlainKey - -", "Gone - -", "Granted 9 h9"]);
    let looks = [seen(&held(5, &[])), key(7), key(8), seen(&held(9, &[past(5, End::RanOut)]))];
    assert_eq!(reported(&looks), ["PlainKey 5 -", "RanOut 5 h5", "Granted 9 h9"]);
}

#[test]
fn a_record_that_is_created_anew_reports_its_own_terms_and_none_twice() {
    let old = held(5, &[past(4, End::Released)]);
    let anew = vacant(9, &[past(8, End::RanOut), past(9, End::Released)]);
    let looks = [seen(&old), nothing(Standing::Absent), seen(&anew), nothing(Standing::Absent), seen(&anew)];
    let expected = [
        "Gone 5 -",
        "Granted 8 h8",
        "RanOut 8 h8",
        "Granted 9 h9",
        "Released 9 h9",
        "Gone 9 -",
        "Appeared 9 -",
    ];
    assert_eq!(reported(&looks), expected);
}

#[test]
fn a_history_out_of_order_never_makes_a_token_go_back() {
    let history =
        [past(8, End::Released), past(6, End::Released), past(99, End::Released), past(9, End::Died)];
    let lines = reported(&[seen(&vacant(5, &[past(5, End::Released)])), seen(&held(10, &history))]);
    assert_eq!(lines.last().unwrap(), "Granted 10 h10");
    assert!(!lines.iter().any(|line| line.contains("99") || line.contains(" 6 ")), "{lines:?}");
}
