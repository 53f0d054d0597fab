//! Errors of the command line, and the help texts.

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use support::{Home, did};

#[test]
fn without_arguments_it_prints_help_and_fails() {
    let home = Home::new("bare");
    let did = home.tenure(&[]);
    assert_eq!((did.code, did.out.as_str()), (64, ""));
    assert!(did.err.contains("Examples:") && did.err.contains("Exit codes:"), "{}", did.err);
}

#[test]
fn requested_help_succeeds_and_states_the_contract() {
    let home = Home::new("help");
    let all = ["Examples:", "Exit codes:"];
    for (args, words) in [
        (
            &["--help"][..],
            &["TENURE_STORE", "TENURE_CONFIG", "XDG_STATE_HOME", "root included", "systemd", "75  "][..],
        ),
        (
            &["run", "--help"],
            &[
                "CMD owns standard input",
                "TENURE_TOKEN",
                "get TERM, and KILL",
                "TENURE_SLOT",
                "--conflict-exit-code",
                "76  ",
            ],
        ),
        (
            &["elect", "--help"],
            &["lets the other candidates try first", "doubles this pause", "TENURE_TOKEN", "--once", "76  "],
        ),
        (
            &["hold", "--help"],
            &[
                "--fd",
                "exec 9>>/var/lock/backup.lock",
                "lapses by its ttl",
                "prefer it",
                "lease-keeper",
                "76  ",
            ],
        ),
        (&["leader", "--help"], &["1  there is none", "only reads", "--watch", "jq"]),
        (&["resign", "--help"], &["1  there was no leader", "lets the other candidates try first", "75  "]),
        (&["status", "--help"], &["1  it is free", "only reads"]),
        (&["ls", "--help"], &["not billing-old", "only reads"]),
        (&["slots", "--help"], &["both numbers", "A shrink stops no CMD", "only reads"]),
        (&["watch", "--help"], &["--renewals", "jq", "only reads", "closed the pipe"]),
        (&["history", "--help"], &["newest first", "wall clocks"]),
        (&["help", "ls"], &["not billing-old", "only reads"]),
        (&["forget", "--help"], &["--vacant-for", "greater token", "keeps a record", "77"]),
        (&["kv", "--help"], &["tenure-owner", "one conditional write", "75  create: the key has an entry"]),
        (&["kv", "create", "--help"], &["75  the key has an entry", "may have been applied", "--wait"]),
        (&["kv", "cas", "--help"], &["75  conflict", "jq .revision"]),
        (&["kv", "get", "--help"], &["1  there is none", "only reads"]),
        (&["kv", "renew", "--help"], &["does not come back", "76  "]),
        (&["kv", "release", "--help"], &["greater revision", "76  "]),
        (&["kv", "ls", "--help"], &["not nodes-old", "only reads"]),
        (&["store", "--help"], &["guarantees"]),
        (&["store", "guarantees", "--help"], &["only reads", "before it exists"]),
        (
            &["demo", "--help"],
            &["SIGSTOP", "--no-fence", "greatest token", "1  it has not", "Ctrl-C", "jq", "500ms to 1m"],
        ),
        (&["completions", "--help"], &["bash", "zsh", "fish"]),
        (&["man", "--help"], &["man -l -", "--out"]),
    ] {
        let did = home.tenure(args);
        assert_eq!((did.code, did.err.as_str()), (0, ""), "{args:?}");
        for word in all.iter().chain(words) {
            assert!(did.out.contains(word), "{args:?} lacks {word:?}:\n{}", did.out);
        }
        let widest = did.out.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{args:?}: {widest:?}");
    }
}

#[test]
fn examples_and_exit_codes_of_the_help_fit_into_80_columns() {
    let home = Home::new("narrow");
    for command in COMMANDS {
        let help = home.tenure(&[command, &["--help"]].concat()).out;
        let (_, notes) = help.split_once("Examples:").unwrap();
        // Other lines are text, which clap wraps to the terminal.
        for line in notes.lines().filter(|line| line.starts_with(' ')) {
            assert!(line.chars().count() <= 80, "{command:?}: {line}");
        }
    }
}

#[test]
fn each_command_lists_only_options_and_exit_codes_that_it_has() {
    let home = Home::new("its-own");
    for command in [["acquire"], ["renew"], ["release"]] {
        let help = home.tenure(&[&command[..], &["--help"]].concat()).out;
        let (_, codes) = help.split_once("Exit codes:").unwrap();
        assert!(!codes.contains("126") && !codes.contains("status only"), "{command:?}: {codes}");
        assert!(codes.contains("   0  the lease was "), "{command:?}: {codes}");
    }
    for command in ["man", "completions", "demo"] {
        let help = home.tenure(&[command, "--help"]).out;
        assert!(!help.contains("--store") && !help.contains("--check-store"), "{command}: {help}");
    }
    // They accept the options all the same: a wrapper may always pass them.
    let did = home.tenure(&["--store", "file:///nowhere", "man", "--check-store"]);
    assert_eq!((did.code, did.err.as_str()), (0, ""));
    assert_eq!(home.tenure(&["man", "--store", "file:///nowhere"]).code, 0);
}

const COMMANDS: [&[&str]; 29] = [
    &[],
    &["run"],
    &["elect"],
    &["hold"],
    &["acquire"],
    &["renew"],
    &["release"],
    &["steal"],
    &["leader"],
    &["resign"],
    &["status"],
    &["ls"],
    &["slots"],
    &["watch"],
    &["history"],
    &["forget"],
    &["kv"],
    &["kv", "create"],
    &["kv", "cas"],
    &["kv", "get"],
    &["kv", "renew"],
    &["kv", "release"],
    &["kv", "ls"],
    &["store"],
    &["store", "guarantees"],
    &["probe"],
    &["demo"],
    &["completions"],
    &["man"],
];

#[test]
fn every_invalid_command_line_gives_one_sentence_with_the_next_step() {
    let home = Home::new("usage");
    for (args, sentence) in [
        (
            &["status"][..],
            "the following required arguments were not provided: <NAME>. See tenure status --help",
        ),
        (
            &["stauts", "x"],
            "unrecognized subcommand 'stauts' (some similar subcommands exist: 'steal', 'slots', 'status'). See tenure --help",
        ),
        (
            &["--store", "file:///x"],
            "'tenure' requires a subcommand but one was not provided [subcommands: run, elect, hold, acquire, renew, release, \
             steal, leader, resign, status, ls, slots, watch, history, forget, kv, fence, store, probe, demo, completions, man, help]. See tenure --help",
        ),
        (
            &["ls", "--jsn"],
            "unexpected argument '--jsn' found (a similar argument exists: '--json'). See tenure ls --help",
        ),
        (&["ls", "a", "b"], "unexpected argument 'b' found. See tenure ls --help"),
        (
            &["forget", "--vacant-for", "30d"],
            "the following required arguments were not provided: <PREFIX>. See tenure forget --help",
        ),
        (
            &["forget", "jobs", "--yes"],
            "the following required arguments were not provided: --vacant-for <DURATION>. See tenure forget --help",
        ),
        (
            &["forget", "jobs", "--vacant-for", "30"],
            "invalid value '30' for '--vacant-for <DURATION>': it has no unit: write it like 15s, 1m30s or 500ms. See \
             tenure forget --help",
        ),
        (
            &["store", "guaranties"],
            "unrecognized subcommand 'guaranties' (a similar subcommand exists: 'guarantees'). See tenure store --help",
        ),
        (
            &["completions", "cmd"],
            "invalid value 'cmd' for '<SHELL>' [possible values: bash, elvish, fish, powershell, zsh]. See tenure \
             completions --help",
        ),
        (&["run", "x"], "the following required arguments were not provided: <CMD>. See tenure run --help"),
        (
            &["run", "x", "true"],
            "unexpected argument 'true' found (the command comes after --, as in tenure run NAME -- true). See tenure \
             run --help",
        ),
        (
            &["run", "x", "--wait", "1s", "--no-wait", "--", "true"],
            "the argument '--wait <DURATION>' cannot be used with '--no-wait'. See tenure run --help",
        ),
        (
            &["run", "x", "--wait", "--", "true"],
            "a value is required for '--wait <DURATION>' but none was supplied. See tenure run --help",
        ),
        (
            &["run", "x", "--ttl", "15", "--", "true"],
            "invalid value '15' for '--ttl <DURATION>': it has no unit: write it like 15s, 1m30s or 500ms. See tenure \
             run --help",
        ),
        (
            &["run", "x", "--ttl=-15s", "--", "true"],
            "invalid value '-15s' for '--ttl <DURATION>': a duration cannot be negative: write it like 15s, 1m30s or \
             500ms. See tenure run --help",
        ),
        (
            &["run", "x", "--ttl", "-15s", "--", "true"],
            "unexpected argument '-1' found (a duration cannot be negative: write it like 15s, 1m30s or 500ms). See \
             tenure run --help",
        ),
        (
            &["run", "x", "--kill-grace", "soon", "--", "true"],
            "invalid value 'soon' for '--kill-grace <DURATION>': it is not a duration: write it like 15s, 1m30s or \
             500ms. See tenure run --help",
        ),
        (
            &["run", "x", "--conflict-exit-code", "256", "--", "true"],
            "invalid value '256' for '--conflict-exit-code <N>': 256 is not in 0..=255. See tenure run --help",
        ),
        (
            &["run", "é", "é"],
            "unexpected argument 'é' found (the command comes after --, as in tenure run NAME -- é). See tenure run \
             --help",
        ),
    ] {
        println!("{args:?}");
        home.tenure(args).failed(64, sentence);
    }
}

#[test]
fn usage_errors_are_json_on_request() {
    let home = Home::new("usage-json");
    let did = home.tenure(&["status", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&did.err).unwrap();
    assert_eq!(did.code, 64);
    let message = "the following required arguments were not provided: <NAME>. See tenure status --help";
    assert_eq!(said, serde_json::json!({ "error": { "exit": 64, "message": message } }));
    // Arguments after -- belong to CMD.
    let did = home.tenure(&["run", "--", "--json"]);
    assert!(did.err.starts_with("tenure: "), "{}", did.err);
}

#[test]
fn hostile_names_are_refused_and_never_reach_the_store() {
    let home = Home::new("names");
    for (name, sentence) in [
        ("", "a key must not be empty: give it a name such as billing/nightly"),
        (
            "../etc/passwd",
            "a key must not have '.' or '..' between its slashes: write it like billing/nightly, not \"../etc/passwd\"",
        ),
        (
            "/etc",
            "a key must not begin or end with '/' nor contain '//': write it like billing/nightly, not \"/etc\"",
        ),
        ("a\x1b[31m", "a key must not contain control characters: take them out of \"a\\u{1b}[31m\""),
        ("a\nb", "a key must not contain control characters: take them out of \"a\\nb\""),
        (
            ".tenure/scratch",
            "keys under .tenure/ are Tenure's own: choose another name than \".tenure/scratch\"",
        ),
    ] {
        home.tenure(&["status", name]).failed(64, sentence);
    }
    let long = "k".repeat(10_240);
    home.tenure(&["status", &long]).failed(
        64,
        "a key has at most 200 bytes, and this one has 10240: shorten \"kkkkkkkkkkkkkkkkkkkkkkkk\"…",
    );
    home.tenure(&["ls", ".."]).failed(
        64,
        "a key must not have '.' or '..' between its slashes: write it like billing/nightly, not \"..\"",
    );
    home.tenure(&["status", "Ünïcødé/键"]).stands(1, "Ünïcødé/键: free");
    assert!(!home.leases().exists(), "reading creates nothing");
}

#[test]
fn bytes_that_are_not_utf8_are_an_error_and_no_panic() {
    let home = Home::new("bytes");
    let did = did(home.command(&["status"]).arg(OsStr::from_bytes(b"\xff")));
    did.failed(64, "invalid UTF-8 was detected in one or more arguments. See tenure status --help");
}
