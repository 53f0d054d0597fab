//! `tenure forget`: removes records that have long been vacant, and gives the reason for each one that it keeps.

mod support;

use std::process::{Child, Stdio};

use serde_json::json;
use support::{Home, block_on, fixture, hold, plant, process, sleep_ms};

/// Plants a record that has been vacant since 2021, with a token of that time.
fn old(home: &Home, name: &str) {
    let record = fixture("vacant");
    let mut record: serde_json::Value = serde_json::from_str(&record).unwrap();
    record["token"] = json!(1_600_000_000_000_000_u64);
    for field in ["granted_at", "written_at"] {
        record[field] = json!("2021-01-01T00:00:00.000Z");
    }
    record["history"] = json!([]);
    plant(home, name, record.to_string());
}

/// Takes and releases a lease, and returns its token.
fn take_and_release(home: &Home, name: &str) -> u64 {
    let lease = hold(&process(home, "me"), name, 60_000);
    let token = lease.token().get();
    block_on(lease.release()).unwrap();
    token
}

#[test]
fn without_yes_it_removes_nothing_and_lists_what_it_would_remove() {
    let home = Home::new("dry");
    old(&home, "jobs/a");
    old(&home, "jobs/b");
    take_and_release(&home, "jobs/c");
    old(&home, "jobs-old");
    let did = home.tenure(&["forget", "jobs", "--vacant-for", "30d"]);
    assert_eq!((did.code, did.err.as_str()), (0, ""));
    let lines: Vec<&str> = did.out.lines().collect();
    assert!(lines[1].starts_with("jobs/a ") && lines[1].ends_with("  would be removed"), "{}", did.out);
    assert!(lines[2].starts_with("jobs/b "), "{}", did.out);
    assert_eq!(
        lines[3..],
        [
            "2 leases would be removed: --yes removes them",
            "1 lease kept: 1 not vacant for long enough; -v names them"
        ]
    );
    let keys = home.tenure(&["ls", "--json"]).json()["leases"].as_array().unwrap().len();
    assert_eq!(keys, 4, "nothing was removed");
}

#[test]
fn with_yes_it_removes_the_record_and_the_next_grant_has_a_greater_token() {
    let home = Home::new("yes");
    let token = take_and_release(&home, "k");
    let did = home.tenure(&["forget", "k", "--vacant-for", "0s", "--yes"]);
    assert_eq!((did.code, did.err.as_str()), (0, ""), "{}", did.out);
    assert!(did.out.contains(&token.to_string()) && did.out.ends_with("1 lease removed\n"), "{}", did.out);
    home.tenure(&["status", "k"]).stands(1, "k: free");
    assert!(home.leases().join("k.lock").exists(), "the lock stays");
    assert!(take_and_release(&home, "k") > token);
}

#[test]
fn each_kept_record_has_a_reason() {
    let home = Home::new("kept");
    let coordinator = process(&home, "web-1");
    let _lease = hold(&coordinator, "held", 600_000);
    for name in ["reserved", "closed", "revoked"] {
        let long = fixture(name).replacen("\"ttl_ms\":15000", "\"ttl_ms\":600000", 1);
        plant(&home, name, long);
    }
    plant(&home, "gone", fixture("held").replacen("\"ttl_ms\":15000", "\"ttl_ms\":100", 1));
    plant(&home, "foreign", "{\"hello\":1}");
    plant(&home, "damaged", "x");
    std::fs::write(home.leases().join("damaged.entry"), "cut off").unwrap();
    take_and_release(&home, "young");
    old(&home, "old");
    sleep_ms(200);
    let did = home.tenure(&["forget", "", "--vacant-for", "1d", "--yes", "--json"]);
    assert_eq!((did.code, did.err.as_str()), (0, ""));
    let answer = did.json();
    assert_eq!((&answer["dry_run"], &answer["store"]), (&json!(false), &json!(home.url())));
    let told: Vec<_> = answer["leases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lease| {
            let word = |field: &str| lease[field].as_str().unwrap_or("-").to_owned();
            (word("name"), word("action"), word("reason"))
        })
        .collect();
    let expected = [
        ("closed", "kept", "closed"),
        ("damaged", "kept", "foreign"),
        ("foreign", "kept", "foreign"),
        ("gone", "kept", "not-released"),
        ("held", "kept", "held"),
        ("old", "removed", "-"),
        ("reserved", "kept", "reserved"),
        ("revoked", "kept", "revoked"),
        ("young", "kept", "too-young"),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, action, reason)| (name.to_string(), action.to_string(), reason.to_string()))
        .collect();
    assert_eq!(told, expected);
    let did = home.tenure(&["forget", "", "--vacant-for", "1d", "-v"]);
    assert!(
        did.out.contains("kept: held\n") && did.out.contains("kept: never released by a dead holder\n"),
        "{}",
        did.out
    );
    assert!(
        did.out.ends_with(
            "nothing to remove: no lease here was vacant for 1d\n\
             8 leases kept: 1 closed, 2 foreign, 1 held, 1 never released by a dead holder, 1 reserved, \
             1 revoked, 1 not vacant for long enough\n"
        ),
        "{}",
        did.out
    );
}

#[test]
fn keeping_a_single_named_lease_that_is_held_is_not_a_failure() {
    let home = Home::new("one");
    let lease = hold(&process(&home, "web-1"), "k", 600_000);
    home.tenure(&["forget", "k", "--vacant-for", "0s", "--yes"]).answered(
        0,
        "nothing to remove: no lease here was vacant for 0s\n1 lease kept: 1 held; -v names them\n",
    );
    lease.check().unwrap();
    assert!(home.tenure(&["status", "k"]).out.contains("held by web-1"));
}

#[test]
fn a_store_that_does_not_exist_is_not_created() {
    let home = Home::new("nothing");
    for yes in [&[][..], &["--yes"]] {
        let did = home.tenure(&[&["forget", "jobs", "--vacant-for", "30d"], yes].concat());
        assert_eq!((did.code, did.out.as_str()), (0, ""));
        assert_eq!(did.err, format!("no leases under jobs in {}\n", home.url()));
    }
    assert_eq!(std::fs::read_dir(&home.0).unwrap().count(), 0, "not even a directory");
    home.tenure(&["forget", "..", "--vacant-for", "30d"]).failed(
        64,
        "a key must not have '.' or '..' between its slashes: write it like billing/nightly, not \"..\"",
    );
}

/// Takes the lease twelve times. Each command appends its token to a file, and `overlap` if another command runs.
const LOOP: &str = r#"
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
  "$TENURE" run "$1" --ttl 20s -- sh -c '
    mkdir "$0.alone" || echo overlap >> "$0.tokens"
    echo "$TENURE_TOKEN" >> "$0.tokens"
    rmdir "$0.alone"
  ' "$HOME/$1" || echo "failed $?" >> "$HOME/$1.tokens"
done
"#;

#[test]
fn tokens_grow_and_holders_never_overlap_while_vacant_records_are_removed_all_the_time() {
    let home = Home::new("race");
    let start = |name: &str| -> Child {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", LOOP, "sh", name]).env("TENURE", env!("CARGO_BIN_EXE_tenure"));
        command.env("HOME", &home.0).env_remove("TENURE_STORE").env_remove("XDG_STATE_HOME");
        command.stderr(Stdio::inherit()).spawn().unwrap()
    };
    let mut contenders: Vec<Child> = ["one", "one", "one", "two", "two"].map(start).into();
    let mut removed = 0;
    while contenders.iter_mut().any(|contender| contender.try_wait().unwrap().is_none()) {
        let did = home.tenure(&["forget", "", "--vacant-for", "0s", "--yes", "--json"]);
        assert_eq!((did.code, did.err.as_str()), (0, ""), "{}", did.out);
        let leases = did.json()["leases"].as_array().unwrap().clone();
        removed += leases.iter().filter(|lease| lease["action"] == "removed").count();
    }
    for (name, terms) in [("one", 36), ("two", 24)] {
        let noted = std::fs::read_to_string(home.0.join(format!("{name}.tokens"))).unwrap();
        let tokens: Vec<u64> =
            noted.lines().map(|line| line.parse().unwrap_or_else(|_| panic!("{noted}"))).collect();
        assert_eq!(tokens.len(), terms);
        assert!(tokens.is_sorted_by(|one, next| one < next), "{name}: {tokens:?}");
    }
    assert!(removed > 0, "nothing was ever removed, so nothing was tried");
    println!("{removed} records were removed beside 60 terms");
}
