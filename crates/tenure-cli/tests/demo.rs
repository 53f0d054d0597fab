//! `tenure demo`: the accident of a paused holder, without and with the fence.

mod run_support;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use run_support::{PATIENCE, Process, Ran, Started, TENURE, World, children_of, exit_code, sleep_ms, until};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

/// A world whose temporary directory is its own.
fn world(name: &str) -> World {
    let world = World::new(name);
    std::fs::create_dir(world.path("tmp")).unwrap();
    world
}

/// `tenure demo` with these options.
fn demo(world: &World, words: &[&str]) -> Command {
    let mut command = world.tenure(&["demo"]);
    command.args(words).env("TMPDIR", world.path("tmp"));
    command
}

/// Asserts that the demo left neither a process nor a file.
#[track_caller]
fn nothing_is_left(world: &World) {
    world.is_empty_soon();
    assert_eq!(names(world), [""; 0], "a directory is left");
}

/// The names in the temporary directory.
fn names(world: &World) -> Vec<String> {
    let found = std::fs::read_dir(world.path("tmp")).unwrap();
    found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The events of a demo that has ended with this code.
#[track_caller]
fn events(ran: &Ran, code: i32) -> Vec<Value> {
    assert_eq!((ran.code, ran.err.as_str()), (code, ""), "{ran:?}");
    ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The summary of the round with or without the fence.
fn summary(events: &[Value], fence: bool) -> &Value {
    let mut found = events.iter().filter(|event| event["event"] == "summary" && event["fence"] == fence);
    let summary = found.next().expect("a summary");
    assert!(found.next().is_none(), "a second summary");
    summary
}

/// Short durations, for tests that are not about the defaults.
const SHORT: [&str; 4] = ["--ttl", "1s", "--pause", "1500ms"];

#[test]
fn a_paused_holder_writes_twice_without_the_fence_and_is_refused_with_it() {
    let world = world("demo");
    let events = events(&world.ran(demo(&world, &["--json"])), 0);

    let accident = summary(&events, false);
    assert_eq!((&accident["rows_expected"], &accident["rows_written"]), (&8.into(), &9.into()), "{accident}");
    assert_eq!(accident["rows_twice"], serde_json::json!([3]), "{accident}");
    assert_eq!(accident["stale_rows_accepted"], 1, "{accident}");
    assert_eq!(accident["stale_writes_refused"], 0, "{accident}");
    assert!(accident["cents_counted"].as_u64() > accident["cents_expected"].as_u64(), "{accident}");

    let fenced = summary(&events, true);
    assert_eq!((&fenced["rows_expected"], &fenced["rows_written"]), (&8.into(), &8.into()), "{fenced}");
    assert_eq!(fenced["rows_twice"], serde_json::json!([]), "{fenced}");
    assert_eq!(fenced["stale_rows_accepted"], 0, "{fenced}");
    assert!(fenced["stale_writes_refused"].as_u64() >= Some(1), "{fenced}");
    assert_eq!(fenced["cents_counted"], fenced["cents_expected"], "{fenced}");

    for round in [accident, fenced] {
        assert_eq!((&round["taken_over"], &round["shown"]), (&true.into(), &true.into()), "{round}");
        assert_eq!((&round["ttl_ms"], &round["pause_ms"]), (&2_000.into(), &5_000.into()), "{round}");
    }
    the_story_is_told_in_its_order(&events);
    nothing_is_left(&world);
}

/// The late write comes after the check, the stop, the takeover and the end of the other worker; and its token is older.
fn the_story_is_told_in_its_order(events: &[Value]) {
    for fence in [false, true] {
        let round: Vec<&Value> = events.iter().filter(|event| event["fence"] == fence).collect();
        let late = if fence { "refused" } else { "written-again" };
        let story = [
            ("A", "granted"),
            ("B", "waiting"),
            ("A", "written"),
            ("A", "stopped"),
            ("B", "granted"),
            ("B", "written"),
            ("B", "finished"),
            ("A", "continued"),
            ("A", late),
            ("A", "lost"),
        ];
        let mut from = 0;
        for (process, event) in story {
            let at = round[from..]
                .iter()
                .position(|told| told["process"] == process && told["event"] == event)
                .unwrap_or_else(|| panic!("no {event} of {process} after {from}: {round:?}"));
            from += at + 1;
        }
        let of = |process: &str, event: &str| {
            *round.iter().find(|told| told["process"] == process && told["event"] == event).unwrap()
        };
        // The last act of A before the stop is its check for the row that it writes late.
        let stopped = round.iter().position(|told| told["event"] == "stopped").unwrap();
        assert_eq!(
            (&round[stopped - 1]["event"], &round[stopped - 1]["row"]),
            (&"checked".into(), &3.into())
        );
        assert_eq!(of("A", late)["row"], 3);
        let (old, new) = (of("A", "granted")["token"].as_u64(), of("B", "granted")["token"].as_u64());
        assert!(old < new, "{old:?} {new:?}");
        if fence {
            let refused = of("A", "refused");
            assert_eq!((refused["token"].as_u64(), refused["highest"].as_u64()), (old, new), "{refused}");
            let message = refused["message"].as_str().unwrap();
            for part in [old, new].map(|token| token.unwrap().to_string()) {
                assert!(message.contains(&part) && message.contains("settlement/nightly"), "{message}");
            }
        }
    }
}

#[test]
fn a_pause_shorter_than_the_ttl_is_accepted_and_the_demo_says_why() {
    let world = world("demo-short");
    let events = events(&world.ran(demo(&world, &["--json", "--ttl", "10s", "--pause", "200ms"])), 0);
    for fence in [false, true] {
        let round = summary(&events, fence);
        assert_eq!((&round["taken_over"], &round["shown"]), (&false.into(), &true.into()), "{round}");
        assert_eq!(
            (&round["rows_written"], &round["rows_twice"]),
            (&8.into(), &serde_json::json!([])),
            "{round}"
        );
        assert_eq!(
            (&round["stale_writes_refused"], &round["stale_rows_accepted"]),
            (&0.into(), &0.into()),
            "{round}"
        );
        let message = round["message"].as_str().unwrap();
        assert!(message.contains("shorter than the ttl of 10s") && message.contains("newest"), "{message}");
        let writers: Vec<_> = events
            .iter()
            .filter(|event| event["fence"] == fence && event["event"] == "written")
            .map(|event| event["process"].as_str().unwrap())
            .collect();
        assert_eq!(writers, ["A"; 8], "A finishes the batch itself");
    }
    nothing_is_left(&world);
}

#[test]
fn without_the_fence_only_the_accident_is_shown() {
    let world = world("demo-accident");
    let ran = world.ran(demo(&world, &[&["--no-fence"][..], &SHORT].concat()));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    let text = ran.text();
    for words in
        ["Without the fence", "stopped by SIGSTOP", "continued by SIGCONT", "row 3 written TWICE, 210.00"]
    {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    assert!(
        text.contains("  rows written twice    1\n") && text.contains("  money counted         1210.00\n"),
        "{text}"
    );
    assert!(!text.contains("With the fence") && !text.contains("REFUSED"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    nothing_is_left(&world);
}

#[test]
fn values_that_make_no_sense_are_refused_and_nothing_is_started() {
    let world = world("demo-values");
    for (words, sentence) in [
        (&["--ttl", "10ms"][..], "--ttl 10ms is out of range: the demo takes 500ms to 1m"),
        (&["--ttl", "2h"], "--ttl 2h is out of range: the demo takes 500ms to 1m"),
        (&["--pause", "0s"], "--pause 0s is out of range: the demo takes 100ms to 5m"),
        (&["--pause", "365d"], "--pause 365d is out of range: the demo takes 100ms to 5m"),
        (
            &["--pause", "5"],
            "invalid value '5' for '--pause <DURATION>': it has no unit: write it like 15s, 1m30s or 500ms",
        ),
        (&["backup"], "unexpected argument 'backup' found"),
    ] {
        let ran = world.ran(demo(&world, words));
        let expected = format!("tenure: {sentence}. See tenure demo --help\n");
        assert_eq!((ran.code, ran.text(), &ran.err), (64, "", &expected), "{words:?}");
    }
    let ran = world.ran(world.tenure(&["demo-worker", "A"]));
    assert_eq!(ran.code, 64, "{ran:?}");
    assert!(ran.err.contains("is a part of tenure demo"), "{ran:?}");
    nothing_is_left(&world);
}

#[test]
fn a_temporary_directory_that_cannot_be_used_is_an_error_with_the_next_step() {
    let world = world("demo-nowhere");
    let mut command = demo(&world, &SHORT);
    command.env("TMPDIR", world.path("missing"));
    let ran = world.ran(command);
    assert_eq!((ran.code, ran.text()), (69, ""), "{ran:?}");
    assert!(ran.err.contains("missing") && ran.err.contains("in TMPDIR"), "{ran:?}");
}

// ── an early end ────────────────────────────────────────────────────────────────────────────────────────────────────

/// Starts a demo, and waits until it has stopped process A. Returns both workers, A first.
fn started_and_stopped(world: &World) -> (Started, [Process; 2]) {
    let demo = world.start(demo(world, &["--json", "--ttl", "5s", "--pause", "60s"]));
    until("stop of A", PATIENCE, || demo.out_so_far().contains("\"event\":\"stopped\"").then_some(()));
    let first: Value = serde_json::from_str(demo.out_so_far().lines().next().unwrap()).unwrap();
    let a = first["pid"].as_i64().unwrap() as i32;
    let children = children_of(demo.process().number);
    assert_eq!(children.len(), 2, "{children:?}");
    let b = children.into_iter().find(|&number| number != a).unwrap();
    (demo, [a, b].map(|number| Process::of(number).unwrap()))
}

#[test]
fn a_signal_ends_both_workers_and_removes_the_directory() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let world = world("demo-signal");
        let (demo, workers) = started_and_stopped(&world);
        assert_eq!(workers[0].state(), Some('T'), "A is stopped");
        let directory = world.path("tmp").join(&names(&world)[0]);
        let mode = std::fs::metadata(directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "other users cannot read the ledger");
        demo.process().send(signal);
        let ran = demo.end();
        assert_eq!((ran.code, ran.err.as_str()), (code, ""), "{ran:?}");
        assert!(workers.iter().all(Process::is_dead), "at once, and not only soon");
        nothing_is_left(&world);
    }
}

#[test]
fn a_killed_demo_leaves_no_process() {
    let world = world("demo-killed");
    let (demo, workers) = started_and_stopped(&world);
    demo.process().send(Signal::KILL);
    assert_eq!(demo.end().code, 137);
    for worker in workers {
        worker.dies_within(PATIENCE);
    }
    world.is_empty_soon();
}

#[test]
fn a_killed_worker_ends_the_demo_with_an_error_that_names_it() {
    let world = world("demo-worker");
    let (demo, [a, b]) = started_and_stopped(&world);
    assert!(a.send(Signal::KILL));
    let ran = demo.end();
    assert_eq!(ran.code, 69, "{ran:?}");
    let named = format!("process A of the demo ({}) failed", a.number);
    assert!(ran.err.contains(&named) && ran.err.contains("signal: 9"), "{ran:?}");
    assert!(b.is_dead());
    nothing_is_left(&world);
}

#[test]
fn a_holder_that_loses_its_lease_too_early_is_reported_as_a_failed_demo() {
    let world = world("demo-early");
    let demo = world.start(demo(&world, &["--json", "--no-fence", "--ttl", "500ms"]));
    let granted =
        |line: &str| serde_json::from_str(line).ok().filter(|told: &Value| told["event"] == "granted");
    let first = || demo.out_so_far().lines().find_map(granted);
    let a = until("grant of A", PATIENCE, first)["pid"].as_i64().unwrap();
    let a = Process::of(a as i32).unwrap();
    // As on a machine that is too busy: A cannot renew.
    assert!(a.send(Signal::STOP));
    sleep_ms(1_000);
    assert!(a.send(Signal::CONT));
    let ran = demo.end();
    assert_eq!(ran.code, 1, "{ran:?}");
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(
        error["error"]["message"],
        "process A lost its lease too early: the machine is too busy for a ttl of 500ms. Use a longer --ttl"
    );
    let summary: Value = serde_json::from_str(ran.text().lines().last().unwrap()).unwrap();
    assert_eq!((&summary["event"], &summary["shown"]), (&"summary".into(), &false.into()), "{summary}");
    nothing_is_left(&world);
}

#[test]
fn a_reader_that_closes_the_pipe_ends_the_demo() {
    let world = world("demo-pipe");
    let mut command = demo(&world, &["--ttl", "5s", "--pause", "60s"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut some = [0; 100];
    child.stdout.as_mut().unwrap().read_exact(&mut some).unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    nothing_is_left(&world);
}

#[test]
fn output_that_cannot_be_written_ends_the_demo_with_an_error() {
    let world = world("demo-full");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = demo(&world, &SHORT).stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(69));
    assert!(String::from_utf8(output.stderr).unwrap().contains("No space left on device"));
    nothing_is_left(&world);
}

// ── on a terminal ───────────────────────────────────────────────────────────────────────────────────────────────────

/// The user's side of a terminal with this many columns, with a program that leads its session.
fn on_terminal(world: &World, columns: u16, words: &[&str]) -> (File, Child) {
    let mut command = world.command("setsid");
    command.args(["--ctty", TENURE, "demo"]).args(words);
    command.env("TMPDIR", world.path("tmp")).env("TERM", "xterm").env_remove("NO_COLOR");
    start_on_terminal(columns, command)
}

fn start_on_terminal(columns: u16, mut command: Command) -> (File, Child) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let keyboard = openpt(flags).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let there: OwnedFd = ioctl_tiocgptpeer(&keyboard, flags).unwrap();
    tcsetwinsize(&there, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    command.stdin(there.try_clone().unwrap()).stdout(there.try_clone().unwrap()).stderr(there);
    let child = command.spawn().unwrap();
    (keyboard.into(), child)
}

/// Everything that a program prints on its terminal, until the program has exited.
fn screen(keyboard: &mut File) -> String {
    let (mut shown, mut bytes) = (Vec::new(), [0; 4096]);
    // Reading from a terminal that no process has open is an error.
    while let Ok(length @ 1..) = keyboard.read(&mut bytes) {
        shown.extend_from_slice(&bytes[..length]);
    }
    String::from_utf8(shown).unwrap()
}

#[test]
fn on_a_terminal_each_process_has_a_coloured_column_and_every_line_fits() {
    let world = world("demo-terminal");
    let mut started: Vec<_> = [40, 80, 120]
        .map(|columns| (columns, on_terminal(&world, columns, &[&["--no-fence"][..], &SHORT].concat())))
        .into();
    for (columns, (keyboard, child)) in &mut started {
        let shown = screen(keyboard);
        assert_eq!(exit_code(child.wait().unwrap()), 0, "{shown}");
        assert!(
            shown.contains("\x1b[31m") || shown.contains("\x1b[1m\x1b[31m"),
            "the accident is red: {shown:?}"
        );
        assert!(
            !shown.contains("\x1b[K") && !shown.contains("\x1b[A"),
            "the cursor only moves down: {shown:?}"
        );
        let plain = anstream::adapter::strip_str(&shown).to_string();
        for line in plain.lines() {
            assert!(line.chars().count() <= usize::from(*columns), "{columns}: {line:?}");
        }
        let granted: Vec<_> = plain.lines().filter(|line| line.contains("granted, token")).collect();
        let at: Vec<_> = granted.iter().map(|line| line.find("granted").unwrap()).collect();
        if *columns == 40 {
            assert_eq!(at, [12, 12], "one column on a narrow terminal: {plain}");
            assert!(granted[0].contains("  A  ") && granted[1].contains("  B  "), "{plain}");
        } else {
            assert!(at[0] == 9 && at[1] > 40, "one column for each: {plain}");
        }
    }
    nothing_is_left(&world);
}

#[test]
fn no_color_is_respected_on_a_terminal() {
    let world = world("demo-no-color");
    let mut command = demo(&world, &["--no-fence"]);
    command.args(SHORT).env("TERM", "xterm").env("NO_COLOR", "1");
    let (mut keyboard, mut child) = start_on_terminal(80, command);
    let shown = screen(&mut keyboard);
    assert_eq!(exit_code(child.wait().unwrap()), 0, "{shown}");
    assert!(!shown.contains('\x1b') && shown.contains("written TWICE"), "{shown:?}");
}

#[test]
fn a_key_on_the_terminal_ends_it_and_continuing_the_job_does_not_end_the_pause() {
    let world = world("demo-key");
    let (mut keyboard, mut child) = on_terminal(&world, 80, &["--ttl", "5s", "--pause", "60s"]);
    let mut shown = String::new();
    let mut bytes = [0; 4096];
    while !shown.contains("SIGSTOP") {
        let length = keyboard.read(&mut bytes).unwrap();
        shown.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    let workers: Vec<_> = children_of(child.id() as i32).into_iter().filter_map(Process::of).collect();
    let stopped = || workers.iter().filter(|worker| worker.state() == Some('T')).count();
    assert_eq!((workers.len(), stopped()), (2, 1), "{shown}");
    // What a shell does after Ctrl-Z and fg.
    kill_process_group(Pid::from_raw(child.id() as i32).unwrap(), Signal::CONT).unwrap();
    sleep_ms(100);
    assert_eq!(stopped(), 1, "the pause is not over");

    keyboard.write_all(b"\x03").unwrap();
    let shown = screen(&mut keyboard);
    assert_eq!(exit_code(child.wait().unwrap()), 130, "{shown}");
    assert!(workers.iter().all(Process::is_dead));
    nothing_is_left(&world);
}
