//! Values that other programs, other versions, broken disks and attackers leave under a key.

use proptest::prelude::*;
use proptest::sample::Index;

use super::{arbitrary, largest, plain_key, text_of, typical, vacant};
use crate::record::codec::*;

/// Asserts that accepted bytes can be written again and are then the same. True if they were accepted.
fn accepted_only_if_it_can_be_rewritten(bytes: &[u8]) -> bool {
    let Ok(record) = decode(bytes) else { return false };
    assert_eq!(decode(&encode(&record)), Ok(record), "{}", String::from_utf8_lossy(bytes));
    true
}

fn foreign(text: &str) -> Foreign {
    match decode(text.as_bytes()) {
        Err(foreign) => foreign,
        Ok(record) => panic!("accepted: {text}\n{record:?}"),
    }
}

fn is_not_json(bytes: &[u8]) -> bool {
    matches!(decode(bytes), Err(Foreign::NotJson { .. }))
}

/// Name of the damaged field.
fn damaged(text: &str) -> String {
    match foreign(text) {
        Foreign::Damaged { field, .. } => field,
        other => panic!("{other:?}: {text}"),
    }
}

/// A typical record with the JSON of one top-level field replaced.
fn with(name: &str, json: &str) -> String {
    let mut map: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&text_of(&typical())).unwrap();
    map.insert(name.to_owned(), "@here@".into());
    serde_json::to_string(&map).unwrap().replace("\"@here@\"", json)
}

/// A typical record with a part of its text replaced.
fn edited(from: &str, to: &str) -> String {
    let text = text_of(&typical());
    assert!(text.contains(from), "{from} is not in {text}");
    text.replacen(from, to, 1)
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(!accepted_only_if_it_can_be_rewritten(&bytes));
    }

    #[test]
    fn mutated_records_never_panic(
        record in arbitrary::record(),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode(&record).to_vec();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        accepted_only_if_it_can_be_rewritten(&bytes);
    }

    #[test]
    fn records_with_pieces_lost_doubled_or_swapped_never_panic(
        record in arbitrary::record(),
        (a, b, c) in any::<(Index, Index, Index)>(),
    ) {
        let bytes = encode(&record);
        let mut cuts = [a, b, c].map(|cut| cut.index(bytes.len()));
        cuts.sort_unstable();
        let [head, first, second, tail] =
            [&bytes[..cuts[0]], &bytes[cuts[0]..cuts[1]], &bytes[cuts[1]..cuts[2]], &bytes[cuts[2]..]];
        accepted_only_if_it_can_be_rewritten(&[head, second, tail].concat());
        accepted_only_if_it_can_be_rewritten(&[head, first, first, second, tail].concat());
        accepted_only_if_it_can_be_rewritten(&[head, second, first, tail].concat());
    }
}

#[test]
fn every_prefix_of_a_record_is_no_record() {
    // The largest record has too many prefixes to try them all.
    for (record, step) in [(typical(), 1), (vacant(), 1), (largest(), 101)] {
        let bytes = encode(&record);
        assert!((0..bytes.len()).step_by(step).all(|end| is_not_json(&bytes[..end])));
    }
}

#[test]
fn other_bytes_are_not_json() {
    let record = text_of(&typical());
    let bom = format!("\u{feff}{record}");
    let garbage = format!("{record}x");
    let two = format!("{record}{record}");
    let nul = format!("{record}\0");
    let newline_in_text = edited("shard-7", "shard\n7");
    for text in ["", " ", "hello", "{", "nul", "NaN", &bom, &garbage, &two, &nul, &newline_in_text] {
        assert!(is_not_json(text.as_bytes()), "{text}");
    }
    assert!(is_not_json(b"\x00\xff\xfe"));
    assert!(is_not_json(b"{\"tenure\":1,\"value\":\"\xff\"}"));
    assert!(is_not_json(b"{\"tenure\":1,\"\\ud800\":1}"));
    for number in ["NaN", "Infinity", "+1", "01", ".5", "1.", "0x1"] {
        assert!(is_not_json(with("token", number).as_bytes()), "{number}");
    }
}

#[test]
fn json_of_another_program_is_recognised_as_such() {
    for text in [
        "{}",
        "[]",
        "null",
        "7",
        "\"tenure\"",
        "[{\"tenure\":1}]",
        r#"{"holderIdentity":"a","leaseDurationSeconds":15}"#,
        r#"{"tenure":"1"}"#,
        r#"{"tenure":null}"#,
        r#"{"tenure":{"state":"held"}}"#,
        r#"{"Tenure":1}"#,
    ] {
        assert_eq!(foreign(text), Foreign::OtherProgram, "{text}");
    }
}

#[test]
fn a_newer_version_is_called_newer_whatever_else_it_has() {
    for text in [
        r#"{"tenure":2}"#,
        r#"{"tenure":2,"state":{"of":"matter"},"crit":7,"token":-1.5,"x":1,"x":2}"#,
        r#"{"lease":{"id":1},"tenure":2,"kept_by":"session"}"#,
    ] {
        assert_eq!(foreign(text), Foreign::NewerVersion { found: 2 });
    }
    let many: String = (0..5000).map(|field| format!("\"{field}\":1,")).collect();
    assert_eq!(foreign(&format!("{{{many}\"tenure\":3}}")), Foreign::NewerVersion { found: 3 });
}

#[test]
fn a_format_version_that_is_no_version_is_damage() {
    for version in ["0", "-1", "1.5", "1.0", "1e0", "18446744073709551617"] {
        assert_eq!(damaged(&with("tenure", version)), "tenure", "{version}");
    }
}

#[test]
fn features_that_must_be_understood_are_named() {
    let names = vec!["sessions".to_owned(), "quorum".to_owned()];
    assert_eq!(
        foreign(&with("crit", r#"["sessions","quorum"]"#)),
        Foreign::UnknownCrit { names: names.clone() }
    );
    // Also if this version understands nothing else in the record.
    assert_eq!(foreign(r#"{"tenure":1,"crit":["sessions","quorum"]}"#), Foreign::UnknownCrit { names });
    for crit in ["{}", "null", "\"sessions\"", "[1]", "[null]", "[[]]"] {
        assert!(damaged(&with("crit", crit)).starts_with("crit"), "{crit}");
    }
    assert_eq!(decode(with("crit", "[ ]").as_bytes()), Ok(typical()), "a list of nothing asks for nothing");
}

#[test]
fn a_plain_key_needs_exactly_one_feature() {
    let with_crit = |crit: &str| text_of(&plain_key()).replacen(r#"["key"]"#, crit, 1);
    let unknown = |name: &str| Foreign::UnknownCrit { names: vec![name.to_owned()] };
    for spelled in [r#"[ "key" ]"#, r#"["\u006bey"]"#] {
        assert_eq!(decode(with_crit(spelled).as_bytes()), Ok(plain_key()), "{spelled}");
    }
    for crit in [r#"["key","sessions"]"#, r#"["sessions","key"]"#, r#"["key","sessions","key"]"#] {
        assert_eq!(foreign(&with_crit(crit)), unknown("sessions"), "only what is unknown is named");
    }
    for other in ["Key", "keys", "", " key"] {
        assert_eq!(foreign(&with_crit(&format!("[{other:?}]"))), unknown(other));
    }
    assert_eq!(damaged(&with_crit(r#"["key","key"]"#)), "crit");
    assert_eq!(damaged(&with_crit(r#"["key",1]"#)), "crit[1]");
}

#[test]
fn an_unknown_state_is_named_and_so_is_another_keeper() {
    assert_eq!(
        foreign(&with("state", r#""quiesced""#)),
        Foreign::UnknownState { found: "quiesced".to_owned() }
    );
    assert_eq!(foreign(&with("state", r#""Held""#)), Foreign::UnknownState { found: "Held".to_owned() });
    assert_eq!(damaged(&with("state", "1")), "state");
    for keeper in [r#""session/7""#, r#"{"session":"7"}"#, "null", "7", r#""Self""#] {
        assert_eq!(foreign(&with("kept_by", keeper)), Foreign::KeptBySession { found: keeper.to_owned() });
    }
}

#[test]
fn a_later_versions_word_for_an_end_survives_a_rewrite() {
    let record = decode(edited(r#""end":"released""#, r#""end":"handed_over""#).as_bytes()).unwrap();
    assert_eq!(record.history[0].end, crate::record::End::Other("handed_over".into()));
    assert_eq!(decode(&encode(&record)).unwrap(), record);
    assert_eq!(damaged(&edited("released", "")), "history.end");
}

#[test]
fn parts_that_would_be_lost_make_a_record_foreign() {
    let unknown = |field: &str| Foreign::UnknownPart { field: field.to_owned() };
    assert_eq!(foreign(&edited(r#""address":"#, r#""zone":"eu","address":"#)), unknown("holder.zone"));
    assert_eq!(foreign(&edited(r#""inode":"#, r#""pid":1,"inode":"#)), unknown("witness.pid"));
    assert_eq!(
        foreign(&edited(r#""end":"released""#, r#""end":"released","by":"x""#)),
        unknown("history[0].by")
    );
    let revoked =
        r#""revoked","revoked":{"by":"b","because":"","nonce":"0000000000000000000000000000000f","at":1}"#;
    assert_eq!(foreign(&edited(r#""held""#, revoked)), unknown("revoked.at"));
    let process = format!(r#"{{"term":"{}","rack":"b7"}}"#, "1".repeat(32));
    assert_eq!(foreign(&with("process", &process)), unknown("process.rack"));
}

#[test]
fn details_of_a_state_belong_to_that_state() {
    assert_eq!(damaged(&edited(r#""held""#, r#""revoked""#)), "state");
    assert_eq!(damaged(&edited(r#""held""#, r#""held","closed":{"by":"a","because":"b"}"#)), "closed");
    assert_eq!(damaged(&edited(r#""held""#, r#""closed","reserved":{"for":"a"}"#)), "reserved");
    assert_eq!(damaged(&edited(r#""held""#, r#""reserved","reserved":{"for":"a"}"#)), "holder");
}

#[test]
fn a_field_that_is_there_twice_is_damage_also_when_equal_or_spelled_differently() {
    let mut doubled = 0;
    for name in KNOWN {
        let map: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text_of(&largest())).unwrap();
        let Some(json) = map.get(name) else { continue };
        let text = text_of(&largest());
        let escaped = format!("\\u{:04x}{}", name.as_bytes()[0], &name[1..]);
        for spelled in [name, &escaped] {
            let twice = format!("{},\"{spelled}\":{json}}}", text.strip_suffix('}').unwrap());
            assert!(matches!(foreign(&twice), Foreign::Damaged { .. } | Foreign::TooLarge { .. }), "{name}");
            let twice = text_of(&typical()).replacen('{', &format!("{{\"{spelled}\":0,"), 1);
            assert!(decode(twice.as_bytes()).is_err(), "{name}");
        }
        doubled += 1;
    }
    assert_eq!(doubled, 19, "all but crit, reserved and closed");
    assert_eq!(damaged(&edited(r#""tenure":1"#, r#""tenure":1,"tenure":1"#)), "tenure");
    assert_eq!(damaged(&edited(r#""kept_by""#, r#""later":1,"later":1,"kept_by""#)), "later");
    assert_eq!(damaged(&edited(r#""pid":"4711""#, r#""pid":"4711","pid":"4711""#)), "holder.labels");
    assert_eq!(damaged(&edited(r#""id":"#, r#""id":"other","id":"#)), "holder.id");
}

#[test]
fn numbers_are_whole_positive_and_exact_everywhere() {
    for number in
        ["-1", "-0", "9007199254740992", "1e3", "1.0", "1E2", "\"7\"", "null", "[]", "18446744073709551616"]
    {
        for name in ["token", "ttl_ms", "sequence"] {
            assert_eq!(damaged(&with(name, number)), name, "{number}");
        }
    }
    assert!(decode(with("token", "9007199254740991").as_bytes()).is_ok());
    assert_eq!(damaged(&with("token", "0")), "token");
    for ttl in ["0", "49", "86400001"] {
        assert_eq!(damaged(&with("ttl_ms", ttl)), "ttl_ms");
    }
    for inode in ["1", "\"-1\"", "\"+1\"", "\"01\"", "\"\"", "\"18446744073709551616\"", "\"1e3\""] {
        assert_eq!(damaged(&edited("\"1835021\"", inode)), "witness.inode", "{inode}");
    }
}

#[test]
fn nonces_and_hashes_are_lowercase_and_of_their_one_length() {
    let zeros = "0".repeat(32);
    let upper = format!("{}F", "0".repeat(31));
    let wide = format!("é{}", "0".repeat(30));
    let long = "1".repeat(33);
    for text in
        ["", "1", "0x1f", &zeros, &upper, &wide, &long, &"1".repeat(31), &" 1".repeat(16), &"+1".repeat(16)]
    {
        for name in ["term", "nonce"] {
            assert_eq!(damaged(&with(name, &format!("\"{text}\""))), name);
        }
        assert_eq!(damaged(&with("secret_sha256", &format!("\"{text}\""))), "secret_sha256");
    }
}

#[test]
fn times_are_written_in_their_one_form_or_would_not_survive_a_rewrite() {
    for time in [
        "",
        "now",
        "2026-11-15",
        "2026-11-15T05:30:00Z",
        "2026-11-15T05:30:00.25Z",
        "2026-11-15t05:30:00.250z",
        "2026-11-15T05:30:00.250+00:00",
        "2026-11-15T06:30:00.250+01:00",
        "2026-02-30T05:30:00.250Z",
        "2026-11-15T05:30:60.250Z",
        "1969-12-31T23:59:59.999Z",
        "9999-12-31T23:59:59.999Z",
        "2026-11-15 05:30:00.250Z",
        "+02026-11-15T05:30:00.2Z",
        "(beyond the calendar)",
        "２２２２２２２２",
    ] {
        assert_eq!(damaged(&with("written_at", &format!("\"{time}\""))), "written_at", "{time}");
    }
    assert_eq!(damaged(&with("granted_at", "1763184600250")), "granted_at");
}

#[test]
fn texts_are_unicode_and_within_their_limits() {
    for text in [r#""\ud800""#, r#""\udc00\ud800""#, "7", "null", "{}"] {
        assert_eq!(damaged(&with("value", text)), "value", "{text}");
    }
    assert_eq!(&*decode(with("value", r#""a\u0000\ud834\udd1e""#).as_bytes()).unwrap().value, "a\0𝄞");
    assert_eq!(damaged(&with("value", &format!("\"{}\"", "é".repeat(2049)))), "value");
    assert_eq!(damaged(&with("holder", r#"{"id":""}"#)), "holder");
    assert_eq!(damaged(&with("holder", r#"{"id":"\u001b[2J"}"#)), "holder");
    assert_eq!(damaged(&with("holder", r#"{"id":"a","labels":{"x":1}}"#)), "holder.labels");
    assert_eq!(damaged(&with("holder", r#"{"id":"a","labels":{"\ud800":""}}"#)), "holder.labels");
    let labels: Vec<String> = (0..17).map(|label| format!("\"{label}\":\"x\"")).collect();
    assert_eq!(
        damaged(&with("holder", &format!(r#"{{"id":"a","labels":{{{}}}}}"#, labels.join(",")))),
        "holder"
    );
}

#[test]
fn a_process_that_could_not_be_shown_or_written_again_is_damage() {
    let process = |member: &str| with("process", &format!(r#"{{"term":"{}",{member}}}"#, "1".repeat(32)));
    let long = |name: &str, bytes: usize| process(&format!("\"{name}\":\"{}\"", "x".repeat(bytes)));
    for name in ["host", "user", "container", "command"] {
        for text in [r#""""#, r#""a\u0000""#, r#""\u001b[2J""#, r#""\ud800""#, "7", "null", "[]"] {
            assert_eq!(damaged(&process(&format!("\"{name}\":{text}"))), format!("process.{name}"), "{text}");
        }
        let max = if name == "command" { 1024 } else { 200 };
        assert!(decode(long(name, max).as_bytes()).is_ok());
        assert_eq!(damaged(&long(name, max + 1)), format!("process.{name}"));
        assert_eq!(damaged(&long(name, 10_000)), format!("process.{name}"));
    }
    for pid in ["-1", "4294967296", "\"1\"", "1.0"] {
        assert_eq!(damaged(&process(&format!("\"pid\":{pid}"))), "process.pid", "{pid}");
    }
    for renews in ["0", "86400001", "-5"] {
        assert_eq!(damaged(&process(&format!("\"renews_ms\":{renews}"))), "process.renews_ms", "{renews}");
    }
    assert_eq!(damaged(&with("process", "{}")), "process.term");
    assert_eq!(damaged(&with("process", "\"sleep 100\"")), "process");
}

#[test]
fn a_missing_required_field_is_named() {
    for name in ["state", "kept_by", "term", "token", "ttl_ms", "nonce", "sequence", "holder", "written_at"] {
        let mut map: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text_of(&typical())).unwrap();
        map.shift_remove(name);
        assert_eq!(damaged(&serde_json::to_string(&map).unwrap()), name);
    }
    let lacking = edited(r#""holder":"host-b.example.net","#, "");
    assert_eq!(damaged(&lacking), "history[0].holder");
}

#[test]
fn a_value_of_the_wrong_type_in_any_field_never_panics() {
    let values = [
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e400",
        "\"\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "[]",
        "[[]]",
        "[null]",
        "{}",
        r#"{"a":1}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"\ud800":1}"#,
        r#"[{}]"#,
    ];
    for name in KNOWN {
        for value in values {
            accepted_only_if_it_can_be_rewritten(with(name, value).as_bytes());
        }
    }
}

#[test]
fn depth_costs_no_stack() {
    let deep = |open: &str, count| open.repeat(count);
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        assert!(is_not_json(deep(open, 8000).as_bytes()), "{open}");
    }
    let balanced = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    assert_eq!(foreign(&balanced), Foreign::OtherProgram);
    for name in KNOWN {
        assert!(decode(with(name, &balanced).as_bytes()).is_err(), "{name}");
    }
    let nested = format!("{}{}", "[".repeat(4000), "]".repeat(4000));
    assert!(
        accepted_only_if_it_can_be_rewritten(with("later", &nested).as_bytes()),
        "kept as text, never entered"
    );
    assert_eq!(damaged(&with("later", &balanced)), "unknown fields");
}

#[test]
fn a_megabyte_is_refused_by_its_length_alone() {
    for byte in [b'[', b' ', 0, 0xff] {
        assert_eq!(decode(&vec![byte; 1 << 20]), Err(Foreign::TooLarge { bytes: 1 << 20 }));
    }
    let record = text_of(&typical());
    let padded = |bytes: usize| format!("{record}{}", " ".repeat(bytes - record.len()));
    assert_eq!(decode(padded(RECORD_MAX).as_bytes()), Ok(typical()));
    assert_eq!(foreign(&padded(RECORD_MAX + 1)), Foreign::TooLarge { bytes: RECORD_MAX + 1 });
}

#[test]
fn thousands_of_unknown_fields_are_refused() {
    let many: String = (0..UNKNOWN_FIELDS_MAX).map(|field| format!("\"{field}\":0,")).collect();
    let text = text_of(&typical()).replacen("\"state\"", &format!("{many}\"state\""), 1);
    assert!(accepted_only_if_it_can_be_rewritten(text.as_bytes()));
    assert_eq!(damaged(&text.replacen("\"state\"", "\"more\":0,\"state\"", 1)), "unknown fields");
}

#[test]
fn errors_are_short_and_have_no_control_characters_whatever_they_quote() {
    let long = "\\u001b\\n".repeat(3000);
    let long = format!("\"{long}\"");
    let names = format!("[{}]", vec!["\"\\u001b[2J\""; 4000].join(","));
    let part = format!(r#"{{"id":"a",{long}:1}}"#);
    let labels = format!(r#"{{"id":"a","labels":{{{long}:"x"}}}}"#);
    let control = format!(r#"{{"id":"{}"}}"#, "\\u0085".repeat(100));
    for (name, json) in [
        ("state", long.as_str()),
        ("kept_by", &long),
        ("crit", &names),
        ("holder", &part),
        ("holder", &labels),
        ("holder", &control),
        ("term", &long),
        ("written_at", &long),
        ("witness", &part),
    ] {
        let sentence = foreign(&with(name, json)).to_string();
        assert!(sentence.len() < 1500, "{sentence}");
        assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
    }
}
