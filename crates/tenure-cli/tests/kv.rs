//! `tenure kv`: plain keys of the command.

mod support;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use support::{Did, Home, did, hold, plant, process, refused, sleep_ms};

fn kv(home: &Home, words: &[&str]) -> Did {
    home.tenure(&[&["kv"], words].concat())
}

/// The revision in the answer to a change.
#[track_caller]
fn revision(did: &Did) -> u64 {
    assert_eq!((did.code, did.err.as_str()), (0, ""), "{did:?}");
    did.json()["revision"].as_u64().unwrap()
}

#[test]
fn a_key_is_created_read_changed_renewed_and_released() {
    let home = Home::new("kv");
    let created = kv(&home, &["create", "config/shards", "4"]);
    assert_eq!((created.code, created.err.as_str()), (0, ""));
    assert!(created.out.starts_with("config/shards: created, revision "), "{}", created.out);
    kv(&home, &["get", "config/shards"]).answered(0, "4\n");
    let first = revision(&kv(&home, &["get", "config/shards", "--json"]));
    let changed = kv(&home, &["cas", "config/shards", &first.to_string(), "8", "--ttl", "1h", "--json"]);
    let second = revision(&changed);
    assert!(second > first);
    assert_eq!(
        (&changed.json()["result"], &changed.json()["ttl_ms"]),
        (&json!("updated"), &json!(3_600_000))
    );
    let renewed = kv(&home, &["renew", "config/shards"]);
    let begin = format!("config/shards: renewed, revision {second} of ");
    assert!(renewed.code == 0 && renewed.out.starts_with(&begin), "{renewed:?}");
    kv(&home, &["release", "config/shards"]).answered(0, "config/shards: released\n");
    kv(&home, &["get", "config/shards"]).answered(1, "");
    let absent = kv(&home, &["get", "config/shards", "--json"]);
    assert_eq!((absent.code, &absent.json()["result"]), (1, &json!("absent")));
    let third = revision(&kv(&home, &["cas", "config/shards", "0", "16", "--json"]));
    assert!(third > second, "revisions grow across a release");
}

#[test]
fn an_entry_in_the_way_and_another_revision_exit_75_and_show_what_is_there() {
    let home = Home::new("kv-conflict");
    let made = revision(&kv(&home, &["create", "k", "one", "--owner", "ann", "--json"]));
    let exists = kv(&home, &["create", "k", "two"]);
    let url = home.url();
    let sentence = format!(
        "key k on {url} was not changed: it has revision {made} of ann. To replace it, use \
         tenure kv cas with its revision"
    );
    exists.failed(75, &sentence);
    let exists = kv(&home, &["create", "k", "two", "--json"]);
    let seen = exists.json();
    assert_eq!((exists.code, exists.err.as_str(), &seen["result"]), (75, "", &json!("exists")));
    assert_eq!(
        (&seen["value"], &seen["owner"], &seen["mine"]),
        (&json!("one"), &json!("ann"), &json!(false))
    );
    let conflict = kv(&home, &["cas", "k", "7", "two"]);
    let sentence = format!(
        "key k on {url} was not changed: it has revision {made} of ann. Read it again before the next change"
    );
    conflict.failed(75, &sentence);
    kv(&home, &["cas", "other", "7", "two"]).failed(
        75,
        &format!("key other on {url} was not changed: it has no entry. Create one with tenure kv create"),
    );
    let conflict = kv(&home, &["cas", "other", "7", "two", "--json"]);
    assert_eq!((conflict.code, &conflict.json()["revision"]), (75, &json!(null)));
    kv(&home, &["get", "k"]).answered(0, "one\n");
}

#[test]
fn only_the_owner_renews_and_releases_and_each_name_is_another_owner() {
    let home = Home::new("kv-owner");
    revision(&kv(&home, &["create", "k", "one", "--owner", "agent", "--json"]));
    for (command, owner) in [
        ("renew", &[][..]),
        ("release", &[][..]),
        ("renew", &["--owner", "other"]),
        ("release", &["--owner", "other"]),
    ] {
        let did = kv(&home, &[&[command, "k"], owner].concat());
        refused(
            &did,
            76,
            &["key k on ", "is an entry of agent (revision ", "only its owner renews and releases it"],
        );
    }
    assert_eq!(kv(&home, &["get", "k", "--owner", "agent", "--json"]).json()["mine"], json!(true));
    assert_eq!(kv(&home, &["renew", "k", "--owner", "agent"]).code, 0);
    // Another user has another secret.
    let stranger = Home::new("kv-stranger");
    let url = home.url();
    let did = stranger.tenure(&["--store", &url, "kv", "release", "k", "--owner", "agent"]);
    refused(&did, 76, &["is an entry of agent", "only its owner"]);
    kv(&home, &["release", "k", "--owner", "agent"]).answered(0, "k: released\n");
    refused(&kv(&home, &["release", "k", "--owner", "agent"]), 76, &["key k on ", "has no entry"]);
}

#[test]
fn the_secret_of_the_owner_is_a_private_file_that_is_made_once() {
    let home = Home::new("kv-secret");
    let secret = home.0.join(".local/state/tenure-owner");
    assert_eq!(kv(&home, &["get", "k"]).code, 1);
    assert_eq!(kv(&home, &["renew", "k"]).code, 76);
    assert!(!secret.exists(), "reading makes none");
    let many: Vec<_> = (0..8)
        .map(|at| {
            home.command(&["kv", "create", &format!("k{at}"), "x"]).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut one in many {
        assert!(one.wait().unwrap().success());
    }
    let mode = std::fs::metadata(&secret).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    for at in 0..8 {
        assert_eq!(kv(&home, &["renew", &format!("k{at}")]).code, 0, "all of them used the one that counts");
    }
    let left: Vec<_> =
        std::fs::read_dir(home.0.join(".local/state")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{left:?}");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o644)).unwrap();
    refused(&kv(&home, &["renew", "k0"]), 78, &["not a safe place for the secret", "mode 644"]);
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    for damage in [&b"damaged"[..], b"\xff\xfe"] {
        std::fs::write(&secret, damage).unwrap();
        refused(&kv(&home, &["renew", "k0"]), 78, &["tenure-owner is damaged", "remove the file"]);
    }
    let elsewhere = secret.with_file_name("elsewhere");
    std::fs::rename(&secret, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &secret).unwrap();
    refused(&kv(&home, &["renew", "k0"]), 78, &["not a safe place for the secret", "a symbolic link"]);
    std::fs::remove_file(&secret).unwrap();
    refused(&kv(&home, &["renew", "k0"]), 76, &["only its owner"]);
}

#[test]
fn a_secret_that_cannot_be_used_is_no_reason_not_to_read() {
    let home = Home::new("kv-unusable");
    assert_eq!(kv(&home, &["create", "k", "x"]).code, 0);
    let secret = home.0.join(".local/state/tenure-owner");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o644)).unwrap();
    let got = kv(&home, &["get", "k"]);
    assert_eq!((got.code, &*got.out), (0, "x\n"));
    assert!(got.err.contains("no entry is shown as your own") && got.err.contains("mode 644"), "{got:?}");
    let listed = kv(&home, &["ls", "--json"]);
    assert!(listed.code == 0 && listed.out.contains("\"mine\":false"), "{listed:?}");
}

#[test]
fn an_entry_runs_out_and_a_creation_waits_for_it_if_asked_to() {
    let home = Home::new("kv-ttl");
    let first = revision(&kv(&home, &["create", "k", "one", "--ttl", "300ms", "--json"]));
    let waited = kv(&home, &["create", "k", "two", "--ttl", "100ms", "--wait", "10s", "--json"]);
    assert!(revision(&waited) > first);
    sleep_ms(150);
    kv(&home, &["get", "k"]).answered(1, "");
    refused(&kv(&home, &["renew", "k"]), 76, &["has no entry: it ran out, was released, or never existed"]);
    let old = waited.json()["revision"].to_string();
    refused(&kv(&home, &["cas", "k", &old, "three"]), 75, &["was not changed: it has no entry"]);
    kv(&home, &["ls"]);
    let created = revision(&kv(&home, &["create", "k", "four", "--json"]));
    let late = kv(&home, &["create", "k", "five", "--wait", "2s"]);
    refused(&late, 75, &[&format!("it has revision {created} of ")]);
}

#[test]
fn a_listing_shows_entries_and_no_leases() {
    let home = Home::new("kv-ls");
    let nothing = kv(&home, &["ls"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
    assert_eq!(nothing.err, format!("no plain keys in {}\n", home.url()));
    for (key, value) in [("nodes/b", "2"), ("nodes/a", "one\ttab"), ("nodes/gone", "3")] {
        revision(&kv(&home, &["create", key, value, "--owner", "ann", "--json"]));
    }
    assert_eq!(kv(&home, &["release", "nodes/gone", "--owner", "ann"]).code, 0);
    let _lease = hold(&process(&home, "bob"), "nodes/lease", 60_000);
    plant(&home, "nodes/theirs", "{}");
    let listed = kv(&home, &["ls", "nodes"]);
    assert_eq!((listed.code, listed.err.as_str()), (0, ""));
    let lines: Vec<_> = listed.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", listed.out);
    assert!(lines[0].starts_with("NAME") && lines[0].ends_with("VALUE"));
    assert!(lines[1].starts_with("nodes/a ") && lines[1].ends_with(r"one\ttab"), "{}", lines[1]);
    assert!(lines[2].starts_with("nodes/b ") && lines[2].ends_with('2'));
    assert!(lines[3].starts_with("nodes/theirs") && lines[3].contains("another program"), "{}", lines[3]);
    let json = kv(&home, &["ls", "nodes", "--json"]).json();
    let names: Vec<_> = json["keys"].as_array().unwrap().iter().map(|key| &key["key"]).collect();
    assert_eq!(names, ["nodes/a", "nodes/b", "nodes/theirs"]);
}

#[test]
fn a_value_comes_from_standard_input_and_is_printed_byte_for_byte() {
    let home = Home::new("kv-stdin");
    let mut child = home.command(&["kv", "create", "plan", "-"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let value = "first\n\u{1b}[31mred\u{1b}[0m\n";
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    kv(&home, &["get", "plan"]).answered(0, &format!("{value}\n"));
    for (value, why) in [
        ("\u{e9}".repeat(4000).into_bytes(), "the value of key plan has more than 4096 bytes"),
        (b"\xff".to_vec(), "the value on standard input is not UTF-8"),
    ] {
        let mut child = home.command(&["kv", "cas", "plan", "1", "-"]);
        let mut child = child.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The command may exit before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(&value);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(64) && said.contains(why), "{said}");
    }
    assert_eq!(kv(&home, &["create", "negative", "-5"]).code, 0);
    kv(&home, &["get", "negative"]).answered(0, "-5\n");
}

#[test]
fn bad_input_exits_64_and_says_what_is_right() {
    let home = Home::new("kv-bad");
    refused(&kv(&home, &["create", "../x", "1"]), 64, &["../x"]);
    refused(&kv(&home, &["create", ".tenure/slots/g/size", "1"]), 64, &[".tenure"]);
    refused(
        &kv(&home, &["create", "k", &"x".repeat(4097)]),
        64,
        &["the value of key k has more than 4096 bytes"],
    );
    refused(
        &kv(&home, &["create", "k", "1", "--ttl", "1ms"]),
        64,
        &["a ttl is a whole number of milliseconds from 50ms"],
    );
    refused(&kv(&home, &["create", "k", "1", "--ttl", "2d"]), 64, &["86400s"]);
    for wrong in ["9007199254740992", "seven", ""] {
        refused(
            &kv(&home, &["cas", "k", wrong, "1"]),
            64,
            &["a revision is a whole number up to 9007199254740991"],
        );
    }
    refused(&kv(&home, &["crate", "k", "1"]), 64, &["kv"]);
    assert!(!home.leases().exists(), "nothing was created");
}

#[test]
fn a_lease_is_no_plain_key_and_a_plain_key_is_no_lease() {
    let home = Home::new("kv-kinds");
    let lease = hold(&process(&home, "ann"), "job", 60_000);
    for words in [&["get", "job"][..], &["create", "job", "x"], &["cas", "job", "7", "x"], &["renew", "job"]]
    {
        refused(&kv(&home, words), 64, &["key job on ", "is a lease of ann (token ", "not a plain key"]);
    }
    drop(lease);
    let made = revision(&kv(&home, &["create", "k", "one", "--owner", "bob", "--json"]));
    let url = home.url();
    let denied = home.tenure(&["run", "k", "--", "true"]);
    refused(&denied, 64, &["lease k on ", &format!("is a plain key of bob (revision {made}), not a lease")]);
    for command in ["status", "history"] {
        home.tenure(&[command, "k"])
            .failed(64, &format!("k on {url} is a plain key, not a lease: `tenure kv get k` reads it"));
    }
    let listed = home.tenure(&["ls", "k"]);
    assert!(listed.out.contains("bob") && listed.out.trim_end().ends_with("plain key"), "{}", listed.out);
    let listed = home.tenure(&["ls", "k", "--json"]).json();
    assert_eq!((&listed["leases"][0]["state"], &listed["leases"][0]["free"]), (&json!("key"), &json!(false)));
    let kept = home.tenure(&["forget", "k", "--vacant-for", "0s", "--verbose"]);
    assert!(kept.code == 0 && kept.out.contains("kept: a plain key that was not released"), "{kept:?}");
    kv(&home, &["get", "k"]).answered(0, "one\n");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test owns its threads")]
fn processes_that_increment_one_counter_lose_no_increment() {
    let home = Home::new("kv-counter");
    assert_eq!(kv(&home, &["create", "counter", "0"]).code, 0);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let home = &home;
            scope.spawn(move || {
                for _ in 0..10 {
                    let mut seen = kv(home, &["get", "counter", "--json"]).json();
                    loop {
                        let next = seen["value"].as_str().unwrap().parse::<u32>().unwrap() + 1;
                        let revision = seen["revision"].to_string();
                        let words =
                            ["cas", "counter", &revision, &next.to_string(), "--owner", name, "--json"];
                        let did = kv(home, &words);
                        assert!([0, 75].contains(&did.code), "{did:?}");
                        if did.code == 0 {
                            break;
                        }
                        seen = did.json();
                    }
                }
            });
        }
    });
    kv(&home, &["get", "counter"]).answered(0, "40\n");
}

#[test]
fn a_signal_ends_the_wait() {
    let home = Home::new("kv-signal");
    revision(&kv(&home, &["create", "k", "one", "--json"]));
    let mut waiting = home.command(&["kv", "create", "k", "two", "--wait", "1h"]);
    let mut waiting = waiting.spawn().unwrap();
    sleep_ms(300);
    let mut kill = std::process::Command::new("kill");
    assert_eq!(did(kill.arg(waiting.id().to_string())).code, 0);
    assert_eq!(waiting.wait().unwrap().code(), Some(128 + 15));
    kv(&home, &["get", "k"]).answered(0, "one\n");
}
