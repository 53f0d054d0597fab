//! `tenure history`: the last terms, as text and as JSON.

mod support;

use serde_json::json;
use support::{Home, block_on, fixture, hold, plant, process, refuses_a_foreign_record, sleep_ms};

#[test]
fn a_key_without_a_term_has_an_empty_history_and_reading_it_creates_nothing() {
    let home = Home::new("history-nothing");
    let did = home.tenure(&["history", "x"]);
    assert_eq!((did.code, did.out.as_str()), (0, ""));
    assert_eq!(
        did.err,
        format!("no term of x is known in {}: it was never held, or its record was removed\n", home.url())
    );
    let expected = json!({ "store": home.url(), "name": "x", "state": "absent", "terms": [] });
    assert_eq!(home.tenure(&["history", "x", "--json"]).json(), expected);
    assert!(!home.leases().exists());
    plant(&home, "x", fixture("planted"));
    assert_eq!(home.tenure(&["history", "x"]).err, did.err, "to be planted is not to be held");
    assert_eq!(home.tenure(&["history", "x", "--json"]).json()["state"], "vacant");
}

#[test]
fn the_present_term_comes_first_and_then_the_past_ones_newest_first() {
    let home = Home::new("history-terms");
    let first = process(&home, "web-1");
    let lease = hold(&first, "x", 60_000);
    let one = lease.token();
    block_on(lease.release()).unwrap();
    let (second, third) = (process(&home, "web-2"), process(&home, "web-3"));
    let lease = hold(&second, "x", 2_000);
    let two = lease.token();
    let request = third.lease("x").unwrap().ttl(std::time::Duration::from_secs(60));
    let taken = block_on(request.revoke("web-2 is stuck").manual().acquire()).unwrap();
    let did = home.tenure(&["history", "x"]);
    assert_eq!((did.code, did.err.as_str()), (0, ""), "{did:?}");
    let lines: Vec<&str> = did.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", did.out);
    assert!(lines[0].starts_with("GRANTED AT"), "{}", did.out);
    let at = |line: usize, words: &[&str]| {
        for word in words {
            assert!(lines[line].contains(word), "line {line} lacks {word:?}:\n{}", did.out);
        }
    };
    at(1, &["web-3", &taken.token().to_string(), "still held, at most 1m"]);
    at(2, &["web-2", &two.to_string(), "taken over by web-3 because web-2 is stuck"]);
    at(3, &["web-1", &one.to_string(), "released"]);
    let told = home.tenure(&["history", "x", "--json"]).json();
    assert_eq!(told["state"], "held");
    let terms = told["terms"].as_array().unwrap();
    assert_eq!((terms.len(), &terms[0]["end"], &terms[0]["ended_at"]), (3, &json!(null), &json!(null)));
    assert!(terms[0]["held_ms"].is_u64() && terms[2]["held_ms"].is_u64());
    assert_eq!((&terms[1]["end"], &terms[1]["by"]), (&json!("revoked"), &json!("web-3")));
    assert_eq!((&terms[1]["because"], &terms[2]["end"]), (&json!("web-2 is stuck"), &json!("released")));
    let tokens: Vec<u64> = terms.iter().map(|term| term["token"].as_u64().unwrap()).collect();
    assert!(tokens.is_sorted_by(|newer, older| newer > older), "{tokens:?}");
}

#[test]
fn a_term_that_ran_out_is_shown_as_such() {
    let home = Home::new("history-over");
    plant(&home, "x", fixture("held").replacen("\"ttl_ms\":15000", "\"ttl_ms\":100", 1));
    sleep_ms(150);
    let did = home.tenure(&["history", "x"]);
    let lines: Vec<&str> = did.out.lines().collect();
    assert!(lines[1].ends_with("?         run out, and not granted since"), "{}", did.out);
    assert!(lines[2].ends_with("5h43m     released"), "{}", did.out);
    let told = home.tenure(&["history", "x", "--json"]).json();
    assert_eq!((&told["state"], &told["terms"][0]["held_ms"]), (&json!("run-out"), &json!(null)));
}

#[test]
fn wall_clocks_that_disagree_give_no_nonsense() {
    let home = Home::new("history-clocks");
    let ended_before_it_began = "\"ended_at\":\"2026-11-14T05:29:59.900Z\"";
    let record =
        fixture("held").replacen("\"ended_at\":\"2026-11-15T05:29:59.900Z\"", ended_before_it_began, 1);
    let from_the_future = record.replacen(
        "\"granted_at\":\"2026-11-15T05:30:00.250Z\"",
        "\"granted_at\":\"2199-01-01T00:00:00.000Z\"",
        1,
    );
    assert_ne!(from_the_future, record);
    plant(&home, "x", from_the_future);
    let terms = home.tenure(&["history", "x", "--json"]).json()["terms"].clone();
    assert_eq!((&terms[0]["held_ms"], &terms[1]["held_ms"]), (&json!(null), &json!(null)));
    let did = home.tenure(&["history", "x"]);
    assert!(did.out.lines().nth(2).unwrap().ends_with("  ?         released"), "{}", did.out);
}

#[test]
fn text_of_other_processes_is_escaped_for_terminals() {
    let home = Home::new("history-terminal");
    let record = fixture("full-history").replace("host-b", "host\u{202e}b");
    plant(&home, "x", record.replacen("\"released\"", "\"evap\u{202e}orated\"", 1));
    let did = home.tenure(&["history", "x"]);
    assert!(!did.out.contains('\u{202e}'), "{}", did.out);
    assert!(did.out.contains("evap\\u{202e}orated"), "{}", did.out);
}

#[test]
fn foreign_records_and_invalid_names_are_refused() {
    let home = Home::new("history-bad");
    refuses_a_foreign_record(&home, "history");
    home.tenure(&["history", ".."]).failed(
        64,
        "a key must not have '.' or '..' between its slashes: write it like billing/nightly, not \"..\"",
    );
    home.tenure(&["history"])
        .failed(64, "the following required arguments were not provided: <NAME>. See tenure history --help");
}
