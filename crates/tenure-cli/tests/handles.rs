//! `tenure acquire`, `renew` and `release`, as a script uses them.

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use support::{Did, Home, block_on, did, hold, is_root, process, refused, shell, skipped, sleep_ms};
use tenure::Handle;

/// Runs the command with this standard input.
fn piped(home: &Home, args: &[&str], input: &str) -> Did {
    let path = home.write("input", input);
    did(home.command(args).stdin(fs::File::open(path).unwrap()))
}

#[track_caller]
fn handle(did: &Did) -> String {
    assert_eq!((did.code, did.err.as_str()), (0, ""));
    let text = did.out.strip_suffix('\n').unwrap();
    text.parse::<Handle>().unwrap();
    text.to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_handle_is_passed_through_a_variable_an_argument_and_standard_input() {
    let home = Home::new("handles");
    let first = handle(&home.tenure(&["acquire", "job", "--ttl", "60s"]));
    assert_eq!(home.tenure(&["status", "job"]).code, 0);
    let second = handle(&home.tenure(&["renew", &first]));
    let third = handle(&piped(&home, &["renew"], &format!("  {second}\n\n")));
    let printed = piped(&home, &["renew", "-", "--json"], &third);
    // The JSON output is accepted as a handle.
    piped(&home, &["release"], &printed.out).answered(0, "");
    assert_eq!(home.tenure(&["status", "job"]).code, 1);
}

#[test]
fn json_has_the_token_the_remaining_time_and_the_handle() {
    let home = Home::new("handles");
    let answer = home.tenure(&["acquire", "job", "--ttl", "1m", "--holder", "me", "--json"]).json();
    assert_eq!(answer["name"], "job");
    assert_eq!(answer["holder"], "me");
    assert_eq!(answer["store"], home.url());
    assert_eq!(answer["ttl_ms"], 60_000);
    let left = answer["left_ms"].as_u64().unwrap();
    assert!((30_000..59_401).contains(&left), "{left}");
    let handle: Handle = answer["handle"].as_str().unwrap().parse().unwrap();
    assert_eq!(handle.token().get(), answer["token"].as_u64().unwrap());
    let status = home.tenure(&["status", "job", "--json"]).json();
    assert_eq!(status["token"], answer["token"]);
    let released = home.tenure(&["release", "--json", answer["handle"].as_str().unwrap()]).json();
    assert_eq!(released["token"], answer["token"]);
    assert!(released.get("handle").is_none() && released.get("left_ms").is_none());
}

#[test]
fn a_handle_file_is_private_to_its_owner_and_replaced_at_each_renewal() {
    let home = Home::new("handles");
    let path = home.0.join("lease");
    let file = path.to_str().unwrap();
    let token = home.tenure(&["acquire", "job", "--file", file]);
    let handle: Handle = fs::read_to_string(&path).unwrap().trim().parse().unwrap();
    token.answered(0, &format!("{}\n", handle.token()));
    assert_eq!(mode(&path), 0o600);
    let before = fs::read_to_string(&path).unwrap();
    home.tenure(&["renew", "--file", file]).answered(0, "");
    let answer = home.tenure(&["renew", "--file", file, "--json"]).json();
    assert!(answer.get("handle").is_none(), "it is in the file");
    assert_ne!(fs::read_to_string(&path).unwrap(), before);
    assert_eq!(mode(&path), 0o600);
    home.tenure(&["release", "--file", file]).answered(0, "");
    assert!(!path.exists());
    let names: Vec<_> = fs::read_dir(&home.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [".local"], "nothing else is left");
}

#[test]
fn a_handle_file_is_private_under_any_umask_and_a_link_is_refused() {
    let home = Home::new("handles");
    fs::create_dir(home.0.join("real")).unwrap();
    let (link, real) = (home.0.join("link"), home.0.join("real/lease"));
    let script = format!(
        "umask 0; HOME={} {} acquire job --file {}",
        home.0.display(),
        env!("CARGO_BIN_EXE_tenure"),
        real.display()
    );
    assert!(shell(&script));
    assert_eq!(mode(&real), 0o600);
    symlink(&real, &link).unwrap();
    let link = link.to_str().unwrap();
    for args in [&["renew"][..], &["release"], &["acquire", "other"]] {
        let words = ["is a symbolic link", "name the file itself", "standard input"];
        refused(&home.tenure(&[args, &["--file", link]].concat()), 78, &words);
    }
    assert_eq!(home.tenure(&["status", "other"]).code, 1, "nothing was taken");
    home.tenure(&["release", "--file", real.to_str().unwrap()]).answered(0, "");
}

#[test]
fn acquire_names_the_present_holder() {
    let home = Home::new("handles");
    let other = process(&home, "them");
    let lease = hold(&other, "job", 60_000);
    let token = lease.token().to_string();
    let held = home.tenure(&["acquire", "job", "--no-wait"]);
    refused(&held, 75, &["lease job on file:///", "held by them", &token, "left", "--wait"]);
    home.tenure(&["acquire", "job", "--no-wait", "--quiet"]).answered(75, "");
    refused(&home.tenure(&["acquire", "job", "--wait", "200ms"]), 75, &["wait longer"]);
    block_on(lease.release()).unwrap();
    handle(&home.tenure(&["acquire", "job", "--no-wait"]));
}

#[test]
fn a_handle_is_refused_after_its_deadline_and_after_another_grant() {
    let home = Home::new("handles");
    let late = handle(&home.tenure(&["acquire", "job", "--ttl", "1s", "--holder", "me"]));
    sleep_ms(1_000);
    let token = late.parse::<Handle>().unwrap().token().to_string();
    let why = "no renewal was confirmed before the deadline";
    refused(
        &home.tenure(&["renew", &late]),
        76,
        &["lease job of me", &token, "file:///", "stop acting", why],
    );
    let next = handle(&home.tenure(&["acquire", "job", "--holder", "them"]));
    refused(&home.tenure(&["release", &late]), 76, &["them was granted it"]);
    let next = handle(&home.tenure(&["renew", &next]));
    // The first release succeeds: the lease is still held by this handle.
    home.tenure(&["release", &next]).answered(0, "");
    refused(&home.tenure(&["release", &next]), 76, &["it was released"]);
    refused(&home.tenure(&["renew", &next]), 76, &["it was released"]);
}

#[test]
fn a_late_release_succeeds_if_there_was_no_other_grant() {
    let home = Home::new("handles");
    let late = handle(&home.tenure(&["acquire", "job", "--ttl", "500ms"]));
    sleep_ms(700);
    home.tenure(&["release", &late]).answered(0, "");
}

#[test]
fn the_next_script_takes_over_from_a_dead_one_after_one_ttl() {
    let home = Home::new("handles");
    handle(&home.tenure(&["acquire", "job", "--ttl", "1500ms"]));
    assert_eq!(home.tenure(&["acquire", "job", "--no-wait"]).code, 75, "nothing tells that it is dead");
    handle(&home.tenure(&["acquire", "job", "--wait", "20s", "--quiet"]));
}

#[test]
fn a_handle_of_another_boot_is_refused() {
    let home = Home::new("handles");
    let namespace = ["--user", "--map-root-user", "--time", "--boottime", "86400", "--fork", "--"];
    let elsewhere = |args: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.args(namespace).arg(env!("CARGO_BIN_EXE_tenure")).args(args);
        command.env_clear().env("HOME", &home.0).env("PATH", "/usr/bin:/bin");
        did(&mut command)
    };
    if elsewhere(&["--version"]).code != 0 {
        return skipped("no time namespaces here");
    }
    let ours = handle(&home.tenure(&["acquire", "job"]));
    refused(
        &elsewhere(&["renew", &ours]),
        76,
        &["another boot or time namespace", "Acquire the lease again"],
    );
    home.tenure(&["release", &ours]).answered(0, "");
}

#[test]
fn a_handle_names_its_store_and_is_not_used_on_another() {
    let home = Home::new("handles");
    let (one, other) = (home.0.join("one"), home.0.join("other"));
    let url = |path: &Path| format!("file://{}", path.display());
    let text = handle(&home.tenure(&["--store", &url(&one), "acquire", "job"]));
    let text = handle(&home.tenure(&["renew", &text]));
    let wrong = home.tenure(&["--store", &url(&other), "renew", &text]);
    refused(&wrong, 64, &["lease job", &url(&one), &url(&other)]);
    assert!(!other.exists(), "a mistake makes no store");
    home.tenure(&["--store", &url(&other), "run", "job", "--", "true"]).answered(0, "");
    let wrong = home.tenure(&["--store", &url(&other), "renew", &text]);
    refused(&wrong, 64, &["lease job", &url(&one), &url(&other)]);
    let wrong = did(home.command(&["release", &text]).env("TENURE_STORE", url(&other)));
    refused(&wrong, 64, &["another store"]);
    home.tenure(&["--store", &url(&one), "release", &text]).answered(0, "");
}

#[test]
fn a_missing_store_is_not_created_to_check_a_handle() {
    let home = Home::new("handles");
    let text = handle(&home.tenure(&["acquire", "job"]));
    let away = home.0.join("away");
    fs::rename(home.leases(), &away).unwrap();
    for command in ["renew", "release"] {
        refused(&home.tenure(&[command, &text]), 78, &["file:///", "does not exist"]);
    }
    assert!(!home.leases().exists());
    fs::rename(&away, home.leases()).unwrap();
    home.tenure(&["release", &text]).answered(0, "");
}

#[test]
fn an_invalid_handle_is_refused_and_never_printed() {
    let home = Home::new("handles");
    let text = handle(&home.tenure(&["acquire", "job"]));
    for verb in ["renew", "release"] {
        refused(&home.tenure(&[verb, &text[..text.len() - 1]]), 64, &["damaged", "cut short or edited"]);
        refused(&home.tenure(&[verb, &text[..40]]), 64, &["damaged"]);
        refused(&home.tenure(&[verb, &text.replace('a', "b")]), 64, &["damaged"]);
        refused(&home.tenure(&[verb, "hello"]), 64, &["not a handle", "tenure1_"]);
        refused(&piped(&home, &[verb], ""), 64, &["there is no handle"]);
        refused(&piped(&home, &[verb], "{\"handle\": 7}"), 64, &["handle"]);
        refused(&piped(&home, &[verb], &"x".repeat(200_000)), 64, &["not a handle"]);
        refused(
            &home.tenure(&[verb, "--file", "/nonexistent/lease"]),
            64,
            &["no handle in /nonexistent/lease"],
        );
        refused(&home.tenure(&[verb, "--file", "/"]), 64, &["is not a file"]);
        refused(&home.tenure(&[verb, "--file", "/x", &text]), 64, &["cannot be used with"]);
    }
    home.tenure(&["release", &text]).answered(0, "");
}

#[test]
fn a_misplaced_handle_is_never_printed() {
    let home = Home::new("handles");
    let text = handle(&home.tenure(&["acquire", "job"]));
    let url = format!("file:///{text}/below");
    let wrong: &[&[&str]] = &[
        &["release", "job", &text],
        &["renew", "--json", "job", &text],
        &["renew", "--file", &text],
        &["status", &text],
        &["run", "job", &text],
        &["renew", &text, "--store", &text],
        &["renew", &text, "--store", &url],
        &["acquire", "job", "--ttl", &text],
        &[&text],
    ];
    for args in wrong {
        let did = home.tenure(args);
        assert!(did.code >= 64 && !did.err.contains(&text[8..16]), "{args:?}: {did:?}");
    }
    home.tenure(&["release", &text]).answered(0, "");
}

#[test]
fn a_handle_as_the_value_of_another_argument_is_cut_short() {
    let home = Home::new("handles");
    let text = handle(&home.tenure(&["acquire", "job"]));
    let cut = |did: &Did| refused(did, did.code, &["tenure1_…"]);
    for words in [
        &[text.as_str()][..],
        &["renew", "x", &text],
        &["renew", &format!("--{text}")],
        &["renew", "--file", &text],
        &["renew", "--json", "--file", &text],
        &["acquire", "other", "--file", &text],
        &["status", "job", &text],
        &["run", "job", "--ttl", &text, "--", "true"],
        &["run", "other", "--", &text],
        &["steal", "job", "--reason", &text],
        &["completions", &text],
        &["store", "guarantees", &text],
        &["--store", &text, "ls"],
        &["--store", &format!("redis://{text}"), "ls"],
    ] {
        let did = home.tenure(words);
        assert!(did.code >= 64, "{words:?}: {did:?}");
        assert!(!did.err.contains(&text[..120]) && !did.out.contains(&text[..120]), "{did:?}");
    }
    cut(&home.tenure(&["renew", "--file", &text]));
    cut(&home.tenure(&["status", "job", &text]));
    cut(&did(home.command(&["ls"]).env("TENURE_STORE", &text)));
    cut(&did(home.command(&["ls"]).env("TENURE_CONFIG", home.0.join(&text))));
}

#[test]
fn a_handle_that_others_can_read_is_refused() {
    let home = Home::new("handles");
    let path = home.0.join("lease");
    let file = path.to_str().unwrap();
    home.tenure(&["acquire", "job", "--file", file]);
    for bad in [0o644, 0o640, 0o606, 0o620] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bad)).unwrap();
        refused(&home.tenure(&["renew", "--file", file]), 78, &["by other users", "chmod 600"]);
        refused(&home.tenure(&["release", "--file", file]), 78, &["by other users"]);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        refused(&home.tenure(&["renew", "--file", file]), 78, &["belongs to user 12345"]);
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    home.tenure(&["release", "--file", file]).answered(0, "");
}

#[test]
fn a_file_without_a_handle_or_with_another_live_one_is_not_overwritten() {
    let home = Home::new("handles");
    let notes = home.write("notes", "do not lose this\n");
    for mode in [0o600, 0o644] {
        fs::set_permissions(&notes, fs::Permissions::from_mode(mode)).unwrap();
        let wrong = home.tenure(&["acquire", "job", "--file", notes.to_str().unwrap()]);
        refused(&wrong, 64, &["exists and is not a handle"]);
        let wrong = home.tenure(&["release", "--file", notes.to_str().unwrap()]);
        refused(&wrong, 64, &["there is no handle in"]);
    }
    assert_eq!(fs::read_to_string(&notes).unwrap(), "do not lose this\n");
    let dangling = home.0.join("dangling");
    symlink("nothing", &dangling).unwrap();
    let wrong = home.tenure(&["acquire", "job", "--file", dangling.to_str().unwrap()]);
    refused(&wrong, 78, &["is a symbolic link"]);
    let empty = home.write("empty", "");
    assert_eq!(home.tenure(&["acquire", "three", "--file", empty.to_str().unwrap()]).code, 0);
    assert_eq!(mode(&empty), 0o600);
    let path = home.0.join("lease");
    let file = path.to_str().unwrap();
    assert_eq!(home.tenure(&["acquire", "one", "--file", file]).code, 0);
    refused(&home.tenure(&["acquire", "two", "--file", file]), 64, &["lease one", "name another file"]);
    assert_eq!(home.tenure(&["status", "two"]).code, 1, "nothing was taken");
    home.tenure(&["renew", "--file", file]).answered(0, "");
}

/// The first script is slow and alive. If it found the handle of the second in its file, it would continue with it.
#[test]
fn a_handle_file_belongs_to_one_script_so_that_no_script_continues_with_the_lease_of_another() {
    let home = Home::new("handles");
    let path = home.0.join("lease");
    let file = path.to_str().unwrap();
    let waiting = ["acquire", "job", "--ttl", "1s", "--wait", "60s", "--file", file];
    // The second starts to wait before the first has written its file.
    let holder = home.tenure(&["acquire", "job", "--ttl", "1s"]);
    let waits = home.command(&waiting).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    home.tenure(&["release", &handle(&holder)]);
    let first = home.tenure(&waiting);
    let second = waits.wait_with_output().unwrap();
    // The later of the two is refused, and has released its lease.
    let codes = [first.code, second.status.code().unwrap()];
    assert!(codes == [0, 64] || codes == [64, 0], "{codes:?}");
    let kept = fs::read_to_string(&path).unwrap();
    for name in ["job", "other"] {
        let refusal = home.tenure(&["acquire", name, "--wait", "60s", "--file", file]);
        refused(&refusal, 64, &["lease job", "would renew and release yours", "for each run"]);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), kept);
    fs::remove_file(&path).unwrap();
    assert_eq!(home.tenure(&waiting).code, 0);
    home.tenure(&["release", "--file", file]).answered(0, "");
}

#[test]
fn other_processes_cannot_block_the_next_handle() {
    let home = Home::new("handles");
    let (at, tenure) = (home.0.display(), env!("CARGO_BIN_EXE_tenure"));
    for command in ["acquire job", "renew"] {
        // Other processes know the pid before the command writes.
        let script = format!("cd {at}; mkdir .lease.$$.tmp; exec {tenure} {command} --file lease >/dev/null");
        assert!(shell(&format!("HOME={at} sh -c '{script}'")), "{command}");
    }
}

#[test]
fn nothing_is_renewed_or_granted_if_the_next_handle_cannot_be_written() {
    if !is_root() || !shell("unshare --mount true 2>/dev/null") {
        return skipped("no mount namespaces here");
    }
    let home = Home::new("handles");
    let small = home.0.join("small");
    fs::create_dir(&small).unwrap();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    // A full disk: there is room for one handle only.
    let script = format!(
        "set -e; mount -t tmpfs -o size=64k none {small}; cd {small}; export HOME={home}
         {tenure} acquire job --file lease >/dev/null; cp lease {home}/before
         head -c 1000000 /dev/zero > full 2>/dev/null || true
         {tenure} renew --file lease 2>{home}/said && exit 3; echo $? >{home}/code
         cmp lease {home}/before; ls -A | wc -l >{home}/count
         {tenure} acquire other --file another 2>>{home}/said && exit 4
         {tenure} status other && exit 5; rm full; {tenure} renew --file lease; {tenure} release --file lease",
        small = small.display(),
        home = home.0.display()
    );
    assert!(shell(&format!("unshare --mount sh -c '{script}'")));
    let said = fs::read_to_string(home.0.join("said")).unwrap();
    assert!(
        said.lines().count() == 2 && said.lines().all(|line| line.contains("cannot be written")),
        "{said}"
    );
    assert_eq!(fs::read_to_string(home.0.join("code")).unwrap(), "69\n");
    assert_eq!(fs::read_to_string(home.0.join("count")).unwrap().trim(), "2", "no temporary file is left");
}

#[test]
fn a_lease_whose_handle_cannot_be_delivered_is_released_at_once() {
    let home = Home::new("handles");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let lost = did(home.command(&["acquire", "job"]).stdout(full));
    assert_eq!(lost.code, 69, "{lost:?}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = home.command(&["acquire", "job"]).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(69));
    let path = home.0.join("lease");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let lost = did(home.command(&["acquire", "job", "--file", path.to_str().unwrap()]).stdout(full));
    assert_eq!((lost.code, path.exists()), (69, false), "{lost:?}");
    handle(&home.tenure(&["acquire", "job", "--no-wait"]));
}

/// Otherwise the script would believe that it holds the lease, after it has run out.
#[test]
fn a_handle_that_is_read_after_its_deadline_counts_as_lost() {
    let home = Home::new("handles");
    let slowly = |args: &[&str]| {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        // The pipe is full.
        writer.write_all(&[b'.'; 64 * 1024]).unwrap();
        let child = home.command(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        sleep_ms(2_000);
        std::io::copy(&mut reader, &mut std::io::sink()).unwrap();
        let ran = child.wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(76), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).contains("before its handle was printed"), "{ran:?}");
    };
    slowly(&["acquire", "job", "--ttl", "500ms"]);
    assert_eq!(home.tenure(&["status", "job"]).code, 1);
    let first = handle(&home.tenure(&["acquire", "job", "--ttl", "1500ms"]));
    slowly(&["renew", &first]);
}

#[test]
fn a_renewal_whose_handle_cannot_be_delivered_reports_it_as_lost() {
    let home = Home::new("handles");
    let first = handle(&home.tenure(&["acquire", "job"]));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let renewed = home.command(&["renew", &first]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let renewed = renewed.wait_with_output().unwrap();
    assert_eq!(renewed.status.code(), Some(69));
    assert!(String::from_utf8_lossy(&renewed.stderr).contains("its new handle is lost"), "{renewed:?}");
}

#[test]
fn absurd_durations_and_names_are_refused_before_anything_is_created() {
    let home = Home::new("handles");
    refused(&home.tenure(&["acquire", "job", "--ttl", "1ms"]), 78, &["ttl"]);
    refused(&home.tenure(&["acquire", "job", "--ttl", "48h"]), 78, &["ttl"]);
    refused(&home.tenure(&["acquire", "job", "--ttl", "soon"]), 64, &["not a duration"]);
    refused(&home.tenure(&["acquire", "../job"]), 64, &["key"]);
    refused(&home.tenure(&["acquire", &"x".repeat(10_000)]), 64, &["at most 200 bytes"]);
    refused(&home.tenure(&["acquire", "job", "--holder", ""]), 64, &["holder"]);
    assert!(!home.leases().exists() || fs::read_dir(home.leases()).unwrap().count() <= 1);
}
