//! `tenure leader` and `tenure resign`: the leader of an election, and its end on request.

mod run_support;

use std::time::Duration;

use run_support::{PATIENCE, Ran, SOON, Started, World, said, skipped, sleep_ms, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use tenure::record::End;
use tenure_store::{Expect, Put, Store};

/// A leader with an address, whose work ends on TERM.
fn leading(world: &World, name: &str, ttl: &str) -> Started {
    let work = "trap 'exit 0' TERM; echo $TENURE_TOKEN > led; while :; do sleep 0.05; done";
    let led = world.start(world.run(&[name, "--ttl", ttl, "--holder", "ann", "--", "sh", "-c", work]));
    world.told("led");
    led
}

fn leader(world: &World, words: &[&str]) -> Ran {
    world.ran(world.tenure(&[&["leader"], words].concat()))
}

fn resign(world: &World, words: &[&str]) -> Ran {
    world.ran(world.tenure(&[&["resign"], words].concat()))
}

fn json_of(ran: &Ran) -> Value {
    serde_json::from_str(ran.text()).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

// ── leader ──────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn an_election_without_a_leader_exits_1_and_creates_nothing() {
    let world = World::new("no-leader");
    for words in [&["job"][..], &["job", "--wait", "0s"]] {
        let ran = leader(&world, words);
        assert_eq!((ran.code, ran.text(), ran.err.as_str()), (1, "job: no leader\n", ""));
    }
    let ran = leader(&world, &["job", "--json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        json_of(&ran),
        json!({
            "store": world.store_url(), "name": "job", "holder": null, "address": null, "labels": {}, "value": null,
            "token": null, "granted_at": null, "held_ms": null, "left_ms": null, "judged": null, "by": null, "because": null,
        })
    );
    assert!(!world.leases().exists(), "not even the store");
}

#[test]
fn the_leader_is_shown_with_token_start_and_longest_remaining_time() {
    let world = World::new("leader");
    let led = leading(&world, "job", "60s");
    let token = world.told("led");
    let ran = leader(&world, &["job"]);
    let begin = format!("job: led by ann, token {token}, since 20");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.text().starts_with(&begin) && ran.text().ends_with(" left\n"), "{ran:?}");
    let seen = json_of(&leader(&world, &["job", "--json"]));
    assert_eq!((&seen["holder"], &seen["token"]), (&json!("ann"), &json!(token.parse::<u64>().unwrap())));
    assert!(seen["left_ms"].as_u64().unwrap() <= 61_000 && seen["judged"] == json!(true), "{seen}");
    led.process().send(Signal::TERM);
    assert_eq!(led.end().code, 0);
    assert_eq!(leader(&world, &["job"]).text(), "job: no leader\n");
}

#[test]
fn a_leader_that_was_killed_leads_no_more() {
    let world = World::new("dead-leader");
    let led = leading(&world, "job", "1h");
    led.process().send(Signal::KILL);
    until("end of the leader", PATIENCE, || (leader(&world, &["job"]).code == 1).then_some(()));
}

#[test]
fn a_wait_ends_with_the_first_leader_or_with_its_limit() {
    let world = World::new("wait-leader");
    // The store does not exist yet, and then the lease does not.
    let ran = leader(&world, &["job", "--wait", "300ms"]);
    assert_eq!((ran.code, ran.text()), (1, "job: no leader\n"));
    let waiting = world.start(world.tenure(&["leader", "job", "--wait", "--json"]));
    sleep_ms(300);
    let led = leading(&world, "job", "60s");
    let ran = waiting.end();
    assert_eq!((ran.code, &json_of(&ran)["holder"]), (0, &json!("ann")));
    let ran = leader(&world, &["job", "--wait", "20s"]);
    assert!(ran.code == 0 && ran.took < SOON, "{ran:?}");
    drop(led);
}

#[test]
fn a_watch_prints_the_present_leader_first_and_then_every_change_and_never_an_older_token() {
    let world = World::new("watch-leader");
    let first = leading(&world, "job", "60s");
    let below = leading(&world, "job/below", "60s");
    let watch = world.start(world.tenure(&["leader", "job", "--watch", "--json"]));
    let lines = |count: usize| -> Vec<Value> {
        until(&format!("{count} lines"), PATIENCE, || {
            let text = watch.out_so_far();
            let lines: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            (lines.len() >= count).then_some(lines)
        })
    };
    lines(1);
    first.process().send(Signal::TERM);
    first.end();
    lines(2);
    drop(below);
    for turn in ["b", "c"] {
        let ran = world.ran(world.run(&["job", "--holder", turn, "--", "sleep", "0.3"]));
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let lines = lines(6);
    let seen: Vec<_> = lines.iter().map(|line| (&line["event"], &line["holder"])).collect();
    let (leader, none) = (json!("leader"), (&json!("no-leader"), &Value::Null));
    assert_eq!(
        seen,
        [(&leader, &json!("ann")), none, (&leader, &json!("b")), none, (&leader, &json!("c")), none]
    );
    let tokens: Vec<_> = lines.iter().filter_map(|line| line["token"].as_u64()).collect();
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    watch.process().send(Signal::TERM);
    assert_eq!(watch.end().code, 143);
}

#[test]
fn a_reader_that_leaves_ends_the_watch() {
    let world = World::new("watch-pipe");
    let _led = leading(&world, "job", "60s");
    let ran = world.ran(world.sh("\"$TENURE\" leader job --watch | head -1"));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("job: led by ann"), "{ran:?}");
    world.record("job").unwrap();
}

#[test]
fn a_foreign_record_and_bad_words_are_refused() {
    let world = World::new("leader-usage");
    let (key, store) = (run_support::key("theirs"), world.store());
    let put = run_support::block_on(async { store.put(&key, "not a record".into(), Expect::Absent).await });
    assert!(matches!(put, Ok(Put::Applied(_))));
    for words in [&["theirs"][..], &["theirs", "--watch"], &["theirs", "--wait", "9s"]] {
        said(&leader(&world, words), 65, &["lease theirs on file:///", "has no Tenure record"]);
    }
    said(&resign(&world, &["theirs", "--reason", "x"]), 65, &["has no Tenure record"]);
    for (words, part) in [
        (&["leader"][..], "<NAME>"),
        (&["leader", ""], "must not be empty"),
        (&["leader", "../x"], "key"),
        (&["leader", ".tenure/x"], ".tenure"),
        (&["leader", "a\nb"], "key"),
        (&["leader", "x", "--wait", "soon"], "write it like"),
        (&["leader", "x", "--wait", "--watch"], "cannot be used with"),
        (&["resign", "x"], "--reason"),
        (&["resign", "x", "--reason", " "], "empty"),
        (&["resign", "x", "--reason", "two\nlines"], "one line"),
        (&["resign", "../x", "--reason", "x"], "key"),
        (&["resign", "x", "--reason", "x", "--holder", ""], "holder"),
    ] {
        let ran = world.ran(world.tenure(words));
        said(&ran, 64, &[part]);
        assert_eq!((ran.err.lines().count(), ran.text()), (1, ""), "{words:?}: {ran:?}");
    }
}

// ── resign ──────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_leader_resigns_on_request_and_the_lease_is_free_afterwards() {
    let world = World::new("resign");
    let led = leading(&world, "job", "3s");
    let token = world.told("led");
    let words = ["job", "--reason", "node a is drained", "--holder", "boss"];
    let ran = resign(&world, &words);
    said(&ran, 0, &["ann", &token, "leads job on file:///", "asking it to resign"]);
    assert_eq!(ran.text(), format!("job: ann has resigned, token {token}\n"));
    said(&led.end(), 76, &["boss takes it over: node a is drained"]);
    let record = world.record("job").unwrap();
    assert!(!record.is_held());
    assert_eq!(record.token.to_string(), token, "nothing was granted in between");
    let past: Vec<_> = record.history.iter().map(|past| past.end.clone()).collect();
    assert_eq!(past, [End::Revoked { by: "boss".into(), because: "node a is drained".into() }]);
    world.is_empty_soon();
}

#[test]
fn the_election_has_the_same_name_in_the_event_and_in_the_answer() {
    let world = World::new("resign-json");
    let led = leading(&world, "job", "3s");
    let ran = resign(&world, &["job", "--reason", "x", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let event: Value = serde_json::from_str(ran.err.lines().next().unwrap()).unwrap();
    let answer: Value = serde_json::from_str(ran.text()).unwrap();
    assert_eq!(
        (&event["event"], &event["name"], &answer["name"]),
        (&json!("revoking"), &json!("job"), &json!("job"))
    );
    assert!(event.get("key").is_none(), "{event}");
    assert_eq!(led.end().code, 76);
}

#[test]
fn nothing_to_resign_from_exits_1_and_creates_nothing() {
    let world = World::new("resign-no-leader");
    let ran = resign(&world, &["job", "--reason", "x"]);
    assert_eq!((ran.code, ran.text(), ran.err.as_str()), (1, "job: no leader\n", ""));
    assert!(!world.leases().exists());
    assert_eq!(world.ran(world.run(&["job", "--", "true"])).code, 0);
    let before = world.record("job");
    let ran = resign(&world, &["job", "--reason", "x", "--json"]);
    let no_leader =
        json!({ "store": world.store_url(), "name": "job", "holder": null, "token": null, "end": null });
    assert_eq!((ran.code, json_of(&ran)), (1, no_leader));
    assert_eq!(world.record("job"), before);
}

#[test]
fn a_silent_leader_is_waited_for_until_its_ttl_is_over() {
    let world = World::new("resign-silent");
    let held = world.ran(world.tenure(&["acquire", "job", "--ttl", "1500ms", "--holder", "ann"]));
    said(&held, 0, &[]);
    let token = world.record("job").unwrap().token.get();
    let early = resign(&world, &["job", "--reason", "hurry", "--wait", "100ms"]);
    said(&early, 75, &["ann", "still leads job", "asked to resign and has not yet", "steal --now"]);
    let ran = resign(&world, &["job", "--reason", "hurry", "--json"]);
    said(&ran, 0, &["\"event\":\"revoking\""]);
    let seen = json_of(&ran);
    assert_eq!((&seen["token"], &seen["end"]), (&json!(token), &json!("ran-out")));
    assert!(seen["holder"] == json!("ann") && ran.took < Duration::from_secs(5), "{ran:?}");
}

#[test]
fn a_leader_that_is_dead_on_this_machine_is_not_waited_for() {
    let world = World::new("resign-dead");
    let led = leading(&world, "job", "1h");
    led.process().send(Signal::STOP);
    let asking = world.start(world.tenure(&["resign", "job", "--reason", "it hangs"]));
    until("revocation", PATIENCE, || asking.err_so_far().contains("asking it").then_some(()));
    led.process().send(Signal::KILL);
    let ran = asking.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().starts_with("job: ann is dead, token "), "{ran:?}");
}

#[test]
fn a_signal_ends_the_wait() {
    let world = World::new("resign-signal");
    said(&world.ran(world.tenure(&["acquire", "job", "--ttl", "1h"])), 0, &[]);
    let asking = world.start(world.tenure(&["resign", "job", "--reason", "x"]));
    until("revocation", PATIENCE, || asking.err_so_far().contains("asking it").then_some(()));
    asking.process().send(Signal::TERM);
    assert_eq!(asking.end().code, 143);
}

#[test]
fn a_leader_that_cannot_stop_its_command_is_not_asked() {
    let Some(world) = run_support::world_of_other_user("resign-foreign") else { return };
    let work = ["--", "./root", "--reuid", "0", "--regid", "0", "--clear-groups"];
    let script = "echo $$ > pid; sleep 100";
    let led = run_support::run_as_other_user(&world, &[&work[..], &["sh", "-c", script]].concat());
    world.told("pid");
    if !led.err_so_far().contains("may not kill") {
        return skipped("the command has a cgroup here, and can be stopped");
    }
    let mut asking = world.tenure(&["resign", "x", "--reason", "maintenance"]);
    asking.env("TENURE_STORE", format!("{}?accept=foreign-owner", world.store_url()));
    said(&world.ran(asking), 75, &["cannot stop the work under it, and was not asked to"]);
    assert!(world.other_user_holds("x"));
}
