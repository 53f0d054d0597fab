//! `tenure fence`: fenced writes of scripts.

mod support;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use support::{Did, Home, did, fed, refused, shell};

/// Environment of a holder, as `tenure run` sets it.
fn holder(home: &Home, token: u64, args: &[&str]) -> Command {
    let mut command = home.command(&[&["fence"], args].concat());
    command.current_dir(&home.0).env("TENURE_NAME", "billing").env("TENURE_TOKEN", token.to_string());
    command
}

fn fence(home: &Home, token: u64, args: &[&str], input: &str) -> Did {
    fed(&mut holder(home, token, args), input.as_bytes())
}

/// Runs a script in a shell that finds `tenure`.
fn script(home: &Home, text: &str) -> Did {
    let bin = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let mut command = Command::new("sh");
    command.env_clear().env("HOME", &home.0).env("XDG_RUNTIME_DIR", &home.0);
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    did(command.current_dir(&home.0).args(["-c", text]).stdin(Stdio::null()))
}

fn content(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.0.join(name)).unwrap()
}

#[test]
fn a_command_under_tenure_run_needs_no_arguments() {
    let home = Home::new("fence-run");
    home.write("in.csv", "a,1\n");
    let ran = script(
        &home,
        "tenure run billing -- sh -ec '
            tenure fence seal report.csv
            tenure fence put report.csv <in.csv
            echo row 1 | tenure fence append ledger
            echo row 2 | tenure fence append ledger
            tenure fence check ledger >/dev/null
            tenure fence get report.csv
            tenure fence get ledger
            tenure fence put key:report <in.csv
            tenure fence get key:report'",
    );
    ran.answered(0, "a,1\nrow 1\nrow 2\na,1\n");
    assert_eq!(content(&home, "report.csv"), "a,1\n");
    assert_eq!(content(&home, "ledger"), "row 1\nrow 2\n");
    // The next holder has a greater token, and an earlier one is refused.
    let first = script(&home, "tenure fence get ledger --json").json()["token"].as_u64().unwrap();
    script(&home, "tenure run billing -- sh -c 'echo row 3 | tenure fence append ledger'").answered(0, "");
    let second = script(&home, "tenure fence get ledger --json").json()["token"].as_u64().unwrap();
    assert!(second > first);
    let late = fence(&home, first, &["append", "ledger"], "late\n");
    refused(
        &late,
        76,
        &["ledger", "lease billing", &first.to_string(), &second.to_string(), "stop for good"],
    );
    assert_eq!(content(&home, "ledger"), "row 1\nrow 2\nrow 3\n");
}

/// The accident of a script with a handle: its lease ran out, and it did not notice.
#[test]
fn a_script_whose_lease_was_taken_over_is_refused() {
    let home = Home::new("fence-handle");
    let ran = script(
        &home,
        "old=$(tenure acquire backup --file a)
         echo one | tenure fence append log --name backup --token $old
         tenure release --file a
         new=$(tenure acquire backup --file b)
         tenure fence seal log --name backup --token $new
         echo late | tenure fence append log --name backup --token $old
         echo $?
         echo two | tenure fence append log --name backup --token $new
         tenure release --file b",
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, "76\n"), "{ran:?}");
    assert_eq!(content(&home, "log"), "one\ntwo\n");
}

#[test]
fn a_stale_token_exits_76_with_both_tokens_and_changes_nothing() {
    let home = Home::new("fence-stale");
    for (write, target) in [("put", "f"), ("append", "l"), ("put", "key:k")] {
        fence(&home, 9, &[write, target], "nine\n").answered(0, "");
        for (name, input) in [(write, "late\n"), ("seal", ""), ("check", "")] {
            let late = fence(&home, 7, &[name, target], input);
            refused(&late, 76, &["refused token 7 of lease billing", "token 9 has been there"]);
        }
        let late = fence(&home, 7, &[write, target, "--json"], "late\n");
        let mut said: serde_json::Value = serde_json::from_str(&late.err).unwrap();
        assert!(said["error"]["message"].take().as_str().unwrap().contains("stop for good"));
        let error = json!({"exit": 76, "message": null, "name": "billing", "offered": 7, "token": 9});
        assert_eq!((late.code, said), (76, json!({ "error": error })));
        let late = fence(&home, 7, &["check", target, "--json"], "");
        let expected = json!({"target": target, "result": "stale", "name": "billing", "token": 9});
        assert_eq!((late.code, late.json()), (76, expected));
        fence(&home, 9, &["get", target], "").answered(0, "nine\n");
        // The same holder again, and the next one.
        fence(&home, 9, &[write, target], "again\n").answered(0, "");
        fence(&home, 10, &[write, target], "ten\n").answered(0, "");
        let other = fed(holder(&home, 99, &[write, target]).env("TENURE_NAME", "payroll"), b"x");
        refused(&other, 64, &["is fenced by lease billing", "token 99 of lease payroll"]);
    }
}

/// A target that has admitted such a token would refuse every real holder.
#[test]
fn a_typed_token_above_the_latest_grant_is_refused_and_one_that_is_unknown_here_is_not() {
    let home = Home::new("fence-above");
    let token = script(&home, "tenure run billing -- sh -c 'echo $TENURE_TOKEN'").out;
    let above = (token.trim().parse::<u64>().unwrap() + 1).to_string();
    let typed = |args: &[&str], name: &str, token: &str| {
        let mut command = home.command(&[&["fence"], args, &["--name", name, "--token", token]].concat());
        command.current_dir(&home.0);
        command
    };
    for args in [["put", "f"], ["append", "l"], ["put", "key:k"], ["seal", "f"], ["check", "f"]] {
        let did = fed(&mut typed(&args, "billing", &above), b"x");
        let parts = ["token", &above, "of lease billing was never granted", token.trim(), "--store"];
        refused(&did, 64, &parts);
    }
    assert!(!home.0.join("f").exists() && !home.0.join(".f.fence").exists());
    fed(&mut typed(&["put", "f"], "billing", token.trim()), b"x").answered(0, "");
    // The store does not know this lease, which may be elsewhere.
    fed(&mut typed(&["put", "g"], "elsewhere", "99"), b"x").answered(0, "");
    // What tenure run has set, and the script passes on, needs no store.
    let mut passed_on = typed(&["put", "h", "--store", "s3://unreachable"], "billing", &above);
    passed_on.env("TENURE_NAME", "billing").env("TENURE_TOKEN", &above);
    fed(&mut passed_on, b"x").answered(0, "");

    // While the slot is held, and when it is vacant.
    let check = "tenure fence check f --name gpu --slot 0 --token 9007199254740991";
    for line in [&*format!("tenure run --slots 1 gpu -- {check}"), check] {
        let mut did = script(&home, line);
        did.err = did.troubles();
        refused(&did, 64, &["token 9007199254740991 of slot 0 of gpu was never granted"]);
    }
    // A plain key has revisions, and no grants.
    assert_eq!(script(&home, "tenure kv create plain v").code, 0);
    fed(&mut typed(&["put", "p"], "plain", "9007199254740991"), b"x").answered(0, "");
    // A store that cannot be read.
    let lost = ["fence", "put", "x", "--store", "postgres://localhost:1/app", "--name", "n", "--token", "7"];
    let answer = fed(home.command(&lost).current_dir(&home.0), b"x");
    refused(&answer, 69, &["token 7 of lease n cannot be compared with its latest grant", "TENURE_TOKEN"]);
    assert!(!home.0.join("x").exists());
}

#[test]
fn check_says_that_only_the_write_proves_it() {
    let home = Home::new("fence-check");
    let cwd = &home.0;
    fence(&home, 7, &["check", "f"], "").answered(
        0,
        "f admits token 7 of lease billing now: it has admitted none yet. Only the write itself proves it\n",
    );
    assert_eq!(std::fs::read_dir(cwd).unwrap().count(), 0, "check creates nothing");
    fence(&home, 7, &["put", "f"], "x").answered(0, "");
    fence(&home, 8, &["check", "f"], "").answered(
        0,
        "f admits token 8 of lease billing now: its greatest token is 7. Only the write itself proves it\n",
    );
    let checked = fence(&home, 8, &["check", "f", "--json"], "");
    assert_eq!(
        (checked.code, checked.json()),
        (0, json!({"target": "f", "result": "admitted", "name": "billing", "token": 7}))
    );
    let checked = fence(&home, 8, &["check", "key:none", "--json"], "");
    assert_eq!(checked.json()["token"], json!(null));
}

#[test]
fn json_tells_what_was_done() {
    let home = Home::new("fence-json");
    let put = |args: &[&str], input: &str| fence(&home, 7, args, input).json();
    let answer = |target: &str, result: &str| json!({"target": target, "result": result, "name": "billing", "token": 7});
    let with = |mut answer: serde_json::Value, length: u64| {
        answer["length"] = json!(length);
        answer
    };
    assert_eq!(put(&["seal", "f", "--json"], ""), answer("f", "sealed"));
    assert_eq!(put(&["get", "f", "--json"], ""), answer("f", "absent"));
    assert_eq!(put(&["put", "f", "--json"], "abc"), with(answer("f", "put"), 3));
    assert_eq!(put(&["get", "f", "--json"], ""), with(answer("f", "found"), 3));
    assert_eq!(put(&["append", "l", "--json"], "abc"), with(answer("l", "appended"), 3));
    assert_eq!(put(&["append", "l", "--json"], "de"), with(answer("l", "appended"), 5));
    assert_eq!(put(&["put", "key:k", "--json"], "abc"), with(answer("key:k", "put"), 3));
    assert_eq!(put(&["get", "key:k", "--json"], ""), with(answer("key:k", "found"), 3));
    for absent in ["none", "key:none"] {
        let got = fence(&home, 7, &["get", absent, "--json"], "");
        assert_eq!(
            (got.code, got.json()),
            (1, json!({"target": absent, "result": "absent", "name": null, "token": null}))
        );
        fence(&home, 7, &["get", absent], "").answered(1, "");
    }
}

#[test]
fn without_a_token_the_message_says_what_to_do() {
    let home = Home::new("fence-missing");
    let words = ["TENURE_NAME", "TENURE_TOKEN", "tenure run", "--name", "--token"];
    for name in ["put", "append", "seal", "check"] {
        refused(&home.tenure(&["fence", name, "f"]), 64, &words);
        let half = did(home.command(&["fence", name, "f"]).env("TENURE_NAME", "billing"));
        refused(&half, 64, &words);
        refused(&home.tenure(&["fence", name, "f", "--name", "billing"]), 64, &["--token"]);
        refused(&home.tenure(&["fence", name, "f", "--token", "7"]), 64, &["--name"]);
        for (token, word) in
            [("0", "never granted"), ("-1", "not a token"), ("x", "not a token"), ("9e9", "not a token")]
        {
            let flag = format!("--token={token}");
            refused(&home.tenure(&["fence", name, "f", "--name", "billing", &flag]), 64, &[word]);
        }
        refused(&home.tenure(&["fence", name, "f", "--name", "../x", "--token", "7"]), 64, &["../x"]);
        let slot = did(holder(&home, 7, &[name, "f"]).env("TENURE_SLOT", "many"));
        refused(&slot, 64, &["many", "tenure run --slots"]);
    }
    assert!(!home.0.join("f").exists());
}

#[test]
fn a_closed_standard_input_is_an_error_and_an_empty_one_is_empty_content() {
    let home = Home::new("fence-closed");
    fence(&home, 7, &["put", "kept"], "kept").answered(0, "");
    for act in ["put kept", "append kept", "put key:kept"] {
        let closed = format!("TENURE_NAME=billing TENURE_TOKEN=8 tenure fence {act} <&-");
        refused(&script(&home, &closed), 64, &["standard input is closed", "</dev/null"]);
    }
    assert_eq!(content(&home, "kept"), "kept");
    script(&home, "TENURE_NAME=billing TENURE_TOKEN=8 tenure fence put kept </dev/null").answered(0, "");
    assert_eq!(content(&home, "kept"), "");
}

#[test]
fn a_slot_is_a_lease_of_its_own_and_a_lease_inside_a_slot_is_not_that_slot() {
    let home = Home::new("fence-slot");
    script(&home, "tenure run --slots 1 gpu -- sh -c 'echo x | tenure fence put of-slot'").answered(0, "");
    let got = script(&home, "tenure fence get of-slot --json").json();
    assert_eq!(got["name"], json!(".tenure/slots/gpu/0"));
    let token = got["token"].as_u64().unwrap().to_string();
    let named = ["fence", "check", "of-slot", "--name", "gpu", "--slot", "0", "--token", &token];
    let named = did(home.command(&named).current_dir(&home.0));
    assert_eq!((named.code, named.err.as_str()), (0, ""), "{named:?}");
    let other = ["fence", "check", "of-slot", "--name", "gpu", "--slot", "1", "--token", &token];
    refused(&did(home.command(&other).current_dir(&home.0)), 64, &["is fenced by slot 0 of gpu"]);

    let nested =
        "tenure run --slots 1 gpu -- sh -c 'tenure run inner -- sh -c \"echo x | tenure fence put nested\"'";
    script(&home, nested).answered(0, "");
    assert_eq!(script(&home, "tenure fence get nested --json").json()["name"], json!("inner"));
}

#[test]
fn hostile_targets_are_refused_and_strange_names_are_names() {
    let home = Home::new("fence-hostile");
    std::fs::create_dir(home.0.join("folder")).unwrap();
    home.write("target", "");
    symlink("target", home.0.join("link")).unwrap();
    assert!(shell(&format!("mkfifo {}", home.0.join("pipe").display())));
    for (target, code, word) in [
        ("", 64, "empty"),
        ("-", 64, "stream"),
        ("folder", 64, "directory"),
        ("link", 64, "symbolic link"),
        ("pipe", 64, "pipe"),
        ("/dev/null", 64, "device"),
        ("..", 64, "does not name a file"),
        ("missing/f", 69, "missing"),
        ("target/f", 65, "Name a directory"),
        (".x.fence", 64, "the file itself"),
        ("/proc/x", 77, "proc"),
        ("ftp://host/x", 64, "ftp://"),
        ("file://host/x", 64, "three slashes"),
        ("key:", 64, "empty"),
        ("key:../x", 64, ".."),
        ("key:.tenure/slots/x", 64, ".tenure"),
    ] {
        for name in ["put", "append"] {
            refused(&fence(&home, 7, &[name, "--", target], "x"), code, &[word]);
        }
    }
    for name in ["-rf", "a b", "$(id)", "new\nline", "./key:x", "C:x"] {
        fence(&home, 7, &["put", "--", name], name).answered(0, "");
        assert_eq!(content(&home, name), name);
    }
    let url = format!("file://{}/a%20url", home.0.display());
    fence(&home, 7, &["put", &url], "x").answered(0, "");
    assert_eq!(content(&home, "a url"), "x");
    // A message never moves the cursor.
    let said = fence(&home, 6, &["put", "--", "new\nline"], "x").err;
    assert_eq!(said.lines().count(), 1, "{said}");
    refused(&fence(&home, 7, &["append", "key:k"], "x"), 64, &["cannot be appended to"]);
    refused(&fence(&home, 7, &["put", "--adopt", "key:k"], "x"), 64, &["--adopt is for files"]);
}

#[test]
fn a_file_with_content_is_fenced_only_with_adopt() {
    let home = Home::new("fence-adopt");
    for (write, expected) in [("put", "new\n"), ("append", "old\nnew\n")] {
        home.write(write, "old\n");
        for name in [write, "seal", "check"] {
            refused(&fence(&home, 7, &[name, write], "new\n"), 65, &["4 bytes", "--adopt"]);
        }
        fence(&home, 7, &["get", write], "").answered(0, "old\n");
        fence(&home, 7, &[write, "--adopt", write], "new\n").answered(0, "");
        assert_eq!(content(&home, write), expected);
        refused(&fence(&home, 6, &[write, "--adopt", write], "late\n"), 76, &["token 6", "token 7"]);
    }
    // logrotate has moved it.
    std::fs::rename(home.0.join("append"), home.0.join("append.1")).unwrap();
    refused(&fence(&home, 8, &["append", "append"], "x\n"), 65, &["it is gone", "--adopt"]);
    fence(&home, 8, &["append", "--adopt", "append"], "x\n").answered(0, "");
    assert_eq!(content(&home, "append"), "x\n");
}

#[test]
fn content_of_any_size_is_streamed_in_bounded_memory() {
    let home = Home::below(
        Path::new(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }),
        "fence-large",
    );
    let ran = script(
        &home,
        "export TENURE_NAME=billing TENURE_TOKEN=7
         ulimit -v 150000 || exit 99
         head -c 200000000 /dev/zero | tenure fence put f && head -c 200000000 /dev/zero | tenure fence append l
         tenure fence get f | wc -c
         tenure fence get l | wc -c",
    );
    ran.answered(0, "200000000\n200000000\n");
}

#[test]
fn a_value_that_is_too_large_for_its_store_is_refused() {
    let home = Home::new("fence-value-max");
    let too_large = fed(&mut holder(&home, 7, &["put", "key:k"]), &vec![b'x'; (1 << 20) + 1]);
    assert_eq!((too_large.code, too_large.out.as_str()), (64, ""), "{too_large:?}");
    fence(&home, 7, &["get", "key:k"], "").answered(1, "");
}
