//! Supervisor and watchdog are killed at the same moment, as by `pkill`, a service manager or the kernel's OOM killer.
#![expect(clippy::disallowed_methods, reason = "the tests measure how long other processes take")]

mod run_support;

use std::fs;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use run_support::{
    OTHER_USER, PATIENCE, Process, SOON, Started, World, is_running, run_as_other_user, sleep_ms, until,
    world_of_other_user,
};
use rustix::process::Signal;
use tenure_testkit::command_line;

/// "At once", on a busy machine with two cores.
const AT_ONCE: Duration = Duration::from_millis(700);

/// Kills supervisor and watchdog at the same moment, so that neither can react.
fn kill_both(started: &Started) {
    let (watchdog, supervisor) = (started.watchdog(), started.process());
    watchdog.send(Signal::STOP);
    supervisor.send(Signal::STOP);
    watchdog.send(Signal::KILL);
    supervisor.send(Signal::KILL);
}

/// A process of the tree that survives the death of the child, and writes its pid.
const GRANDCHILD: &str =
    "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do date > beat; sleep 0.02; done' & wait";

#[test]
fn the_command_dies_with_supervisor_and_watchdog() {
    let world = World::new("both-killed");
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done";
    let started = world.start(world.run(&["x", "--", "sh", "-c", script]));
    let child = world.told_pid("pid");
    let waiter = world.start(world.run(&["x", "--", "touch", "begun"]));
    waiter.watchdog();
    kill_both(&started);
    child.dies_within(AT_ONCE);
    assert_eq!(waiter.end().code, 0);
    drop(started);
    world.is_empty_soon();
}

#[test]
fn supervisor_and_watchdog_have_different_names() {
    let world = World::new("names");
    let started = world.start(world.run(&["x", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"]));
    world.told("pid");
    let watchdog = started.watchdog();
    let words = command_line(watchdog.number).concat();
    assert_eq!(words, "lease-watchdog", "ps shows it");
    // Patterns of an operator who cleans up.
    for tool in [&["pgrep", "tenure"][..], &["pgrep", "-f", "tenure run x"], &["pidof", "tenure"]] {
        let found = world.command(tool[0]).args(&tool[1..]).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        let numbers: Vec<i32> =
            found.split_ascii_whitespace().map(|number| number.parse().unwrap()).collect();
        assert!(numbers.contains(&started.process().number), "{tool:?}: {found}");
        assert!(!numbers.contains(&watchdog.number), "{tool:?}: {found}");
    }
    drop(started);
    world.is_empty_soon();
}

#[test]
fn the_next_run_kills_the_remaining_processes_in_the_cgroup_of_the_command() {
    let world = World::new("leftover-cgroup");
    let started = world.start(world.run(&["x", "--", "sh", "-c", GRANDCHILD]));
    let grandchild = world.told_pid("pid");
    let cgroup = fs::read_to_string(format!("/proc/{}/cgroup", grandchild.number)).unwrap();
    if !cgroup.contains("/tenure-") {
        return run_support::skipped("no cgroup can be made here");
    }
    let other = world.start(world.run(&["y", "--", "sh", "-c", "echo $$ > other; exec sleep 100"]));
    let others = world.told_pid("other");
    kill_both(&started);
    sleep_ms(100);
    assert!(!grandchild.is_dead(), "the test is void");
    // A zombie is dead.
    let look = format!(
        "case $(cat /proc/{}/stat) in '' | *') Z '*) echo dead;; *) echo alive;; esac",
        grandchild.number
    );
    // Through another path to the same directory.
    std::os::unix::fs::symlink(world.path(""), world.path("link")).unwrap();
    let url = format!("file://{}/leases", world.path("link").display());
    let mut command = world.run(&["x", "--no-wait", "--", "sh", "-c", &look]);
    let next = world.ran({
        command.env("TENURE_STORE", url);
        command
    });
    assert_eq!((next.code, next.text()), (0, "dead\n"), "{next:?}");
    assert!(next.err.contains("tenure has killed it"), "{}", next.err);
    assert!(is_running(others.number), "the command of another lease is none of it");
    drop((started, other));
    world.is_empty_soon();
}

/// A world in which the guards of a run without a cgroup are dead, and the one process of its tree that lives.
fn orphan() -> Option<(World, Process)> {
    let world = world_of_other_user("orphan")?;
    let started = run_as_other_user(&world, &["--", "sh", "-c", GRANDCHILD]);
    let grandchild = world.told_pid("pid");
    kill_both(&started);
    drop(started);
    Some((world, grandchild))
}

#[test]
fn the_next_run_waits_for_a_remaining_process_and_names_it() {
    let Some((world, orphan)) = orphan() else { return };
    // Longer than the ttl of two seconds.
    let began = Instant::now();
    let waited = run_as_other_user(&world, &["--wait", "5s", "--", "touch", "begun"]).end();
    assert_eq!(waited.code, 75, "{waited:?}");
    assert!(waited.err.contains(&orphan.number.to_string()), "{}", waited.err);
    assert!(began.elapsed() >= Duration::from_secs(5));
    let at_once = run_as_other_user(&world, &["--no-wait", "--", "touch", "begun"]).end();
    assert_eq!(at_once.code, 75, "{at_once:?}");
    assert!(at_once.err.contains(&orphan.number.to_string()), "{}", at_once.err);
    assert!(!world.exists("begun") && !orphan.is_dead());
    let waiter = run_as_other_user(&world, &["--", "touch", "begun"]);
    sleep_ms(500);
    orphan.send(Signal::KILL);
    assert_eq!(waiter.end_within(SOON).code, 0);
    world.is_empty_soon();
}

#[test]
fn a_run_with_an_orphan_wait_starts_beside_an_orphan_after_it_with_a_warning() {
    let Some((world, orphan)) = orphan() else { return };
    let ran =
        run_as_other_user(&world, &["--orphan-wait", "1s", "--wait", "20s", "--", "touch", "begun"]).end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains(&orphan.number.to_string()), "{}", ran.err);
    assert!(world.exists("begun") && !orphan.is_dead());
    orphan.send(Signal::KILL);
    until("the orphan's end", PATIENCE, || orphan.is_dead().then_some(()));
}

#[test]
fn neither_acquire_nor_steal_gets_the_lease_beside_an_orphan() {
    let Some((world, orphan)) = orphan() else { return };
    let ran = |words: &[&str]| {
        let mut command = world.command(world.path("tenure"));
        command.args(words).uid(OTHER_USER).gid(OTHER_USER);
        world.ran(command)
    };
    // Longer than the ttl of two seconds.
    let stolen = ran(&["steal", "x", "--reason", "test", "--wait", "4s"]);
    let acquired = ran(&["acquire", "x", "--no-wait"]);
    for refused in [&stolen, &acquired] {
        assert_eq!(refused.code, 75, "{refused:?}");
        assert!(refused.err.contains(&orphan.number.to_string()), "{}", refused.err);
    }
    let anyway = ran(&["acquire", "x", "--orphan-wait", "1s"]);
    assert_eq!(anyway.code, 0, "{anyway:?}");
    assert!(anyway.err.contains(&orphan.number.to_string()), "{}", anyway.err);
    orphan.send(Signal::KILL);
}

// ── both are stopped ────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn a_supervisor_that_wakes_up_after_the_deadline_reports_how_long_its_command_overran() {
    let world = World::new("overrun");
    let started =
        world.start(world.run(&["x", "--ttl", "1s", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"]));
    let child = world.told_pid("pid");
    let (watchdog, supervisor) = (started.watchdog(), started.process());
    assert!(watchdog.send(Signal::STOP) && supervisor.send(Signal::STOP));
    sleep_ms(2500);
    assert!(!child.is_dead(), "the test is void");
    assert!(watchdog.send(Signal::CONT) && supervisor.send(Signal::CONT));
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(ran.err.contains("was overrun") && ran.err.contains("after the deadline"), "{}", ran.err);
    assert!(!ran.err.contains("the command was stopped, and"), "{}", ran.err);
    world.is_empty_soon();
}

#[test]
fn a_command_that_ended_by_itself_while_no_guard_ran_is_not_reported_as_stopped_in_time() {
    let world = World::new("unseen");
    let script = "echo $$ > pid; while [ ! -e end ]; do sleep 0.05; done";
    let started = world.start(world.run(&["x", "--ttl", "1s", "--", "sh", "-c", script]));
    let child = world.told_pid("pid");
    let (watchdog, supervisor) = (started.watchdog(), started.process());
    assert!(watchdog.send(Signal::STOP) && supervisor.send(Signal::STOP));
    sleep_ms(2500);
    assert!(!child.is_dead(), "the test is void");
    fs::write(world.path("end"), "").unwrap();
    until("the command ends", Duration::from_secs(60), || {
        (child.is_dead() || child.state() == Some('Z')).then_some(())
    });
    assert!(supervisor.send(Signal::CONT) && watchdog.send(Signal::CONT));
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    let unseen =
        ["the command ended by itself, and lease x", "so the command may have acted after the deadline"];
    // A watchdog that continues first reports that the deadline had passed.
    let is_told = unseen.iter().all(|part| ran.err.contains(part)) || ran.err.contains("was overrun");
    assert!(is_told, "{}", ran.err);
    assert!(!ran.err.contains("the command was stopped, and"), "{}", ran.err);
    world.is_empty_soon();
}
