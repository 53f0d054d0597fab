//! `tenure run --slots` and `tenure slots`: a group of slots, as text and as JSON.

mod support;

use serde_json::json;
use support::{Home, block_on, plant, process};
use tenure::{Key, Slot};
use tenure_store::{Expect, Put, Store};

fn hold(home: &Home, holder: &str, group: &str, slots: u32) -> Slot {
    block_on(process(home, holder).slots(group, slots).unwrap().try_acquire()).unwrap()
}

#[test]
fn an_unused_group_is_shown_as_such_and_reading_it_creates_nothing() {
    let home = Home::new("unused-slots");
    home.tenure(&["slots", "gpu"]).answered(0, "gpu: not used yet\n");
    let did = home.tenure(&["slots"]);
    assert_eq!((did.code, did.out.as_str()), (0, ""));
    assert_eq!(did.err, format!("no groups of slots in {}\n", home.url()));
    let answer = json!({ "store": home.url(), "group": "gpu", "slots": null, "held": 0, "holders": [] });
    assert_eq!(home.tenure(&["slots", "gpu", "--json"]).json(), answer);
    assert_eq!(home.tenure(&["slots", "--json"]).json(), json!({ "store": home.url(), "groups": [] }));
    let sentence =
        format!("group gpu has no size, because there is no store at {}: check --store", home.url());
    home.tenure(&["slots", "gpu", "--resize", "3"]).failed(64, &sentence);
    assert_eq!(std::fs::read_dir(&home.0).unwrap().count(), 0, "not even a directory");
}

#[test]
fn a_group_is_shown_with_its_size_and_its_holders() {
    let home = Home::new("shown-slots");
    let held = [hold(&home, "web-1:1", "gpu", 3), hold(&home, "web-1:2", "gpu", 3)];
    let _other = hold(&home, "web-1:3", "jobs/cpu", 1);
    let did = home.tenure(&["slots", "gpu"]);
    let mut lines = did.out.lines();
    assert_eq!(lines.next(), Some("gpu: 3 slots, 2 held"), "{}", did.out);
    assert_eq!(
        lines.next().unwrap().split_whitespace().take(3).collect::<Vec<_>>(),
        ["SLOT", "HOLDER", "TOKEN"]
    );
    assert_eq!(lines.count(), 2, "{}", did.out);
    let answer = home.tenure(&["slots", "gpu", "--json"]).json();
    assert_eq!((&answer["slots"], &answer["held"]), (&json!(3), &json!(2)));
    for holder in answer["holders"].as_array().unwrap() {
        let slot = held.iter().find(|slot| json!(slot.index()) == holder["slot"]).unwrap();
        assert_eq!(holder["token"], json!(slot.token().get()));
        assert_eq!(holder["holder"], json!(&**slot.holder().id()));
        assert_eq!((&holder["beyond"], &holder["judged"]), (&json!(false), &json!(true)));
    }
    home.tenure(&["slots"]).answered(0, "GROUP     SLOTS  HELD\ngpu       3      2\njobs/cpu  1      1\n");
    let groups = &home.tenure(&["slots", "--json"]).json()["groups"];
    assert_eq!(groups[1], json!({ "group": "jobs/cpu", "slots": 1, "held": 1 }));
    let listed = home.tenure(&["ls"]);
    assert_eq!(listed.out, "", "slots are no leases of their names");
}

#[test]
fn a_shrink_stops_no_holder_and_the_slots_beyond_the_size_are_marked() {
    let home = Home::new("shrunk-slots");
    let held = [hold(&home, "web-1:1", "gpu", 2), hold(&home, "web-1:2", "gpu", 2)];
    let did = home.tenure(&["slots", "gpu", "--resize", "1"]);
    assert!(did.out.starts_with("gpu: resized from 2 to 1\ngpu: 1 slot, 2 held\n"), "{}", did.out);
    assert_eq!(did.out.lines().filter(|line| line.ends_with(", beyond the size")).count(), 1, "{}", did.out);
    assert!(held.iter().all(|slot| slot.check().is_ok()));
    let did = home.tenure(&["slots", "gpu", "--resize", "1"]);
    assert!(did.out.starts_with("gpu: has 1 already\n"), "{}", did.out);
    let answer = home.tenure(&["slots", "gpu", "--resize", "4", "--json"]).json();
    assert_eq!((&answer["former"], &answer["slots"]), (&json!(1), &json!(4)));
    home.tenure(&["slots", "cpu", "--resize", "2"]).failed(
        64,
        &format!(
            "group cpu on {} has no size yet: acquire a slot of it first, which stores the number of slots",
            home.url()
        ),
    );
}

#[test]
fn a_command_knows_its_slot_and_a_full_group_names_its_holders() {
    let home = Home::new("run-slots");
    let did =
        home.tenure(&["run", "--slots", "1", "gpu", "--", "sh", "-c", "echo $TENURE_NAME $TENURE_SLOT"]);
    did.answered(0, "gpu 0\n");
    let held = hold(&home, "web-1:1", "gpu", 1);
    let sentence = format!(
        "the slot of gpu on {} is held: slot 0 by web-1:1 (token {}): try again later, or wait for a slot with --wait \
         DURATION",
        home.url(),
        held.token()
    );
    home.tenure(&["run", "--slots", "1", "gpu", "--no-wait", "--", "true"]).failed(75, &sentence);
    let did = home.tenure(&["run", "--slots", "1", "gpu", "--wait", "300ms", "--", "true"]);
    assert_eq!(did.code, 75);
    assert!(did.err.ends_with(": try again later, or wait longer\n"), "{}", did.err);
    let did = home.tenure(&["run", "--slots", "1", "gpu", "--no-wait", "--quiet", "--", "true"]);
    assert_eq!((did.code, did.err.as_str()), (75, ""));
    let lease = ["run", "gpu", "--no-wait", "--", "sh", "-c", "echo ${TENURE_SLOT-none}"];
    home.tenure(&lease).answered(0, "none\n");
}

#[test]
fn events_name_the_group_and_the_slot() {
    let home = Home::new("event-slots");
    let did = home.tenure(&["run", "--slots", "1", "jobs/gpu", "--json", "--", "true"]);
    let events: Vec<serde_json::Value> =
        did.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for name in ["granted", "released"] {
        let event = events.iter().find(|event| event["event"] == name).unwrap();
        assert_eq!((&event["name"], &event["slot"]), (&json!("jobs/gpu"), &json!(0)), "{event}");
    }
    let did = home.tenure(&["run", "--slots", "1", "jobs/gpu", "--", "/no/such/program"]);
    assert_eq!(did.code, 127);
    assert!(did.err.contains("could not be started under slot 0 of jobs/gpu of "), "{}", did.err);
}

#[test]
fn bad_numbers_and_names_are_refused_with_a_sentence() {
    let home = Home::new("bad-slots");
    for number in ["0", "1025"] {
        let sentence = format!("a group has 1 to 1024 slots, not {number}: choose a number in this range");
        home.tenure(&["run", "--slots", number, "gpu", "--", "true"]).failed(64, &sentence);
    }
    let _held = hold(&home, "web-1:1", "gpu", 3);
    home.tenure(&["slots", "gpu", "--resize", "0"])
        .failed(64, "a group has 1 to 1024 slots, not 0: choose a number in this range");
    home.tenure(&["run", "--slots", "5", "gpu", "--", "true"]).failed(
        64,
        &format!(
            "group gpu on {} has 3 slots, and this contender expects 5: use the same number everywhere, or resize the \
             group",
            home.url()
        ),
    );
    for name in ["", "..", "a//b", ".tenure/slots/gpu/0"] {
        assert_eq!(home.tenure(&["slots", name]).code, 64, "{name:?}");
        assert_eq!(home.tenure(&["run", "--slots", "3", name, "--", "true"]).code, 64, "{name:?}");
    }
    let long = "gpu/".repeat(45) + "x";
    let did = home.tenure(&["run", "--slots", "3", &long, "--", "true"]);
    assert!(
        did.code == 64 && did.err.contains("a group of slots has a name of at most 181 bytes"),
        "{}",
        did.err
    );
}

#[test]
fn a_group_with_a_damaged_size_is_named_after_the_list_of_all_groups() {
    let home = Home::new("damaged-slots");
    let _held = hold(&home, "web-1:1", "gpu", 3);
    plant(&home, Key::group_size(&Key::parse("broken").unwrap()).unwrap().as_str(), "hello");
    drop(hold(&home, "web-1:1", "cpu", 2));
    replace_in_size(&home, "cpu", "\"value\":\"2\"", "\"value\":\"three\"");
    let did = home.tenure(&["slots"]);
    assert_eq!(did.code, 65, "{}", did.err);
    let rows: Vec<Vec<_>> = did.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["GROUP", "SLOTS", "HELD"], "{}", did.out);
    assert_eq!(rows[1], ["broken", "unreadable", "0"], "{}", did.out);
    assert_eq!(rows[2], ["cpu", "unreadable", "0"], "{}", did.out);
    assert_eq!(rows[3], ["gpu", "3", "1"], "{}", did.out);
    let errors: Vec<_> = did.err.lines().collect();
    assert_eq!(errors.len(), 2, "{}", did.err);
    for (error, begin) in errors.iter().zip(["the size of broken on ", "group cpu on "]) {
        assert!(error.starts_with(&format!("tenure: {begin}{} has ", home.url())), "{error}");
    }
    let did = home.tenure(&["slots", "--json"]);
    assert_eq!(did.code, 65, "{}", did.err);
    let answer: serde_json::Value = serde_json::from_str(&did.out).unwrap();
    assert_eq!(
        answer["groups"],
        json!([
            { "group": "broken", "slots": null, "held": 0, "unreadable": true },
            { "group": "cpu", "slots": null, "held": 0, "unreadable": true },
            { "group": "gpu", "slots": 3, "held": 1 },
        ])
    );
    assert_eq!(home.tenure(&["slots", "gpu"]).code, 0);
    assert_eq!(home.tenure(&["slots", "broken"]).code, 65);
}

/// Changes the record of the size of a group as no Tenure does.
fn replace_in_size(home: &Home, group: &str, from: &str, to: &str) {
    let (store, key) = (home.store(), Key::group_size(&Key::parse(group).unwrap()).unwrap());
    let put = block_on(async {
        let entry = store.get(&key).await.unwrap().entry.unwrap();
        let record = std::str::from_utf8(&entry.value).unwrap();
        assert!(record.contains(from), "{record}");
        store.put(&key, record.replace(from, to).into(), Expect::Version(entry.version)).await.unwrap()
    });
    assert!(matches!(put, Put::Applied(_)));
}
