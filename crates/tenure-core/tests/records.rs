//! Stored records. The fixtures of a released format version are never edited: every later version of this library
//! reads them, and writes them back byte for byte.

use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::record::{
    Closure, End, Kind, LastSuccess, Nonce, Past, Record, Revocation, State, TermProcess, Ttl, Unstoppable,
    Witness, decode, encode,
};
use tenure_core::{Holder, ProcessInfo, Token, WallTime};
use tenure_store::StoreTime;

#[test]
fn every_fixture_is_read_as_expected_and_written_back_byte_for_byte() {
    for (name, expected) in expected() {
        let bytes = fixture(name);
        let record = decode(&bytes).unwrap_or_else(|foreign| panic!("{name}: {foreign}"));
        assert_eq!(record, expected, "{name}");
        let written = encode(&record);
        assert_eq!(written, bytes, "{name}: {}", String::from_utf8_lossy(&written));
    }
}

#[test]
fn no_fixture_is_forgotten() {
    let mut names: Vec<String> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected: Vec<String> = expected().iter().map(|(name, _)| format!("{name}.json")).collect();
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn ordinary_records_are_a_few_hundred_bytes() {
    for name in ["planted", "held", "held-by-handle", "vacant"] {
        assert!(fixture(name).len() < 700, "{name}");
    }
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records/v1")
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(directory().join(name).with_extension("json")).unwrap()
}

fn expected() -> Vec<(&'static str, Record)> {
    vec![
        ("planted", planted()),
        ("held", held()),
        ("held-by-handle", held_by_handle()),
        ("vacant", vacant()),
        ("last-success", last_success()),
        ("process", process()),
        ("process-of-an-earlier-term", process_of_an_earlier_term()),
        ("revoked", revoked()),
        ("unstoppable", unstoppable()),
        ("unstoppable-revoked", unstoppable_revoked()),
        ("unstoppable-of-an-earlier-term", unstoppable_of_an_earlier_term()),
        ("reserved", reserved()),
        ("closed", closed()),
        ("unknown-fields", unknown_fields()),
        ("full-history", full_history()),
        ("key-planted", key_planted()),
        ("key", key()),
        ("key-without-ttl", key_without_ttl()),
        ("key-released", key_released()),
    ]
}

/// 2026-11-15T05:30:00.000Z.
const HALF_PAST_FIVE: u64 = 1_794_720_600_000;

fn planted() -> Record {
    let token = Token::new(1_794_720_600_000_000).unwrap();
    let nonce = Nonce::from_bits(0x0c9a_7be2_5d41_4e6f_8a1b_2c3d_4e5f_6071);
    Record::new(token, nonce, WallTime::from_millis(HALF_PAST_FIVE))
}

fn changed(mut record: Record, change: impl FnOnce(&mut Record)) -> Record {
    change(&mut record);
    record
}

fn granted() -> Record {
    changed(planted(), |it| {
        it.state = State::Held;
        it.term = Nonce::from_bits(0x8d3f_6a5b_1c2e_4f70_8192_a3b4_c5d6_e7f8);
        it.token = Token::new(1_794_720_600_250_000).unwrap();
        it.ttl = Ttl::from_millis(15_000);
        it.granted_at = WallTime::from_millis(HALF_PAST_FIVE + 250);
        it.written_at = WallTime::from_millis(HALF_PAST_FIVE + 5250);
    })
}

fn held() -> Record {
    let holder = Holder::new("host-a").unwrap().label("version", "2.4.1").unwrap();
    let holder = holder.label("pid", "4711").unwrap().at("10.0.0.7:7070").unwrap();
    let boot = "6c1f2f0e-5f0b-4b52-8d2c-6a3a6f0f5f11".to_owned();
    changed(granted(), |it| {
        it.sequence = 17;
        it.witness = Some(Arc::new(Witness::new("9f86d081884c7d65", 1_835_021).with_boot(boot)));
        it.holder = Some(Arc::new(holder));
        it.value = "shard-7".into();
        it.history = Arc::new([first_term()]);
    })
}

fn held_by_handle() -> Record {
    let hash = [
        0x9f, 0x86, 0xd0, 0x81, 0x88, 0x4c, 0x7d, 0x65, 0x9a, 0x2f, 0xea, 0xa0, 0xc5, 0x5a, 0xd0, 0x15, 0xa3,
        0xbf, 0x4f, 0x1b, 0x2b, 0x0b, 0x82, 0x2c, 0xd1, 0x5d, 0x6c, 0x15, 0xb0, 0xf0, 0x0a, 0x08,
    ];
    changed(granted(), |it| {
        it.sequence = 2;
        it.secret_hash = Some(hash);
        it.holder = Some(Arc::new(Holder::new("nightly.sh").unwrap()));
    })
}

fn vacant() -> Record {
    changed(granted(), |it| {
        it.state = State::Vacant;
        it.sequence = 18;
        it.value = "shard-7".into();
        it.history = Arc::new([first_term(), second_term()]);
    })
}

fn last_success() -> Record {
    changed(vacant(), |it| {
        let (token, began) = (it.token, StoreTime::from_micros(1_794_720_600_249_871));
        it.last_success = Some(LastSuccess { token, began });
    })
}

fn process() -> Record {
    let info = ProcessInfo::default().with_host("host-a").with_pid(1).with_user("backup");
    let info =
        info.with_container("3f1e2d3c4b5a").with_command(["pg_dump", "--file", "/srv/a b.sql", "billing"]);
    changed(held(), |it| {
        it.process = Some(Arc::new(TermProcess::new(it.term, Arc::new(info)).renewed_every(5000)));
    })
}

/// As a program that does not know the field leaves it: it has no meaning here.
fn process_of_an_earlier_term() -> Record {
    let term = Nonce::from_bits(0x3f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0);
    let info = ProcessInfo::default().with_host("host-b").with_pid(4711);
    changed(held_by_handle(), |it| it.process = Some(Arc::new(TermProcess::new(term, Arc::new(info)))))
}

#[test]
fn a_process_is_shown_only_in_a_held_record_of_its_own_term() {
    let command = process().holder_process().and_then(|process| process.command().map(str::to_owned));
    assert_eq!(command.as_deref(), Some("pg_dump --file '/srv/a b.sql' billing"));
    assert_eq!(process().renews_ms(), Some(5000));
    assert_eq!(process_of_an_earlier_term().holder_process(), None);
    let left_by_an_older_program = changed(vacant(), |it| it.process = process().process);
    assert_eq!(
        (left_by_an_older_program.holder_process(), left_by_an_older_program.renews_ms()),
        (None, None)
    );
    assert_eq!(
        decode(&encode(&left_by_an_older_program)).unwrap(),
        left_by_an_older_program,
        "and it is no damage"
    );
}

fn revoked() -> Record {
    let revocation = Revocation::new(
        "ops@laptop",
        "host-a is stuck; see \"INC-42\"",
        Nonce::from_bits(0x3f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0),
    );
    changed(held(), |it| {
        it.state = State::Revoked(Arc::new(revocation));
        it.sequence = 18;
    })
}

fn unstoppable() -> Record {
    let because = "process 4711 (sudo) runs as another user";
    changed(held(), |it| it.unstoppable = Some(Arc::new(Unstoppable::new(held().term, because))))
}

/// As its holder renews it: the holder's last nonce is the nonce of the record.
fn unstoppable_revoked() -> Record {
    let mut revocation = match revoked().state {
        State::Revoked(revocation) => Arc::unwrap_or_clone(revocation),
        other => unreachable!("{other:?}"),
    };
    revocation.nonce = revoked().nonce;
    changed(unstoppable(), |it| {
        it.state = State::Revoked(Arc::new(revocation));
        it.sequence = 19;
    })
}

/// As a program that does not know the field leaves it: it has no meaning here.
fn unstoppable_of_an_earlier_term() -> Record {
    let term = Nonce::from_bits(0x3f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0);
    let because = "process 4711 (sudo) runs as another user";
    changed(held_by_handle(), |it| it.unstoppable = Some(Arc::new(Unstoppable::new(term, because))))
}

#[test]
fn a_term_cannot_be_stopped_if_its_own_holder_says_so() {
    assert_eq!(
        unstoppable().cannot_stop().map(|because| &**because),
        Some("process 4711 (sudo) runs as another user")
    );
    assert!(unstoppable_revoked().cannot_stop().is_some());
    assert_eq!(unstoppable_of_an_earlier_term().cannot_stop(), None);
    assert_eq!(held().cannot_stop(), None);
}

fn reserved() -> Record {
    changed(granted(), |it| {
        it.state = State::Reserved("host-c".into());
        it.sequence = 18;
        it.history = Arc::new([second_term()]);
    })
}

fn closed() -> Record {
    let closure = Closure::new("ops@laptop", "moved to billing/hourly");
    changed(granted(), |it| {
        it.state = State::Closed(Arc::new(closure));
        it.sequence = 19;
        it.history = Arc::new([first_term()]);
    })
}

fn unknown_fields() -> Record {
    let zone = r#"{ "term" : "8d3f6a5b1c2e4f708192a3b4c5d6e7f8", "name":"eu\u002dwest" }"#;
    let fields =
        [("zone", zone), ("big", "12345678901234567890123"), ("float", "-0.0e+00"), ("audit", "[null, {}]")];
    changed(granted(), |it| {
        it.state = State::Vacant;
        it.sequence = 18;
        it.value = "a\tb\0é𝄞".into();
        it.unknown = fields.map(|(name, json)| (name.to_owned(), json.to_owned())).into();
    })
}

fn full_history() -> Record {
    let ends = [
        End::Released,
        End::RanOut,
        End::Died,
        End::Revoked { by: "ops@laptop".into(), because: "maintenance".into() },
    ];
    // 2026-11-15T00:00:00.000Z, plus an hour for each term.
    let hour = |index: u64| HALF_PAST_FIVE - 19_800_000 + index * 3_600_000;
    let past = |(index, end): (u64, &End)| {
        Past::new(
            Token::new(41 + index).unwrap(),
            format!("host-{index}"),
            WallTime::from_millis(hour(index)),
            WallTime::from_millis(hour(index + 1) - 1),
            end.clone(),
        )
    };
    changed(granted(), |it| {
        it.token = Token::new(49).unwrap();
        it.ttl = Ttl::from_millis(2000);
        it.sequence = (1 << 53) - 1;
        it.witness = Some(Arc::new(Witness::new("w", u64::MAX)));
        it.holder = Some(Arc::new(Holder::new("host-8").unwrap()));
        it.history = (0..8).zip(ends.iter().cycle()).map(past).collect();
    })
}

fn key_planted() -> Record {
    let token = Token::new(1_794_720_600_000_000).unwrap();
    let nonce = Nonce::from_bits(0x0c9a_7be2_5d41_4e6f_8a1b_2c3d_4e5f_6071);
    Record::new_key(token, nonce, WallTime::from_millis(HALF_PAST_FIVE))
}

fn key() -> Record {
    changed(held_by_handle(), |it| {
        it.kind = Kind::Key;
        it.holder = Some(Arc::new(Holder::new("host-a").unwrap()));
        it.value = "shard-7".into();
    })
}

fn key_without_ttl() -> Record {
    changed(key(), |it| it.ttl = None)
}

fn key_released() -> Record {
    changed(key(), |it| {
        it.state = State::Vacant;
        it.sequence = 3;
        it.ttl = None;
        it.holder = None;
        it.secret_hash = None;
        it.value = "".into();
    })
}

fn first_term() -> Past {
    Past::new(
        Token::new(1_794_700_000_000_000).unwrap(),
        "host-b",
        WallTime::from_millis(1_794_700_000_000),
        WallTime::from_millis(HALF_PAST_FIVE - 100),
        End::Released,
    )
}

fn second_term() -> Past {
    Past::new(
        Token::new(1_794_720_600_250_000).unwrap(),
        "host-a",
        WallTime::from_millis(HALF_PAST_FIVE + 250),
        WallTime::from_millis(HALF_PAST_FIVE + 5250),
        End::Released,
    )
}
