mod arbitrary;
mod hostile;

use std::sync::Arc;

use proptest::prelude::*;
use tenure_store::StoreTime;

use super::*;
use crate::record::{
    Closure, End, Kind, LastSuccess, Nonce, Past, Record, Revocation, State, TermProcess, Ttl, Unstoppable,
    Witness,
};
use crate::{Holder, ProcessInfo, Token, WallTime};

proptest! {
    #[test]
    fn what_is_written_is_read_back_equal(record in arbitrary::record()) {
        prop_assert_eq!(decode(&encode(&record)), Ok(record));
    }

    #[test]
    fn a_pretty_printed_record_is_the_same_record(record in arbitrary::record()) {
        let value: serde_json::Map<String, serde_json::Value> = match serde_json::from_slice(&encode(&record)) {
            Ok(value) => value,
            // Half a surrogate pair and a thousand brackets are valid here, but not for an ordinary reader.
            Err(_) => return Ok(()),
        };
        let read = decode(&serde_json::to_vec_pretty(&value).expect("JSON"));
        prop_assert_eq!(read.map(|read| Record { unknown: record.unknown.clone(), ..read }), Ok(record));
    }
}

/// The record of a service with a witness, labels and a past term.
fn typical() -> Record {
    let holder = Holder::new("host-a.example.net").unwrap().label("pid", "4711").unwrap();
    let holder = holder.label("version", "2.4.1").unwrap().at("10.0.0.7:7070").unwrap();
    Record {
        kind: Kind::Lease,
        state: State::Held,
        term: Nonce::from_bits(0x1f),
        token: Token::new(1_763_184_600_250_000).unwrap(),
        ttl: Ttl::from_millis(15_000),
        nonce: Nonce::from_bits(0x2f),
        sequence: 4242,
        witness: Some(Arc::new(Witness {
            name: "9f86d081884c7d65".to_owned(),
            inode: 1_835_021,
            boot: Some("6c1f2f0e-5f0b-4b52-8d2c-6a3a6f0f5f11".to_owned()),
        })),
        secret_hash: None,
        holder: Some(Arc::new(holder)),
        value: "shard-7".into(),
        history: Arc::new([past(End::Released)]),
        granted_at: WallTime::from_millis(1_763_184_600_250),
        written_at: WallTime::from_millis(1_763_184_605_250),
        unstoppable: None,
        last_success: None,
        process: None,
        unknown: Arc::new([]),
    }
}

/// The record of a plain key with an entry.
fn plain_key() -> Record {
    Record { kind: Kind::Key, witness: None, secret_hash: Some([7; 32]), history: Arc::new([]), ..typical() }
}

/// The record of a plain key whose entry was released.
fn plain_key_without_entry() -> Record {
    Record {
        state: State::Vacant,
        holder: None,
        secret_hash: None,
        ttl: None,
        value: "".into(),
        ..plain_key()
    }
}

/// The same key without a holder.
fn vacant() -> Record {
    Record { state: State::Vacant, holder: None, witness: None, ..typical() }
}

fn past(end: End) -> Past {
    Past {
        token: Token::new(1_763_184_000_000_000).unwrap(),
        holder: "host-b.example.net".into(),
        granted_at: WallTime::from_millis(1_763_184_000_000),
        ended_at: WallTime::from_millis(1_763_184_500_000),
        end,
    }
}

fn last_success(token: u64, began: u64) -> Option<LastSuccess> {
    Some(LastSuccess { token: Token::new(token).unwrap(), began: StoreTime::from_micros(began) })
}

/// A process with as many bytes as the limits allow.
fn largest_process() -> Option<Arc<TermProcess>> {
    let text = "\"".repeat(ProcessInfo::TEXT_MAX);
    let info = ProcessInfo::default().with_host(&text).with_pid(u32::MAX).with_user(&text);
    let info = info.with_container(&text).with_command_text(&"\\".repeat(ProcessInfo::COMMAND_MAX));
    Some(Arc::new(TermProcess::new(Nonce::from_bits(1), Arc::new(info)).renewed_every(RENEWS_MAX)))
}

/// A record with as many bytes as the limits allow.
fn largest() -> Record {
    let text = |first: usize| format!("{first:02}{}", "\"".repeat(198));
    let mut holder = Holder::new(&text(0)).unwrap().at(&text(0)).unwrap();
    for label in 0..Holder::LABELS_MAX {
        holder = holder.label(&text(label), &text(label)).unwrap();
    }
    let by: Arc<str> = text(0).into();
    let last = WallTime::from_millis(u64::MAX);
    let ended = Past {
        token: Token::MAX,
        holder: by.clone(),
        granted_at: last,
        ended_at: last,
        end: End::Revoked { by: by.clone(), because: by.clone() },
    };
    let field = |index: usize| (format!("{index:02}\0"), format!("\"{}\"", "x".repeat(114)));
    Record {
        state: State::Revoked(Arc::new(Revocation {
            by: by.clone(),
            because: by.clone(),
            nonce: Nonce::from_bits(1),
        })),
        token: Token::MAX,
        ttl: Some(Ttl::MAX),
        sequence: u64::MAX,
        witness: Some(Arc::new(Witness {
            name: "w".repeat(WITNESS_TEXT_MAX),
            inode: u64::MAX,
            boot: Some("b".repeat(WITNESS_TEXT_MAX)),
        })),
        secret_hash: Some([0xff; 32]),
        holder: Some(Arc::new(holder)),
        value: "\0".repeat(Record::VALUE_MAX).into(),
        history: vec![ended; Record::HISTORY_MAX].into(),
        granted_at: last,
        written_at: last,
        unstoppable: Some(Arc::new(Unstoppable { term: Nonce::from_bits(1), because: by.clone() })),
        last_success: last_success(Token::MAX.get(), NUMBER_MAX),
        process: largest_process(),
        unknown: (0..UNKNOWN_FIELDS_MAX).map(field).collect(),
        ..typical()
    }
}

fn text_of(record: &Record) -> String {
    String::from_utf8(encode(record).to_vec()).unwrap()
}

#[test]
fn a_typical_held_record_has_a_few_hundred_bytes() {
    let bytes = encode(&typical()).len();
    assert!(bytes < 700, "{bytes} bytes");
}

#[test]
fn the_largest_record_that_keeps_every_limit_fits_and_is_read_back() {
    let largest = largest();
    let text = text_of(&largest);
    assert!(text.len() > RECORD_MAX * 7 / 8, "the limit is not wider than needed: {}", text.len());
    let read = decode(text.as_bytes()).unwrap();
    assert_eq!(encode(&read), text, "and its reader can write it again");
    assert_eq!((read.holder, read.history.len()), (largest.holder, 8));
    assert_eq!(read.process, largest.process);
}

#[test]
fn fields_are_written_in_their_one_order() {
    for record in [largest(), typical(), vacant(), plain_key()] {
        let map: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text_of(&record)).unwrap();
        let known: Vec<_> =
            map.keys().filter_map(|name| KNOWN.iter().position(|known| known == name)).collect();
        assert!(known.is_sorted(), "{map:?}");
        assert_eq!(map.keys().next().unwrap(), "tenure");
    }
}

#[test]
fn fields_may_come_in_any_order_and_with_any_space() {
    let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text_of(&typical())).unwrap();
    let backwards: serde_json::Map<_, _> = map.into_iter().rev().collect();
    assert_eq!(decode(&serde_json::to_vec_pretty(&backwards).unwrap()), Ok(typical()));
    assert_eq!(decode(format!(" \r\n{}\n", text_of(&typical())).as_bytes()), Ok(typical()));
}

#[test]
fn unknown_fields_survive_a_rewrite_byte_for_byte_and_in_their_order() {
    let later = r#""zz":{ "b" : 1,  "a":[1e3, -0.0 ,"\u00e9\ud800\/"] },"a":12345678901234567890123,"":null"#;
    let text = text_of(&typical());
    let text = format!("{},{later}}}", text.strip_suffix('}').unwrap());
    let read = decode(text.as_bytes()).unwrap();
    assert_eq!(text_of(&read), text);
    let renewed = Record { nonce: Nonce::from_bits(77), sequence: read.sequence + 1, ..read };
    assert!(text_of(&renewed).ends_with(&format!(",{later}}}")));
}

#[test]
fn unknown_fields_found_among_the_known_ones_move_to_the_end() {
    let text = text_of(&vacant()).replacen("\"kept_by\"", "\"later\":[ 1 ],\"kept_by\"", 1);
    let read = decode(text.as_bytes()).unwrap();
    assert_eq!(*read.unknown, [("later".to_owned(), "[ 1 ]".to_owned())]);
    assert!(text_of(&read).ends_with(",\"later\":[ 1 ]}"));
}

#[test]
fn what_is_absent_is_not_written() {
    let planted = Record {
        term: Nonce::ZERO,
        ttl: None,
        value: "".into(),
        history: Arc::new([]),
        granted_at: WallTime::default(),
        ..vacant()
    };
    let text = text_of(&planted);
    for name in
        ["crit", "term", "ttl_ms", "witness", "secret_sha256", "holder", "value", "history", "granted_at"]
    {
        assert!(!text.contains(&format!("\"{name}\"")), "{text}");
    }
    assert_eq!(decode(text.as_bytes()), Ok(planted));
}

#[test]
fn a_clock_beyond_the_calendar_and_a_full_count_are_written_as_the_maximum() {
    let broken = WallTime::from_millis(u64::MAX);
    let record = Record { granted_at: broken, written_at: broken, sequence: u64::MAX, ..typical() };
    assert!(text_of(&record).contains(r#""written_at":"9999-12-30T22:00:00.000Z""#));
    let read = decode(&encode(&record)).unwrap();
    assert_eq!((read.written_at, read.sequence), (time::LATEST, NUMBER_MAX));
    assert_eq!(decode(&encode(&Record { sequence: read.sequence + 1, ..read.clone() })), Ok(read));
}

#[test]
fn an_inode_keeps_all_its_bits() {
    let witness = Witness { name: "w".to_owned(), inode: u64::MAX, boot: None };
    let record = Record { witness: Some(Arc::new(witness)), ..typical() };
    assert!(text_of(&record).contains(r#""inode":"18446744073709551615""#));
    assert_eq!(decode(&encode(&record)), Ok(record));
}

#[test]
fn every_broken_rule_is_an_error_that_names_its_field() {
    let revoked = |by: &str, because: &str, nonce| {
        State::Revoked(Arc::new(Revocation {
            by: by.into(),
            because: because.into(),
            nonce: Nonce::from_bits(nonce),
        }))
    };
    let closed =
        |by: &str, because: &str| State::Closed(Arc::new(Closure { by: by.into(), because: because.into() }));
    let witness = |name: &str, boot: &str| {
        Some(Arc::new(Witness { name: name.to_owned(), inode: 1, boot: Some(boot.to_owned()) }))
    };
    let unknown = |name: &str, text: &str| Arc::new([(name.to_owned(), text.to_owned())]);
    let ended = |by: &str, because: &str| End::Revoked { by: by.into(), because: because.into() };
    let unstoppable = |term, because: &str| {
        Some(Arc::new(Unstoppable { term: Nonce::from_bits(term), because: because.into() }))
    };
    let process = |term, renews_ms| {
        let info = Arc::new(ProcessInfo::default());
        Some(Arc::new(TermProcess { term: Nonce::from_bits(term), info, renews_ms }))
    };
    let long = "x".repeat(201);
    let broken: Vec<(&str, Record)> = vec![
        ("holder", Record { holder: None, ..typical() }),
        ("term", Record { term: Nonce::ZERO, ..typical() }),
        ("token", Record { token: Token::ZERO, ..typical() }),
        ("ttl_ms", Record { ttl: None, ..typical() }),
        ("nonce", Record { nonce: Nonce::ZERO, ..typical() }),
        ("value", Record { value: "x".repeat(4097).into(), ..typical() }),
        ("holder", Record { state: revoked("b", "", 1), holder: None, ..typical() }),
        ("revoked.by", Record { state: revoked("", "", 1), ..typical() }),
        ("revoked.because", Record { state: revoked("b", &long, 1), ..typical() }),
        ("revoked.nonce", Record { state: revoked("b", "", 0), ..typical() }),
        ("holder", Record { state: State::Vacant, witness: None, ..typical() }),
        ("witness", Record { witness: typical().witness, ..vacant() }),
        ("secret_sha256", Record { secret_hash: Some([1; 32]), ..vacant() }),
        ("holder", Record { state: closed("b", ""), ..typical() }),
        ("closed.by", Record { state: closed("", ""), ..vacant() }),
        ("closed.because", Record { state: closed("b", "\u{1b}[2J"), ..vacant() }),
        ("ttl_ms", Record { state: State::Reserved("b".into()), ttl: None, ..vacant() }),
        ("reserved.for", Record { state: State::Reserved("".into()), ..vacant() }),
        ("witness.name", Record { witness: witness("../etc/passwd", "b"), ..typical() }),
        ("witness.name", Record { witness: witness("..", "b"), ..typical() }),
        ("witness.name", Record { witness: witness("", "b"), ..typical() }),
        ("witness.boot", Record { witness: witness("w", "\""), ..typical() }),
        ("history", Record { history: vec![past(End::Died); 9].into(), ..typical() }),
        ("history.by", Record { history: vec![past(ended("", ""))].into(), ..typical() }),
        ("history.because", Record { history: vec![past(ended("b", "\n"))].into(), ..typical() }),
        ("unstoppable.term", Record { unstoppable: unstoppable(0, ""), ..typical() }),
        ("unstoppable.because", Record { unstoppable: unstoppable(1, "\n"), ..typical() }),
        ("last_success.token", Record { last_success: last_success(0, 1), ..vacant() }),
        ("last_success.began_us", Record { last_success: last_success(1, NUMBER_MAX + 1), ..vacant() }),
        ("last_success", Record { last_success: last_success(1, 1), ..plain_key() }),
        ("process.term", Record { process: process(0, None), ..typical() }),
        ("process.renews_ms", Record { process: process(1, Some(0)), ..typical() }),
        ("process.renews_ms", Record { process: process(1, Some(RENEWS_MAX + 1)), ..typical() }),
        ("process", Record { process: process(1, None), ..plain_key() }),
        ("nonce", Record { unknown: unknown("nonce", "1"), nonce: Nonce::ZERO, ..typical() }),
        ("token", Record { unknown: unknown("token", "1"), ..typical() }),
        ("later", Record { unknown: unknown("later", "1,\"x\":2"), ..typical() }),
        ("later", Record { unknown: unknown("later", " 1"), ..typical() }),
        ("unknown fields", Record { unknown: unknown(&"\0".repeat(1400), "1"), ..typical() }),
        (
            "unknown fields",
            Record { unknown: unknown("later", &format!("\"{}\"", "x".repeat(8192))), ..typical() },
        ),
        ("holder", Record { holder: None, ..plain_key() }),
        ("term", Record { term: Nonce::ZERO, ..plain_key() }),
        ("token", Record { token: Token::ZERO, ..plain_key() }),
        ("secret_sha256", Record { secret_hash: None, ..plain_key() }),
        ("value", Record { value: "x".repeat(4097).into(), ..plain_key() }),
        ("witness", Record { witness: typical().witness, ..plain_key() }),
        ("history", Record { history: typical().history, ..plain_key() }),
        ("unstoppable", Record { unstoppable: unstoppable(1, ""), ..plain_key() }),
        ("state", Record { state: revoked("b", "", 1), ..plain_key() }),
        ("state", Record { state: closed("b", ""), ..plain_key_without_entry() }),
        ("state", Record { state: State::Reserved("b".into()), ..plain_key_without_entry() }),
        ("holder", Record { holder: typical().holder, ..plain_key_without_entry() }),
        ("secret_sha256", Record { secret_hash: Some([7; 32]), ..plain_key_without_entry() }),
        ("ttl_ms", Record { ttl: Some(Ttl::MAX), ..plain_key_without_entry() }),
        ("value", Record { value: "x".into(), ..plain_key_without_entry() }),
        ("unstoppable", Record { unstoppable: unstoppable(1, ""), ..plain_key_without_entry() }),
    ];
    for (name, record) in broken {
        match check(&record) {
            Err(Foreign::Damaged { field, why }) => assert_eq!(field, name, "{why}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_plain_key_says_so_in_crit_and_a_lease_has_no_crit() {
    assert!(text_of(&plain_key()).starts_with(r#"{"tenure":1,"crit":["key"],"state":"held","#));
    assert!(
        text_of(&plain_key_without_entry()).starts_with(r#"{"tenure":1,"crit":["key"],"state":"vacant","#)
    );
    assert!(text_of(&typical()).starts_with(r#"{"tenure":1,"state":"held","#));
}

#[test]
fn a_plain_key_may_have_an_entry_without_a_ttl_and_a_lease_may_not() {
    let forever = Record { ttl: None, ..plain_key() };
    assert!(!text_of(&forever).contains("ttl_ms"));
    assert_eq!(decode(&encode(&forever)), Ok(forever.clone()));
    let as_lease = text_of(&forever).replacen(r#""crit":["key"],"#, "", 1);
    let missing = Foreign::Damaged { field: "ttl_ms".to_owned(), why: "is missing".to_owned() };
    assert_eq!(decode(as_lease.as_bytes()), Err(missing));
}

#[test]
fn the_same_fields_are_another_record_if_they_are_of_a_plain_key() {
    let lease = Record { kind: Kind::Lease, ..plain_key() };
    assert_ne!(text_of(&lease), text_of(&plain_key()));
    assert_ne!(decode(&encode(&lease)), decode(&encode(&plain_key())));
}

#[test]
fn unknown_fields_of_a_plain_key_survive_a_rewrite() {
    let text = text_of(&plain_key());
    let text = format!("{},\"later\":[ 1 ]}}", text.strip_suffix('}').unwrap());
    assert_eq!(text_of(&decode(text.as_bytes()).unwrap()), text);
}

#[test]
#[should_panic(expected = "could not be read back: the record is damaged: \"holder\" is missing")]
fn what_could_not_be_read_back_is_not_written() {
    encode(&Record { holder: None, ..typical() });
}
