//! The lines of `tenure status` for people: the process of the holder, the times of its term, and the store.

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Did, Home, block_on, did, fixture, hold, plant, process};
use tenure_testkit::wait_until;

/// A command that runs under a lease until it is dropped.
struct Running(Child);

impl Running {
    fn start(home: &Home, lease: &str, mut command: Command) -> Self {
        let running = Self(command.spawn().unwrap());
        wait_until("the lease is held", || home.tenure(&["status", lease]).code == 0);
        running
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// The text of a line for people; `None` if there is no such line.
fn line(did: &Did, name: &str) -> Option<String> {
    let found = did.out.lines().skip(1).find(|line| line.trim_start().starts_with(name))?;
    Some(found.trim_start()[name.len()..].trim_start().to_owned())
}

fn status(home: &Home, lease: &str) -> (Did, Value) {
    (home.tenure(&["status", lease]), home.tenure(&["status", lease, "--json"]).json())
}

#[test]
fn a_command_is_shown_with_host_process_user_and_command_line_and_a_release_removes_them() {
    let home = Home::new("status-run");
    let running = Running::start(&home, "x", home.command(&["run", "x", "--", "sh", "-c", "exec sleep 100"]));
    let (text, seen) = status(&home, "x");
    let info = tenure::this_process();
    assert_eq!(line(&text, "host").as_deref(), info.host());
    let process = line(&text, "process").unwrap();
    assert!(process.starts_with(&format!("pid {}, ", running.pid())), "{process}");
    assert!(process.ends_with(&format!("user {}", info.user().unwrap())), "{process}");
    assert_eq!(line(&text, "command").as_deref(), Some("sh -c 'exec sleep 100'"));
    let expected = json!({
        "host": info.host(),
        "pid": running.pid(),
        "user": info.user(),
        "container": info.container(),
        "command": "sh -c 'exec sleep 100'",
    });
    assert_eq!((&seen["process"], &seen["by_handle"]), (&expected, &json!(false)));
    drop(running);
    let (text, seen) = status(&home, "x");
    assert_eq!(
        (line(&text, "process"), &seen["process"], &seen["by_handle"]),
        (None, &json!(null), &json!(null))
    );
    let record = std::fs::read_to_string(home.leases().join("x.entry")).unwrap();
    assert!(!record.contains("sleep"), "{record}");
}

#[test]
fn the_grant_the_next_renewal_and_the_latest_end_are_shown_with_their_times() {
    let home = Home::new("status-times");
    let coordinator = process(&home, "me");
    let request = coordinator.lease("k").unwrap().ttl(Duration::from_secs(60));
    let _lease = block_on(request.acquire()).unwrap();
    let (text, seen) = status(&home, "k");
    assert!(line(&text, "granted").unwrap().ends_with(" ago"), "{text:?}");
    assert!(line(&text, "next renewal").unwrap().starts_with("expected in about "), "{text:?}");
    assert!(line(&text, "deadline").unwrap().starts_with("at the latest about 20"), "{text:?}");
    assert_eq!(seen["renews_ms"], 20_000);
    let time = |name: &str| seen[name].as_str().unwrap().to_owned();
    assert!(
        time("granted_at") < time("next_renewal_at") && time("next_renewal_at") < time("deadline_at"),
        "{seen}"
    );
}

#[test]
fn an_overdue_renewal_is_called_late_instead_of_predicted() {
    let home = Home::new("status-late");
    plant(&home, "k", fixture("process"));
    let text = home.tenure(&["status", "k"]);
    let renewal = line(&text, "next renewal").unwrap();
    assert!(renewal.starts_with("was expected about ") && renewal.contains(" ago: "), "{text:?}");
    assert_eq!(line(&text, "process").as_deref(), Some("pid 1, in container 3f1e2d3c4b5a, user backup"));
}

#[test]
fn a_process_of_an_earlier_term_and_a_record_without_one_show_none() {
    let home = Home::new("status-earlier");
    for name in ["process-of-an-earlier-term", "held"] {
        plant(&home, name, fixture(name));
        let (text, seen) = status(&home, name);
        assert_eq!(
            (text.code, &seen["process"], &seen["renews_ms"]),
            (0, &json!(null), &json!(null)),
            "{text:?}"
        );
        for missing in ["host ", "process ", "command "] {
            assert_eq!(line(&text, missing), None, "{text:?}");
        }
        assert!(line(&text, "granted").is_some() && line(&text, "deadline").is_some(), "{text:?}");
    }
    // The first was granted to a handle. Of the second, nothing says when it is renewed.
    let next = |name: &str| line(&home.tenure(&["status", name]), "next renewal");
    assert_eq!(
        next("process-of-an-earlier-term").as_deref(),
        Some("when the process that has the handle runs tenure renew")
    );
    assert_eq!(next("held"), None);
}

#[test]
fn a_hidden_command_reaches_neither_the_store_nor_the_screen() {
    let home = Home::new("status-hidden");
    for command in [&["run", "x"][..], &["elect", "x"], &["steal", "x", "--reason", "test"]] {
        let args: Vec<&str> = command
            .iter()
            .copied()
            .chain(["--hide-command", "--", "sh", "-c", "exec sleep 100", "secret"])
            .collect();
        let _running = Running::start(&home, "x", home.command(&args));
        let (text, seen) = status(&home, "x");
        assert_eq!((line(&text, "command"), &seen["process"]["command"]), (None, &json!(null)));
        assert!(line(&text, "process").is_some(), "{text:?}");
        let record = std::fs::read_to_string(home.leases().join("x.entry")).unwrap();
        assert!(!record.contains("secret") && !record.contains("sleep"), "{record}");
    }
}

#[test]
fn passwords_in_urls_and_handles_never_reach_the_record() {
    let home = Home::new("status-secrets");
    let mut command = home.command(&["run", "x", "--", "sh", "-c", "exec sleep 100"]);
    command.args(["postgres://ann:s3cret@db/jobs", "tenure1_s3cret"]);
    let _running = Running::start(&home, "x", command);
    let text = home.tenure(&["status", "x"]);
    let shown = "sh -c 'exec sleep 100' postgres://ann:…@db/jobs tenure1_…";
    assert_eq!(line(&text, "command").as_deref(), Some(shown));
    let record = std::fs::read_to_string(home.leases().join("x.entry")).unwrap();
    assert!(!record.contains("s3cret"), "{record}");
}

#[test]
fn no_command_line_keeps_a_lease_from_being_granted_or_reaches_a_terminal_unescaped() {
    let home = Home::new("status-hostile");
    for (bytes, shown) in [
        (vec![b'x'; 10_000], "xxx…"),
        (b"a\xff\xfeb".to_vec(), "a\u{fffd}\u{fffd}b"),
        (b"a\x1b[2Jb\nc".to_vec(), "'a [2Jb c'"),
        ("a\u{202e}b".as_bytes().to_vec(), "a\\u{202e}b"),
    ] {
        let mut command = home.command(&["run", "x", "--", "sh", "-c", "exec sleep 100"]);
        command.arg(OsStr::from_bytes(&bytes));
        let _running = Running::start(&home, "x", command);
        let text = home.tenure(&["status", "x"]);
        let command = line(&text, "command").unwrap();
        assert!(command.ends_with(shown) && command.len() <= 1024, "{command:?}");
        assert!(!text.out.contains(['\x1b', '\u{202e}']), "{text:?}");
    }
}

#[test]
fn a_library_publishes_no_arguments_by_itself_and_a_handle_names_the_script_that_acquired_it() {
    let home = Home::new("status-library");
    let lease = hold(&process(&home, "me"), "k", 60_000);
    let (_, seen) = status(&home, "k");
    assert_eq!(seen["process"]["pid"], std::process::id());
    assert_eq!(seen["process"]["command"], json!(null));
    block_on(lease.release()).unwrap();
    let acquired = home.tenure(&["acquire", "k"]);
    let (text, seen) = status(&home, "k");
    assert_eq!(
        (&seen["by_handle"], &seen["renews_ms"], &seen["next_renewal_at"]),
        (&json!(true), &json!(null), &json!(null))
    );
    assert_eq!(seen["process"]["pid"], std::process::id(), "the caller, because tenure acquire has exited");
    assert_eq!(
        line(&text, "next renewal").as_deref(),
        Some("when the process that has the handle runs tenure renew")
    );
    let renewed = home.tenure(&["renew", acquired.out.trim()]);
    assert_eq!(renewed.code, 0, "{renewed:?}");
    let (_, seen) = status(&home, "k");
    assert_eq!(seen["process"]["pid"], std::process::id(), "a renewal keeps it");
}

#[test]
fn a_container_is_told_apart_although_its_process_is_number_one() {
    let home = Home::new("status-container");
    let command = home.command(&["run", "x", "--", "sleep", "100"]);
    let mut isolated = Command::new("unshare");
    isolated.args(["--pid", "--fork", "--mount-proc", "--kill-child", "--uts", "sh", "-c"]);
    isolated.arg("hostname web-7 && exec \"$0\" \"$@\"").arg(command.get_program()).args(command.get_args());
    isolated.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    isolated.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if !support::shell("unshare --pid --fork --mount-proc --uts true 2>/dev/null") {
        return support::skipped("no namespaces can be made here");
    }
    let mut running = isolated.spawn().unwrap();
    wait_until("the lease is held", || home.tenure(&["status", "x"]).code == 0);
    let (text, seen) = status(&home, "x");
    let _ = running.kill();
    let _ = running.wait();
    assert_eq!(
        (line(&text, "host").as_deref(), line(&text, "command").as_deref()),
        (Some("web-7"), Some("sleep 100"))
    );
    assert_eq!((&seen["holder"], &seen["process"]["pid"]), (&json!("web-7:1"), &json!(1)));
}

#[test]
fn the_store_is_shown_with_what_names_it() {
    let home = Home::new("status-store");
    let (default, other) = (home.url(), tenure::store::File::url_of(&home.0.join("other")));
    let config = home.0.join("tenure.toml");
    std::fs::write(&config, format!("store = {other:?}\n")).unwrap();
    let path = config.to_str().unwrap();
    let (by_default, by_flag): (&[&str], &[&str]) = (&[], &["--store", &other]);
    for (args, variable, url, from) in [
        (by_default, None, &default, "default"),
        (by_flag, None, &other, "--store"),
        (by_default, Some(("TENURE_STORE", other.as_str())), &other, "TENURE_STORE"),
        (by_default, Some(("TENURE_CONFIG", path)), &other, path),
    ] {
        let run = |command: &[&str]| did(home.command(args).args(command).envs(variable));
        let origin = if from == "default" { "the default".to_owned() } else { format!("from {from}") };
        let text = run(&["status", "x"]);
        assert_eq!(line(&text, "store"), Some(format!("{url}, {origin} (it does not exist yet)")));
        assert_eq!(run(&["ls"]).err, format!("no leases in {url}, {origin} (it does not exist yet)\n"));
        assert!(run(&["store", "guarantees"]).err.contains(&format!("store: {url}, {origin}\n")));
        for args in [&["status", "x", "--json"][..], &["ls", "--json"], &["store", "guarantees", "--json"]] {
            let seen = run(args).json();
            assert_eq!((&seen["store"], &seen["store_from"]), (&json!(url), &json!(from)), "{args:?}");
        }
    }
    let listed = {
        plant(&home, "k", fixture("vacant"));
        home.tenure(&["ls"])
    };
    assert_eq!(listed.err, format!("store: {default}, the default\n"));
    assert_eq!(listed.out.lines().count(), 2, "the table has one line per lease: {}", listed.out);
}

#[test]
fn every_spelling_of_a_directory_has_the_name_that_the_library_uses() {
    let home = Home::new("status-spelling");
    let _lease = hold(&process(&home, "me"), "k", 60_000);
    std::os::unix::fs::symlink(home.0.join(".local"), home.0.join("linked")).unwrap();
    let base = tenure::store::File::url_of(&home.0);
    for spelled in [
        ".local/state/tenure",
        ".local/state/tenure/",
        ".local//state/./tenure",
        ".local/state/../state/tenure",
        "linked/state/tenure",
        "linked/../.local/state/tenure",
        "%2Elocal/state/tenure",
    ] {
        let url = format!("{base}/{spelled}");
        let seen = home.tenure(&["--store", &url, "status", "k", "--json"]).json();
        assert_eq!((&seen["store"], &seen["state"]), (&json!(home.url()), &json!("held")), "{spelled}");
        let denied = home.tenure(&["--store", &url, "run", "k", "--no-wait", "--", "true"]);
        assert!(denied.err.contains(&format!("lease k on {} is held by me", home.url())), "{denied:?}");
    }
}

#[test]
fn every_spelling_of_a_server_has_one_name_with_what_the_environment_adds() {
    let home = Home::new("status-servers");
    for (spellings, begin) in [
        (
            &["redis://ann@127.0.0.1:1", "redis://ann@127.0.0.1:1/", "REDIS://ann@127.0.0.1:1/0"][..],
            "redis://",
        ),
        (&["postgres://ann@127.0.0.1:1/app", "postgresql://ann@127.0.0.1:1/app"], "postgres://"),
        (&["s3://jobs/a", "s3://jobs/a/", "s3://jobs/a?endpoint=http://127.0.0.1:1"], "s3://"),
    ] {
        let mut names = Vec::new();
        for url in spellings {
            let run = |args: &[&str]| {
                let mut command = home.command(&["--store", url]);
                command
                    .args(args)
                    .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
                    .env("AWS_REGION", "eu-west-1");
                command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "s3cret");
                let did = did(command.env("REDISCLI_AUTH", "s3cret").env("PGPASSWORD", "s3cret"));
                assert!(!format!("{did:?}").contains("s3cret"), "{did:?}");
                did
            };
            let name = run(&["store", "guarantees", "--json"]).json()["store"].as_str().unwrap().to_owned();
            assert!(run(&["store", "guarantees"]).err.contains(&format!("store: {name}, from --store\n")));
            // An error of the library names the store without the role that this process uses.
            let unavailable = run(&["status", "x"]);
            let of_library = name.replace("ann@", "");
            assert!(
                unavailable.code == 69 && unavailable.err.contains(&of_library),
                "{name}: {unavailable:?}"
            );
            names.push(name);
        }
        assert!(names[0].starts_with(begin) && names.iter().all(|other| *other == names[0]), "{names:?}");
    }
}

#[test]
fn the_url_of_a_store_with_a_password_is_refused_and_the_password_is_not_shown() {
    let home = Home::new("status-passwords");
    for url in ["redis://ann:s3cret@127.0.0.1:1", "postgres://ann:s3cret@127.0.0.1:1/app"] {
        for args in [&["status", "x"][..], &["ls"], &["store", "guarantees"], &["status", "x", "--json"]] {
            let did = did(home.command(args).env("TENURE_STORE", url));
            assert!(did.code == 64 && !format!("{did:?}").contains("s3cret"), "{did:?}");
        }
    }
}
