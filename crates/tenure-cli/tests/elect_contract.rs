//! `tenure elect`: one command per term, and the next campaign.

mod run_support;

use std::time::Duration;

use run_support::{PATIENCE, Started, World, said, sleep_ms, until, watchdog_of};
use rustix::process::Signal;
use serde_json::Value;
use tenure::record::{Record, State};

/// `tenure elect` with a short ttl.
fn elect(world: &World, words: &[&str]) -> Started {
    world.start(world.tenure(&[&["elect", "job", "--ttl", "2s", "--kill-grace", "300ms"], words].concat()))
}

/// A command that logs its token and its own number, and works until TERM.
const WORK: &str = "echo $TENURE_TOKEN $$ >> log; trap 'exit 7' TERM; while :; do sleep 0.02; done";

/// Waits until the log has this many lines.
fn lines(world: &World, count: usize) -> Vec<String> {
    until(&format!("{count} lines in the log"), PATIENCE, || {
        let lines = world.lines("log");
        (lines.len() >= count).then_some(lines)
    })
}

fn events(started: &Started, name: &str) -> Vec<Value> {
    let said = started.err_so_far();
    let objects = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    objects.filter(|object| object["event"] == name).collect()
}

// ── terms ───────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_command_runs_once_per_term_with_a_greater_token_and_everything_else_as_in_the_first() {
    let world = World::new("elect-terms");
    // The number and name of the supervisor; of the command the signal masks without real-time signals, the priority, and
    // the number of variables that it should not have.
    let script = "s=$(($(ps -o ppid= -p $PPID))); \
        echo $TENURE_TOKEN $TENURE_NAME $TENURE_HOLDER $s $(cat /proc/$s/comm) \
        $(sed -n 's/Sig\\(Blk\\|Ign\\).*\\(.......\\)$/\\1 \\2/p' /proc/$$/status) $(ps -o ni= -p $$) $(env | grep -c ELECT_STATE) >> log";
    let words = ["elect", "job", "--ttl", "1s", "--kill-grace", "100ms", "--holder", "ann", "--quiet", "--"];
    let led = world.start(world.tenure(&[&words[..], &["sh", "-c", script]].concat()));
    let number = led.process().number;
    let log = lines(&world, 3);
    led.process().send(Signal::TERM);
    // The command of the last term has just ended, or ends now.
    assert!([0, 143].contains(&led.end().code));
    let parts: Vec<(u64, &str)> = log
        .iter()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(token, rest)| (token.parse().unwrap(), rest))
        .collect();
    assert!(parts.is_sorted_by(|a, b| a.0 < b.0), "{log:?}");
    assert!(parts.iter().all(|part| part.1 == parts[0].1), "{log:#?}");
    let begin = format!("job ann {number} tenure Blk 0000000 Ign 0000000 ");
    assert!(parts[0].1.starts_with(&begin) && parts[0].1.ends_with(" 0"), "{log:#?}");
    world.is_empty_soon();
}

#[test]
fn a_caller_that_ignores_the_end_of_children_passes_that_on_in_every_term() {
    let world = World::new("elect-ignored");
    // A shell would change it.
    let show = "grep SigIgn /proc/self/status";
    let led = world.start(world.sh(&format!(
        "exec env --ignore-signal=CHLD \"$TENURE\" elect job --ttl 1s --kill-grace 100ms --quiet -- {show}"
    )));
    let shown = until("two terms", PATIENCE, || Some(led.out_so_far()).filter(|out| out.lines().count() > 1));
    assert!(shown.lines().all(|line| line.ends_with("010000")), "{shown}");
}

#[test]
fn two_candidates_take_turns_and_never_overlap() {
    let world = World::new("elect-turns");
    let script = "echo start $TENURE_HOLDER >> log; sleep 0.3; echo end $TENURE_HOLDER >> log";
    let both = ["a", "b"].map(|name| elect(&world, &["--holder", name, "--quiet", "--", "sh", "-c", script]));
    let log = lines(&world, 12);
    drop(both);
    let turns: Vec<_> = log.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    for (start, end) in &turns {
        assert_eq!(start.strip_prefix("start "), end.strip_prefix("end "), "{log:?}");
    }
    // A candidate that has just released lets the other one try first.
    assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{log:?}");
}

#[test]
fn a_command_that_ends_at_once_again_and_again_is_started_ever_more_slowly() {
    let world = World::new("elect-spin");
    let led = elect(&world, &["--json", "--", "sh", "-c", "echo x >> log; exit 3"]);
    lines(&world, 3);
    let pauses: Vec<u64> = until("three pauses", PATIENCE, || {
        let pauses = events(&led, "campaigning");
        (pauses.len() >= 3).then(|| pauses.iter().map(|event| event["pause_ms"].as_u64().unwrap()).collect())
    });
    for (number, pause) in pauses.iter().take(3).enumerate() {
        // A poll period, 3/8 of the ttl, and up to a tenth of it.
        let least = 750 << number;
        assert!((least..least + least / 8).contains(pause), "{pauses:?}");
    }
    let event = &events(&led, "campaigning")[0];
    assert_eq!((&event["after"], &event["name"]), (&"ended".into(), &"job".into()));
    assert!(event["message"].as_str().unwrap().starts_with("the command ended with 3"), "{event}");
    // A signal during the pause ends it.
    led.process().send(Signal::INT);
    assert_eq!(led.end().code, 130);
    assert_eq!(world.lines("log").len(), 3);
}

#[test]
fn once_means_one_term_and_its_exit_code() {
    let world = World::new("elect-once");
    for code in [0, 3, 127] {
        let script = format!("exit {code}");
        let ran = elect(&world, &["--once", "--", "sh", "-c", &script]).end();
        assert_eq!((ran.code, ran.troubles().as_str()), (code, ""));
    }
    let led = elect(&world, &["--once", "--", "sh", "-c", WORK]);
    lines(&world, 1);
    said(&world.ran(world.tenure(&["resign", "job", "--reason", "drain", "--holder", "ops"])), 0, &[]);
    said(&led.end(), 76, &["ops takes it over: drain"]);
}

// ── signals ─────────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_signal_to_end_is_passed_on_and_the_lease_is_released_at_once() {
    let world = World::new("elect-term");
    for (signal, trap, code) in
        [(Signal::TERM, "exit 7", 7), (Signal::INT, "exit 8", 8), (Signal::QUIT, "", 131)]
    {
        let script = match trap {
            "" => "echo x >> log; ulimit -c 0; exec sleep 100".to_owned(),
            trap => format!("trap '{trap}' TERM INT; echo x >> log; while :; do sleep 0.02; done"),
        };
        let count = world.lines("log").len();
        let led = world.start(world.tenure(&["elect", "job", "--ttl", "60s", "--", "sh", "-c", &script]));
        lines(&world, count + 1);
        led.process().send(signal);
        let ran = led.end();
        assert_eq!((ran.code, ran.troubles().as_str()), (code, ""), "{signal:?}");
        assert!(!world.is_held("job"), "it was released");
        assert_eq!(world.lines("log").len(), count + 1, "and not started again");
    }
    world.is_empty_soon();
}

#[test]
fn a_candidate_that_stands_by_ends_on_a_signal_and_has_started_nothing() {
    let world = World::new("elect-standby");
    let led = elect(&world, &["--", "sh", "-c", WORK]);
    lines(&world, 1);
    let mut other = elect(&world, &["--", "touch", "started"]);
    sleep_ms(500);
    for ignored in [Signal::HUP, Signal::USR1, Signal::USR2, Signal::WINCH] {
        other.process().send(ignored);
    }
    sleep_ms(300);
    assert!(!other.has_ended(), "signals for a command have no effect: {}", other.err_so_far());
    other.process().send(Signal::TERM);
    assert_eq!(other.end().code, 143);
    assert!(!world.exists("started"));
    drop(led);
}

#[test]
fn a_hangup_is_for_the_command_and_the_next_term_follows() {
    let world = World::new("elect-hup");
    let led = elect(
        &world,
        &["--", "sh", "-c", "trap 'echo reload >> log' HUP; echo x >> log; while :; do sleep 0.02; done"],
    );
    lines(&world, 1);
    led.process().send(Signal::HUP);
    assert_eq!(lines(&world, 2), ["x", "reload"]);
    let child = until("the command", PATIENCE, || {
        let dog = watchdog_of(led.process().number)?;
        run_support::children_of(dog.number).first().copied().and_then(run_support::Process::of)
    });
    child.send(Signal::KILL);
    assert_eq!(lines(&world, 3)[2], "x", "the earlier signal did not ask to end");
    led.process().send(Signal::TERM);
    assert_eq!(led.end().code, 143);
}

#[test]
fn a_candidate_whose_watchdog_is_killed_campaigns_again_with_another_one() {
    let world = World::new("elect-unwatched");
    let led = elect(&world, &["--holder", "a", "--", "sh", "-c", WORK]);
    lines(&world, 1);
    let other = elect(&world, &["--holder", "b", "--", "sh", "-c", WORK]);
    let first = other.watchdog();
    sleep_ms(300);
    first.send(Signal::KILL);
    let again = "its watchdog could not be started, or was killed. Try again. Campaigning for job again in ";
    until("a message", PATIENCE, || other.err_so_far().contains(again).then_some(()));
    led.process().send(Signal::KILL);
    lines(&world, 2);
    assert_ne!(other.watchdog().number, first.number);
    other.process().send(Signal::TERM);
    assert_eq!(other.end().code, 7);
    world.is_empty_soon();
}

#[test]
fn a_signal_for_the_command_between_two_terms_does_not_end_the_candidate() {
    let world = World::new("elect-between");
    let words = ["elect", "job", "--ttl", "1s", "--kill-grace", "100ms", "--quiet", "--", "sh", "-c"];
    let start = |script| world.start(world.tenure(&[&words[..], &[script]].concat()));
    // A term of at least one ttl, so that the pause stays short.
    let mut first = start("echo a >> log; sleep 1.1");
    lines(&world, 1);
    // From its term on, no command of the first candidate runs that the signals could kill.
    let second = start("echo b >> log; exec sleep 100");
    lines(&world, 2);
    let environment = format!("/proc/{}/environ", first.process().number);
    let is_again = || std::fs::read_to_string(&environment).is_ok_and(|text| text.contains("ELECT_STATE"));
    let mut after = 0;
    while after < 300 {
        after += u32::from(after > 0 || is_again());
        assert!(!first.has_ended(), "{}", first.err_so_far());
        for signal in [Signal::HUP, Signal::USR1] {
            first.process().send(signal);
        }
        sleep_ms(1);
    }
    first.process().send(Signal::TERM);
    assert_eq!(first.end().code, 143);
    drop(second);
}

// ── the end of a term ───────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_leader_that_resigns_lets_the_other_candidate_lead_and_leads_again_if_there_is_none() {
    let world = World::new("elect-resign");
    let script = "echo $TENURE_HOLDER >> log; trap 'exit 0' TERM; while :; do sleep 0.02; done";
    let first = elect(&world, &["--holder", "a", "--", "sh", "-c", script]);
    lines(&world, 1);
    let resign =
        || said(&world.ran(world.tenure(&["resign", "job", "--reason", "drain", "--holder", "ops"])), 0, &[]);
    resign();
    assert_eq!(lines(&world, 2), ["a", "a"]);
    let said_so = first.err_so_far();
    assert!(said_so.contains("ops takes it over: drain. Campaigning for job again in "), "{said_so}");
    assert!(!said_so.contains("Run it again"), "{said_so}");
    let second = elect(&world, &["--holder", "b", "--", "sh", "-c", script]);
    sleep_ms(500);
    resign();
    assert_eq!(lines(&world, 3), ["a", "a", "b"]);
    resign();
    assert_eq!(lines(&world, 4), ["a", "a", "b", "a"]);
    drop((first, second));
}

#[test]
fn a_leader_that_was_stopped_too_long_has_lost_and_campaigns_again() {
    let world = World::new("elect-stop");
    let script = "echo $TENURE_HOLDER >> log; exec sleep 100";
    let first = elect(&world, &["--holder", "a", "--", "sh", "-c", script]);
    lines(&world, 1);
    let second = elect(&world, &["--holder", "b", "--", "sh", "-c", script]);
    sleep_ms(300);
    first.process().send(Signal::STOP);
    assert_eq!(lines(&world, 2), ["a", "b"]);
    first.process().send(Signal::CONT);
    until("a message", PATIENCE, || first.err_so_far().contains("Campaigning for job again").then_some(()));
    second.process().send(Signal::KILL);
    assert_eq!(lines(&world, 3), ["a", "b", "a"], "{}", first.err_so_far());
    // Its watchdog dies, and its command with it.
    first.watchdog().send(Signal::KILL);
    assert_eq!(lines(&world, 4)[3], "a");
    first.process().send(Signal::TERM);
    assert_eq!(first.end().code, 143);
    drop(second);
    world.is_empty_soon();
}

#[test]
fn a_leader_that_is_stolen_from_campaigns_again_and_leads_after_the_thief() {
    let world = World::new("elect-steal");
    let led = elect(&world, &["--holder", "a", "--", "sh", "-c", WORK]);
    lines(&world, 1);
    let mut thief =
        world.tenure(&["steal", "job", "--reason", "my turn", "--holder", "boss", "--", "sh", "-c"]);
    thief.arg("echo thief >> log; sleep 0.5; echo done >> log");
    said(&world.ran(thief), 0, &[]);
    let log = lines(&world, 4);
    assert_eq!((&*log[1], &*log[2]), ("thief", "done"));
    led.process().send(Signal::TERM);
    assert_eq!(led.end().code, 7);
}

#[test]
fn a_command_that_cannot_be_started_ends_the_campaigns() {
    let world = World::new("elect-missing");
    std::fs::write(world.path("plain"), "no program").unwrap();
    for (program, code) in [("./missing", 127), ("./plain", 126)] {
        let ran = elect(&world, &["--", program]).end();
        said(&ran, code, &[program, "could not be started under lease job"]);
        assert_eq!(ran.troubles().lines().count(), 1, "{ran:?}");
    }
    // A shell that reports the same of its own command has been started.
    let led = elect(&world, &["--", "sh", "-c", "echo x >> log; exit 127"]);
    lines(&world, 2);
    drop(led);
}

// ── announcement ────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_leader_announces_itself_with_its_grant_and_a_candidate_does_not() {
    let world = World::new("elect-announce");
    let words = ["--address", "10.0.0.7:8080", "--label", "zone=b", "--label", "x=a=b", "--value", "shard 7"];
    let led = elect(&world, &[&words[..], &["--", "sh", "-c", WORK]].concat());
    lines(&world, 1);
    let other = ["--address", "10.0.0.8:8080", "--value", "other", "--", "true"];
    let other = elect(&world, &other);
    sleep_ms(300);
    let ran = world.ran(world.tenure(&["leader", "job", "--json"]));
    let seen: Value = serde_json::from_str(ran.text()).unwrap();
    assert_eq!((&seen["address"], &seen["value"]), (&"10.0.0.7:8080".into(), &"shard 7".into()));
    assert_eq!((&seen["labels"]["zone"], &seen["labels"]["x"]), (&"b".into(), &"a=b".into()));
    let holder = seen["holder"].as_str().unwrap();
    assert!(holder.ends_with(&format!(":{}", led.process().number)), "{holder}");
    let ran = world.ran(world.tenure(&["leader", "job"]));
    assert!(ran.text().contains(" at 10.0.0.7:8080, token "), "{ran:?}");
    drop((led, other));
}

// ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn bad_input_gives_one_sentence_and_starts_nothing() {
    let world = World::new("elect-usage");
    let long = "x".repeat(300);
    let huge = format!("--value={}", "x".repeat(Record::VALUE_MAX + 1));
    let many: Vec<String> = (0..17).map(|number| format!("--label=l{number}=x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["elect", "job"], 64, "<CMD>"),
        (&["elect", "job", "--"], 64, "<CMD>"),
        (&["elect", "--", "touch", "x"], 64, "<NAME>"),
        (&["elect", "job", "touch", "x"], 64, "comes after --, as in tenure elect NAME -- touch"),
        (&["elect", "", "--", "touch", "x"], 64, "must not be empty"),
        (&["elect", "../x", "--", "touch", "x"], 64, "key"),
        (&["elect", ".tenure/x", "--", "touch", "x"], 64, ".tenure"),
        (&["elect", "a\nb", "--", "touch", "x"], 64, "key"),
        (&["elect", "job", "--wait", "1s", "--", "touch", "x"], 64, "--wait"),
        (&["elect", "job", "--ttl", "fast", "--", "touch", "x"], 64, "write it like"),
        (&["elect", "job", "--ttl", "0s", "--", "touch", "x"], 78, "ttl"),
        (&["elect", "job", "--ttl", "100ms", "--", "touch", "x"], 78, "ttl"),
        (&["elect", "job", "--ttl", "48h", "--", "touch", "x"], 78, "ttl"),
        (&["elect", "job", "--kill-grace", "14s", "--", "touch", "x"], 78, "grace"),
        (&["elect", "job", "--label", "zone", "--", "touch", "x"], 64, "NAME=TEXT"),
        (&["elect", "job", "--label", "=b", "--", "touch", "x"], 64, "label"),
        (&["elect", "job", "--label", "zone=", "--", "touch", "x"], 64, "label"),
        (&["elect", "job", "--address", "", "--", "touch", "x"], 64, "address"),
        (&["elect", "job", "--address", "a\nb", "--", "touch", "x"], 64, "address"),
        (&["elect", "job", "--address", &long, "--", "touch", "x"], 64, "address"),
        (&["elect", "job", &huge, "--", "touch", "x"], 64, "--value has at most"),
        (&[&["elect", "job"], &many[..], &["--", "touch", "x"]].concat(), 64, "at most 16 labels"),
        (&["--store", "file:///proc/leases", "elect", "job", "--", "touch", "x"], 77, "/proc"),
        (&["--store", "memory:", "elect", "job", "--", "touch", "x"], 64, "memory:"),
    ];
    for (words, code, part) in cases {
        let ran = world.start(world.tenure(words)).end_within(PATIENCE);
        said(&ran, *code, &[part]);
        assert_eq!((ran.err.lines().count(), ran.text()), (1, ""), "{words:?}: {ran:?}");
    }
    assert!(!world.exists("x"));
    world.is_empty_soon();
}

#[test]
fn a_state_that_another_process_left_in_the_environment_does_not_count() {
    let world = World::new("elect-state");
    let mut command = world.tenure(&["elect", "job", "--ttl", "2s", "--json", "--", "sh", "-c"]);
    command.arg("env | grep ELECT_STATE >> log; echo x >> log").env("TENURE_ELECT_STATE", "1 9");
    let led = world.start(command);
    assert_eq!(lines(&world, 1), ["x"]);
    let pause = until("a pause", PATIENCE, || events(&led, "campaigning").first()?["pause_ms"].as_u64());
    assert!(pause < 1_000, "{pause}");
    drop(led);
}

#[test]
fn a_leader_whose_supervisor_is_killed_leaves_no_process_and_the_next_one_leads() {
    let world = World::new("elect-kill");
    let candidate = |name: &str| {
        world.start(world.tenure(&["elect", "job", "--ttl", "60s", "--holder", name, "--", "sh", "-c", WORK]))
    };
    let led = candidate("a");
    lines(&world, 1);
    let other = candidate("b");
    sleep_ms(300);
    led.process().send(Signal::KILL);
    lines(&world, 2);
    let record = world.record("job").unwrap();
    assert!(record.state == State::Held && &**record.holder.unwrap().id() == "b");
    other.process().send(Signal::TERM);
    assert_eq!(other.end_within(Duration::from_secs(10)).code, 7);
    world.is_empty_soon();
}

#[test]
fn a_leader_whose_guards_are_both_killed_leaves_no_process_and_the_next_leader_waits_for_its_command() {
    let world = World::new("elect-kill-both");
    // The command and a process that it leaves behind hold a lock. The next command must find it free.
    let script = "exec 9>>probe; flock -n 9 || echo overlap >> log; echo $TENURE_HOLDER >> log; \
        (trap '' TERM; exec setsid sleep 60) & while :; do sleep 0.02; done";
    let candidate = |name: &str| {
        world
            .start(world.tenure(&["elect", "job", "--ttl", "2s", "--holder", name, "--", "sh", "-c", script]))
    };
    let mut led = candidate("0");
    lines(&world, 1);
    for next in ["1", "2"] {
        let other = candidate(next);
        sleep_ms(300);
        let guards = [watchdog_of(led.process().number).unwrap(), led.process()];
        for signal in [Signal::STOP, Signal::KILL] {
            assert!(guards.iter().all(|guard| guard.send(signal)));
        }
        let count = next.parse::<usize>().unwrap() + 1;
        assert_eq!(lines(&world, count), ["0", "1", "2"][..count]);
        drop(std::mem::replace(&mut led, other));
    }
    led.process().send(Signal::TERM);
    led.end_within(Duration::from_secs(10));
    world.is_empty_soon();
}
