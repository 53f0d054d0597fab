//! `tenure status` and `tenure ls`: holders of leases, as text and as JSON.

mod support;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::json;
use support::{
    Home, block_on, did, fixture, hold, is_root, plant, process, refuses_a_foreign_record, shell, skipped,
    sleep_ms,
};
use tenure::store::File;
use tenure_store::{Expect, Key, Store};

#[test]
fn an_unused_key_is_free_and_reading_it_creates_nothing() {
    let home = Home::new("nothing");
    home.tenure(&["status", "x"]).stands(1, "x: free");
    let did = home.tenure(&["ls"]);
    assert_eq!((did.code, did.out.as_str()), (0, ""));
    assert_eq!(did.err, format!("no leases in {}, the default (it does not exist yet)\n", home.url()));
    assert_eq!(
        home.tenure(&["ls", "--json"]).json(),
        json!({ "store": home.url(), "store_from": "default", "leases": [] })
    );
    assert_eq!(std::fs::read_dir(&home.0).unwrap().count(), 0, "not even a directory");
}

#[test]
fn a_held_lease_is_shown_with_its_holder_token_and_longest_remaining_time() {
    let home = Home::new("held");
    let lease = hold(&process(&home, "web-1:4711"), "billing/nightly", 60_000);
    let did = home.tenure(&["status", "billing/nightly"]);
    let begin = format!("billing/nightly: held by web-1:4711, token {}, for ", lease.token());
    assert_eq!((did.code, did.err.as_str()), (0, ""));
    let first = did.out.lines().next().unwrap();
    assert!(first.starts_with(&begin) && first.ends_with(" left"), "{}", did.out);
    assert!(did.out.contains("at most 1m left") || did.out.contains("at most 1m1s left"), "{}", did.out);
    let seen = home.tenure(&["status", "billing/nightly", "--json"]).json();
    assert_eq!(seen["state"], "held");
    assert_eq!((&seen["free"], &seen["judged"]), (&json!(false), &json!(true)));
    assert_eq!((&seen["holder"], &seen["token"]), (&json!("web-1:4711"), &json!(lease.token().get())));
    assert_eq!((&seen["ttl_ms"], &seen["problem"]), (&json!(60_000), &json!(null)));
    let left = seen["left_ms"].as_u64().unwrap();
    assert!((50_000..=60_600).contains(&left), "{left}");
    assert!(seen["held_ms"].as_u64().unwrap() < 10_000);
    assert!(seen["granted_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_released_lease_is_free_and_still_shows_its_token() {
    let home = Home::new("released");
    let coordinator = process(&home, "me");
    let lease = hold(&coordinator, "k", 60_000);
    let token = lease.token();
    block_on(lease.release()).unwrap();
    home.tenure(&["status", "k"]).stands(1, &format!("k: free, the last token {token}"));
    let seen = home.tenure(&["status", "--json", "k"]);
    assert_eq!(seen.code, 1);
    assert_eq!((&seen.json()["state"], &seen.json()["holder"]), (&json!("vacant"), &json!(null)));
}

#[test]
fn a_lease_that_has_run_out_is_free_although_its_record_is_held() {
    let home = Home::new("run-out");
    // Its holder exited without a release.
    plant(&home, "k", fixture("held").replacen("\"ttl_ms\":15000", "\"ttl_ms\":100", 1));
    sleep_ms(150);
    home.tenure(&["status", "k"])
        .stands(1, "k: free: the lease of host-a, token 1794720600250000, has run out");
    assert_eq!(home.tenure(&["ls", "--json"]).json()["leases"][0]["state"], "run-out");
}

#[test]
fn a_lease_whose_expiry_is_not_yet_confirmed_counts_as_held() {
    let home = Home::new("unjudged");
    let _lease = hold(&process(&home, "me"), "k", 10_000);
    // In another time namespace, the clock of the holder is not comparable.
    let elsewhere = |args: &[&str]| {
        // Each reading is the first one.
        let _ = std::fs::remove_dir_all(home.0.join(".local/state/tenure-logbook"));
        let mut command = std::process::Command::new("unshare");
        command.args(["--time", "--fork", env!("CARGO_BIN_EXE_tenure")]).args(args);
        did(command.env("HOME", &home.0).env_remove("TENURE_STORE").env_remove("XDG_STATE_HOME"))
    };
    if !shell("unshare --time --fork true 2>/dev/null") {
        return skipped("no time namespace can be made here");
    }
    let seen = elsewhere(&["status", "k"]);
    assert!(seen.out.contains("at most 11s left, expiry not yet confirmed\n"), "{seen:?}");
    assert_eq!(seen.code, 0);
    let seen = elsewhere(&["ls"]);
    assert!(seen.out.ends_with("  held, expiry not yet confirmed\n"), "{seen:?}");
    let seen = elsewhere(&["status", "--json", "k"]).json();
    assert_eq!((&seen["left_ms"], &seen["judged"]), (&json!(10_100), &json!(false)));
}

#[test]
fn every_other_state_has_its_own_sentence() {
    let home = Home::new("states");
    for name in ["reserved", "closed", "revoked"] {
        plant(&home, name, fixture(name));
    }
    home.tenure(&["status", "closed"])
        .stands(0, "closed: closed by ops@laptop because moved to billing/hourly, and never granted again");
    home.tenure(&["status", "reserved"]).stands(0, "reserved: reserved for host-c, for at most 16s");
    let did = home.tenure(&["status", "revoked"]);
    assert_eq!(did.code, 0);
    assert!(did.out.starts_with("revoked: held by host-a, token 1794720600250000, for "), "{}", did.out);
    let why = "at most 16s left, revoked by ops@laptop because host-a is stuck; see \"INC-42\"\n";
    assert!(did.out.contains(why), "{}", did.out);
    let seen = home.tenure(&["status", "--json", "revoked"]).json();
    assert_eq!((&seen["by"], &seen["labels"]["pid"]), (&json!("ops@laptop"), &json!("4711")));
    assert_eq!((&seen["address"], &seen["value"]), (&json!("10.0.0.7:7070"), &json!("shard-7")));
    assert_eq!(home.tenure(&["status", "--json", "reserved"]).json()["successor"], "host-c");
}

#[test]
fn a_record_of_another_program_is_refused_as_foreign() {
    let home = Home::new("foreign");
    refuses_a_foreign_record(&home, "status");
    plant(&home, "cut", fixture("held").split_at(40).0);
    plant(&home, "newer", fixture("held").replacen("\"tenure\":1", "\"tenure\":2", 1));
    for name in ["cut", "newer"] {
        assert_eq!(home.tenure(&["status", name]).code, 65, "{name}");
    }
}

#[test]
fn a_damaged_file_is_named_and_does_not_hide_the_others() {
    let home = Home::new("damaged");
    let lease = hold(&process(&home, "me"), "a", 60_000);
    std::fs::write(home.leases().join("b.entry"), "garbage").unwrap();
    plant(&home, "c", "not a record");
    let did = home.tenure(&["status", "b"]);
    assert_eq!(did.code, 65, "{}", did.err);
    assert!(did.err.contains("b.entry") && did.err.contains("move it away"), "{}", did.err);
    assert_eq!(did.err.matches("b.entry").count(), 1, "it is said once: {}", did.err);
    let did = home.tenure(&["ls"]);
    let lines: Vec<&str> = did.out.lines().collect();
    assert_eq!((did.code, lines.len()), (0, 4), "{did:?}");
    assert_eq!(did.err, format!("store: {}, the default\n", home.url()));
    assert!(lines[1].contains(&lease.token().to_string()) && lines[1].ends_with("held"), "{}", did.out);
    assert!(lines[2].ends_with("foreign") && lines[3].ends_with("foreign"), "{}", did.out);
    let leases = &home.tenure(&["ls", "--json"]).json()["leases"];
    assert!(leases[1]["problem"].as_str().unwrap().contains("b.entry"), "{leases}");
}

#[test]
fn a_listing_is_aligned_and_a_prefix_matches_complete_names() {
    let home = Home::new("table");
    let coordinator = process(&home, "web-1");
    let one = hold(&coordinator, "billing", 60_000);
    let two = hold(&coordinator, "billing/nightly", 60_000);
    plant(&home, "billing-old", fixture("vacant"));
    plant(&home, "键", fixture("closed"));
    let did = home.tenure(&["ls"]);
    let token = one.token().to_string();
    let lines: Vec<&str> = did.out.lines().collect();
    assert_eq!(lines.len(), 5, "{}", did.out);
    assert_eq!(lines[0], format!("NAME             HOLDER  {:>16}  HELD FOR  LEFT AT MOST  STATE", "TOKEN"));
    assert!(lines[1].starts_with(&format!("billing          web-1   {token}  ")), "{}", did.out);
    let column = lines[0].find("STATE").unwrap();
    assert_eq!(&lines[1][column..], "held", "{}", did.out);
    assert_eq!(&lines[2][column..], "vacant", "{}", did.out);
    assert!(lines[3].starts_with(&format!("billing/nightly  web-1   {}  ", two.token())), "{}", did.out);
    assert!(lines[4].ends_with("closed by ops@laptop because moved to billing/hourly"), "{}", did.out);
    let below = home.tenure(&["ls", "billing/", "--json"]).json();
    let names: Vec<_> =
        below["leases"].as_array().unwrap().iter().map(|lease| lease["name"].clone()).collect();
    assert_eq!(names, ["billing", "billing/nightly"]);
    let none = home.tenure(&["ls", "bill"]);
    assert_eq!((none.code, none.err), (0, format!("no leases under bill in {}, the default\n", home.url())));
}

#[test]
fn characters_that_a_terminal_would_interpret_are_escaped() {
    let home = Home::new("terminal");
    // A holder's name cannot have control characters. Characters that change the writing direction do not count as such.
    plant(&home, "k", fixture("held").replacen("host-a", "host\u{202e}a", 1));
    plant(&home, "direction\u{202e}", fixture("vacant"));
    std::fs::write(home.leases().join("esc.entry"), "\x1b[31mgarbage").unwrap();
    let did = home.tenure(&["ls"]);
    assert!(did.out.contains("host\\u{202e}a") && did.out.contains("direction\\u{202e}"), "{}", did.out);
    for args in [&["ls"][..], &["status", "k"], &["status", "esc"], &["status", "direction\u{202e}"]] {
        let did = home.tenure(args);
        assert!(
            !did.out.contains(['\x1b', '\u{202e}']) && !did.err.contains(['\x1b', '\u{202e}']),
            "{did:?}"
        );
    }
    let seen = home.tenure(&["status", "k", "--json"]).json();
    assert_eq!(seen["holder"], "host\u{202e}a", "programs get what is there");
}

#[test]
fn colours_are_for_terminals_and_on_request() {
    let home = Home::new("colours");
    assert!(!home.tenure(&["status", "x"]).out.contains('\x1b'));
    let forced = did(home.command(&["status", "x"]).env("CLICOLOR_FORCE", "1"));
    forced.stands(1, "x: \x1b[32mfree\x1b[0m");
    let mut plain = home.command(&["status", "x"]);
    assert!(!did(plain.env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")).out.contains('\x1b'));
    let json = did(home.command(&["status", "x", "--json"]).env("CLICOLOR_FORCE", "1"));
    assert!(!json.out.contains('\x1b'));
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let home = Home::new("pipe");
    for number in 0..200 {
        plant(&home, &format!("k{number}/{}", "x".repeat(150)), fixture("vacant"));
    }
    let mut command = home.command(&["ls"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let home = Home::new("full");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let did = did(home.command(&["status", "x"]).stdout(full));
    did.failed(
        69,
        "the answer could not be written to standard output: No space left on device (os error 28). Free some space, \
         or write elsewhere",
    );
}

#[test]
fn a_read_only_directory_can_be_inspected() {
    let home = Home::new("read-only");
    if !is_root() {
        return skipped("no file system can be mounted here");
    }
    let lease = hold(&process(&home, "me"), "k", 60_000);
    let directory = home.leases().display().to_string();
    if !shell(&format!(
        "mount --bind {directory} {directory} 2>/dev/null && mount -o remount,ro,bind {directory}"
    )) {
        return skipped("no file system can be mounted here");
    }
    let (status, ls) = (home.tenure(&["status", "k"]), home.tenure(&["ls"]));
    assert!(shell(&format!("umount -l {directory}")));
    assert!(status.out.contains(&format!("token {}", lease.token())), "{status:?}");
    assert_eq!((ls.code, ls.out.lines().count()), (0, 2), "{ls:?}");
}

#[test]
fn an_unreadable_lease_is_listed_and_fails_the_command() {
    let home = Home::below(Path::new("/tmp"), "unreadable");
    if !is_root() {
        return skipped("only root can act as another user");
    }
    let lease = hold(&process(&home, "me"), "a", 60_000);
    plant(&home, "b", fixture("vacant"));
    assert!(shell(&format!("chown -R 54321 {}", home.0.display())));
    std::fs::set_permissions(&home.0, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(shell(&format!("chown 0 {0}/a.entry && chmod 600 {0}/a.entry", home.leases().display())));
    let mut command = home.command(&["ls"]);
    std::os::unix::process::CommandExt::uid(&mut command, 54_321);
    let output = match command.current_dir("/").output() {
        Ok(output) => output,
        Err(error) => return skipped(&format!("another user cannot run what is built here: {error}")),
    };
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(69), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[1].ends_with("unreadable") && lines[2].ends_with("vacant"), "{out}");
    assert!(err.contains("a.entry: Permission denied"), "{err}");
    drop(lease);
}

#[test]
fn ten_thousand_leases_are_listed_in_the_time_of_one_read_each() {
    const MANY: usize = 10_000;
    // In memory, where a sync is free: the test measures reads.
    let memory = Path::new("/dev/shm");
    let home = if memory.is_dir() { Home::below(memory, "many") } else { Home::new("many") };
    let store: File = home.store();
    let record = fixture("held");
    block_on(async {
        let puts = stream::iter(0..MANY).map(|number| {
            let (store, record) = (store.clone(), record.clone());
            async move {
                let key = Key::parse(&format!("jobs/{number:05}")).unwrap();
                store.put(&key, record.into(), Expect::Absent).await.unwrap()
            }
        });
        assert_eq!(puts.buffer_unordered(64).count().await, MANY);
    });
    let clock = tenure::clock::BootClock::new();
    let timed = |what: &str, args: &[&str]| {
        let began = tenure::clock::Clock::now(&clock);
        let did = home.tenure(args);
        let took: Duration = tenure::clock::Clock::now(&clock).since(began);
        let _ = writeln!(std::io::stderr(), "{what}: {took:?}");
        did
    };
    let did = timed("ls of 10,000", &["ls"]);
    assert_eq!((did.code, did.out.lines().count()), (0, MANY + 1));
    let leases = timed("ls --json of 10,000", &["ls", "--json"]).json();
    assert_eq!(leases["leases"].as_array().unwrap().len(), MANY);
    assert_eq!(leases["leases"][MANY - 1]["name"], "jobs/09999");
}
