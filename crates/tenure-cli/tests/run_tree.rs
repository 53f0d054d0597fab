//! The complete process tree is dead before the lease runs out, even if a guard is killed or stopped.
#![expect(clippy::disallowed_methods, reason = "the tests measure how long other processes take")]

mod run_support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use run_support::{
    PATIENCE, Process, SOON, Started, TENURE, World, block_on, key, sleep_ms, until, watchdog_of,
};
use rustix::fs::FlockOperation;
use rustix::process::Signal;
use tenure::Holder;
use tenure::record::{Nonce, decode, encode};
use tenure_store::{Expect, Put, Store};

/// "At once", on a busy machine with two cores.
const AT_ONCE: Duration = Duration::from_millis(700);

/// A child of two processes that ignores TERM, but logs it.
const STUBBORN: &str = "trap 'echo term >> termed' TERM; sh -c 'trap \"\" TERM; echo $$ > inner; exec sleep 100' & \
                        echo $$ > pid; while :; do sleep 0.02; done";

/// Starts a shell script under a lease, and returns its process once it has written its pid to `pid`.
fn start(world: &World, words: &[&str], script: &str) -> (Started, Process) {
    start_as(world, "pid", words, script)
}

fn start_as(world: &World, pid: &str, words: &[&str], script: &str) -> (Started, Process) {
    let started = world.start(world.run(&[words, &["--", "sh", "-c", script]].concat()));
    let child = world.told_pid(pid);
    (started, child)
}

// ── the end of CMD ──────────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn when_the_command_exits_all_processes_that_it_started_are_stopped() {
    let world = World::new("leftovers");
    let script = "sleep 100 & setsid sleep 100 & nohup sleep 100 > /dev/null 2>&1 & (sleep 100 &); \
                  (setsid sh -c '(setsid sleep 100 &); sleep 100' &) ; sh -c 'sleep 100 & exec sleep 100' & \
                  sleep 0.2; exit 3";
    let ran = world.ran(world.run(&["x", "--", "sh", "-c", script]));
    assert_eq!((ran.code, ran.troubles().as_str()), (3, ""));
    assert!(ran.took < SOON, "{:?}", ran.took);
    assert_eq!(world.alive().len(), 0, "{:?}", world.alive());
    assert!(!world.is_held("x"), "it was released");
}

#[test]
fn processes_that_the_command_leaves_behind_get_term_and_after_the_grace_kill() {
    let world = World::new("leftover-grace");
    let left = "trap \"echo \\$(date +%s%N) > asked\" TERM; echo > ready; while :; do sleep 0.02; done";
    let script =
        format!("setsid sh -c '{left}' & while ! [ -e ready ]; do sleep 0.01; done; date +%s%N > ended");
    let ran = world.ran(world.run(&["x", "--kill-grace", "600ms", "--", "sh", "-c", &script]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.troubles().contains("tenure"), "{}", ran.err);
    assert_eq!(world.alive().len(), 0, "{:?}", world.alive());
    let nanos = |name| world.told(name).parse::<u64>().unwrap();
    let asked = Duration::from_nanos(nanos("asked") - nanos("ended"));
    assert!(asked < AT_ONCE, "{asked:?}");
    assert!(ran.took >= Duration::from_millis(600) && ran.took < SOON, "{:?}", ran.took);
}

#[test]
fn the_lease_stays_held_until_the_last_process_has_exited() {
    let world = World::new("held-until-gone");
    let script = "sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 0.02; done' & while ! [ -s pid ]; do \
                  sleep 0.01; done; exit 0";
    let started = world.start(world.run(&["x", "--kill-grace", "1s", "--", "sh", "-c", script]));
    let left = world.told_pid("pid");
    sleep_ms(300);
    assert!(world.is_held("x") && !left.is_dead());
    let look = format!("[ -d /proc/{} ] && echo alive || echo dead", left.number);
    let next = world.ran(world.run(&["x", "--", "sh", "-c", &look]));
    assert_eq!((next.code, next.text()), (0, "dead\n"));
    assert_eq!(started.end().code, 0);
    world.is_empty_soon();
}

// ── the supervisor is killed ────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn when_the_supervisor_is_killed_the_tree_is_dead_at_once() {
    let world = World::new("supervisor-killed");
    let script = format!("setsid sh -c 'trap \"\" TERM; echo $$ > apart; exec sleep 100' & {STUBBORN}");
    let (started, child) = start(&world, &["x"], &script);
    let (inner, apart) = (world.told_pid("inner"), world.told_pid("apart"));
    let watchdog = started.watchdog();
    started.process().send(Signal::KILL);
    for process in [child, inner, apart, watchdog] {
        process.dies_within(AT_ONCE);
    }
    assert_eq!(started.end().code, 137);
    world.is_empty_soon();
    assert!(!world.exists("termed"), "no guard renews any more, so TERM is skipped");
}

#[test]
fn the_next_command_starts_only_after_the_tree_of_a_killed_supervisor_is_dead() {
    let world = World::new("killed-next");
    let (started, child) = start(&world, &["x", "--ttl", "2s"], STUBBORN);
    let script = format!("[ -d /proc/{} ] && echo alive || echo dead", child.number);
    let waiter = world.start(world.run(&["x", "--ttl", "2s", "--wait", "20s", "--", "sh", "-c", &script]));
    waiter.watchdog();
    let killed = Instant::now();
    started.process().send(Signal::KILL);
    child.dies_within(AT_ONCE);
    let ran = waiter.end();
    assert_eq!((ran.code, ran.text()), (0, "dead\n"));
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
    drop(started);
    world.is_empty_soon();
}

// ── the watchdog is killed ──────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn when_the_watchdog_is_killed_the_command_dies_and_its_other_processes_are_stopped_in_order() {
    let world = World::new("watchdog-killed");
    let below = "trap \"echo term > termed; exit 0\" TERM; echo > ready; while :; do sleep 0.02; done";
    let script =
        format!("setsid sh -c '{below}' & trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done");
    let (started, child) = start(&world, &["x"], &script);
    world.told("ready");
    started.watchdog().send(Signal::KILL);
    child.dies_within(AT_ONCE);
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(ran.err.contains("watchdog"), "{}", ran.err);
    assert_eq!(world.told("termed"), "term");
    assert!(!world.is_held("x"), "it was released");
    world.is_empty_soon();
}

#[test]
fn a_watchdog_that_is_killed_before_it_starts_the_command_gives_a_failure() {
    let world = World::new("killed-before");
    let (holder, child) = start(&world, &["x"], "echo $$ > pid; exec sleep 100");
    let waiter = world.start(world.run(&["x", "--", "touch", "ran"]));
    let watchdog = waiter.watchdog();
    sleep_ms(200);
    assert!(watchdog.send(Signal::STOP) && child.send(Signal::TERM));
    holder.end();
    until("a grant", SOON, || world.is_held("x").then_some(()));
    sleep_ms(50);
    // All have exited by the time the supervisor learns of it.
    assert!(waiter.process().send(Signal::STOP) && watchdog.send(Signal::KILL));
    sleep_ms(100);
    assert!(waiter.process().send(Signal::CONT));
    let ran = waiter.end();
    assert!(!world.exists("ran"), "the test is void");
    assert_eq!(ran.code, 76, "{ran:?}");
    world.is_empty_soon();
}

#[test]
fn when_the_watchdog_is_killed_processes_that_ignore_term_are_killed_after_the_grace() {
    let world = World::new("watchdog-killed-stubborn");
    let (started, _child) = start(&world, &["x", "--kill-grace", "500ms"], STUBBORN);
    let inner = world.told_pid("inner");
    started.watchdog().send(Signal::KILL);
    let took = inner.dies_within(SOON);
    assert!(took >= Duration::from_millis(450), "{took:?}");
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(!world.is_held("x"), "it was released");
    world.is_empty_soon();
}

// ── the supervisor is stopped ───────────────────────────────────────────────────────────────────────────────────────

#[test]
fn when_the_supervisor_is_stopped_the_child_is_dead_before_the_deadline_and_the_next_start() {
    let world = World::new("supervisor-stopped");
    let ttl = Duration::from_secs(2);
    let (mut started, child) = start(&world, &["x", "--ttl", "2s"], STUBBORN);
    let inner = world.told("inner");
    // The next command does the check itself, because a check from outside may be late.
    let script = format!("ls -d /proc/{} /proc/{inner} 2>/dev/null; sleep 0.3", child.number);
    let waiter = world.start(world.run(&["x", "--ttl", "2s", "--", "sh", "-c", &script]));
    waiter.watchdog();
    let stopped = Instant::now();
    started.process().send(Signal::STOP);
    child.dies_within(PATIENCE);
    let lived = stopped.elapsed();
    assert!(lived < ttl, "the lease was over before it died: {lived:?}");
    assert_eq!(world.lines("termed"), ["term"], "it was asked first, once");
    let ran = waiter.end();
    assert_eq!((ran.code, ran.text()), (0, ""), "the next one found the first dead");
    assert!(!started.has_ended(), "it is left to say so");
    started.process().send(Signal::CONT);
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(ran.err.contains("stopped"), "{}", ran.err);
    world.is_empty_soon();
}

#[test]
fn a_supervisor_that_is_stopped_for_a_moment_continues() {
    let world = World::new("stopped-shortly");
    let (started, _) = start(&world, &["x", "--ttl", "3s"], "echo $$ > pid; sleep 2; exit 4");
    let supervisor = started.process();
    for _ in 0..3 {
        supervisor.send(Signal::STOP);
        sleep_ms(250);
        supervisor.send(Signal::CONT);
        sleep_ms(250);
    }
    let ran = started.end();
    assert_eq!((ran.code, ran.troubles().as_str()), (4, ""));
    world.is_empty_soon();
}

#[test]
fn a_command_that_exits_while_its_supervisor_is_briefly_stopped_gives_its_code() {
    let world = World::new("ends-while-stopped");
    let (started, child) = start(&world, &["x", "--ttl", "4s"], "echo $$ > pid; sleep 0.5; exit 9");
    started.process().send(Signal::STOP);
    child.dies_within(PATIENCE);
    sleep_ms(100);
    assert!(world.is_held("x"));
    started.process().send(Signal::CONT);
    let ran = started.end();
    assert_eq!((ran.code, ran.troubles().as_str()), (9, ""));
    assert!(!world.is_held("x"));
    world.is_empty_soon();
}

#[test]
fn a_supervisor_stopped_before_the_grant_never_starts_its_command_late() {
    let world = World::new("stopped-waiting");
    let (held, _) = start(&world, &["x", "--ttl", "2s"], "echo $$ > pid; sleep 1");
    let waiter = world.start(world.run(&["x", "--ttl", "2s", "--", "touch", "started"]));
    waiter.watchdog();
    sleep_ms(150);
    waiter.process().send(Signal::STOP);
    assert_eq!(held.end().code, 0);
    // Another holder has it in between.
    let third = world.ran(world.run(&["x", "--ttl", "2s", "--", "sleep", "0.5"]));
    assert_eq!(third.code, 0, "{third:?}");
    assert!(!world.exists("started"));
    waiter.process().send(Signal::CONT);
    assert_eq!(waiter.end().code, 0);
    assert!(world.exists("started"));
    world.is_empty_soon();
}

#[test]
fn a_stub_that_wakes_up_too_late_does_not_start_the_command() {
    let world = World::new("late-stub");
    let (held, _) =
        start(&world, &["x", "--ttl", "2s"], "echo $$ > pid; while ! [ -e end ]; do sleep 0.02; done");
    let waiter = world.start(world.run(&["x", "--ttl", "2s", "--json", "--", "touch", "started"]));
    let (supervisor, watchdog) = (waiter.process(), waiter.watchdog());
    let stub = until("a stub", SOON, || run_support::children_of(watchdog.number).pop());
    let stub = Process::of(stub).unwrap();
    until("wait", SOON, || waiter.err_so_far().contains("waiting").then_some(()));
    stub.send(Signal::STOP);
    fs::write(world.path("end"), "").unwrap();
    assert_eq!(held.end().code, 0);
    until("grant", SOON, || waiter.err_so_far().contains("granted").then_some(()));
    // The gate is open by now. All of them are frozen, as a container can be, and the lease lapses.
    sleep_ms(200);
    watchdog.send(Signal::STOP);
    supervisor.send(Signal::STOP);
    // The stub counts as a live process of the former command, so the next one needs a short `--orphan-wait`.
    let words = ["x", "--ttl", "2s", "--orphan-wait", "100ms"];
    let (next, _) = start_as(&world, "next", &words, "echo $$ > next; exec sleep 100");
    stub.send(Signal::CONT);
    stub.dies_within(SOON);
    assert!(!world.exists("started"), "it acted beside the next holder");
    watchdog.send(Signal::CONT);
    supervisor.send(Signal::CONT);
    let ran = waiter.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    next.process().send(Signal::TERM);
    assert_eq!(next.end().code, 143);
    world.is_empty_soon();
}

// ── the watchdog is stopped ─────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn when_the_watchdog_is_stopped_the_lease_is_still_released_after_the_command() {
    let world = World::new("watchdog-stopped");
    let script = "setsid sleep 100 & echo $$ > pid; sleep 1; exit 8";
    let (started, child) = start(&world, &["x"], script);
    started.watchdog().send(Signal::STOP);
    child.dies_within(SOON);
    let ran = started.end_within(Duration::from_secs(5));
    assert_eq!(ran.code, 8, "{ran:?}");
    assert!(!world.is_held("x"), "it was released");
    world.is_empty_soon();
}

#[test]
fn a_watchdog_that_is_stopped_for_longer_than_the_ttl_does_no_harm_when_continued() {
    let world = World::new("watchdog-stopped-long");
    let (mut started, _) = start(&world, &["x", "--ttl", "1s"], "echo $$ > pid; sleep 4; exit 2");
    let watchdog = started.watchdog();
    watchdog.send(Signal::STOP);
    sleep_ms(2500);
    assert!(!started.has_ended());
    watchdog.send(Signal::CONT);
    let ran = started.end();
    assert_eq!((ran.code, ran.troubles().as_str()), (2, ""));
    world.is_empty_soon();
}

/// Starts a run whose watchdog is stopped before its first message. Retries until that succeeds.
fn start_with_watchdog_stopped_early(world: &World, words: &[&str]) -> Started {
    for _ in 0..100 {
        let mut started = world.start(world.run(words));
        let supervisor = started.process().number;
        // Without a pause, because the watchdog gets its name within a millisecond.
        let children = format!("/proc/{supervisor}/task/{supervisor}/children");
        let first =
            || fs::read_to_string(&children).unwrap().split(' ').next().and_then(|word| word.parse().ok());
        let found = std::iter::repeat_with(first).find(|found| found.is_some() || started.has_ended());
        // On a busy machine, the run may be over before this check.
        let Some(watchdog) = found.flatten().and_then(Process::of) else { continue };
        watchdog.send(Signal::STOP);
        let name = fs::read_to_string(format!("/proc/{}/comm", watchdog.number)).unwrap_or_default();
        if name.trim() == "tenure" {
            return started;
        }
        watchdog.send(Signal::CONT);
        started.end();
    }
    panic!("a watchdog is never caught early");
}

#[test]
fn a_watchdog_that_is_stopped_before_it_is_ready_does_not_block_the_lease() {
    let world = World::new("early");
    let words = ["x", "--ttl", "2s", "--", "touch", "ran"];
    let ran = start_with_watchdog_stopped_early(&world, &words).end_within(Duration::from_secs(8));
    assert_eq!(ran.code, 69, "{ran:?}");
    assert!(!world.is_held("x"));
    let waits = start_with_watchdog_stopped_early(&world, &["x", "--ttl", "60s", "--", "touch", "ran"]);
    until("a grant", SOON, || world.is_held("x").then_some(()));
    assert!(waits.process().send(Signal::TERM));
    assert_eq!(waits.end_within(Duration::from_secs(8)).code, 143, "signals are heard meanwhile");
    assert!(!world.is_held("x"));
    world.is_empty_soon();
}

#[test]
fn the_watchdog_ignores_signals_that_stop_other_processes() {
    let world = World::new("watchdog-deaf");
    let (started, child) = start(&world, &["x"], "echo $$ > pid; exec sleep 100");
    let watchdog = started.watchdog();
    for signal in
        [Signal::HUP, Signal::INT, Signal::TERM, Signal::QUIT, Signal::TSTP, Signal::PIPE, Signal::ALARM]
    {
        watchdog.send(signal);
    }
    sleep_ms(200);
    assert!(!watchdog.is_dead() && !child.is_dead());
    assert!(watchdog.state().is_some_and(|state| state != 'T'), "{:?}", watchdog.state());
    started.process().send(Signal::TERM);
    assert_eq!(started.end().code, 143);
    world.is_empty_soon();
}

#[test]
fn with_a_stopped_watchdog_and_a_silent_store_the_command_is_still_stopped_in_time() {
    let world = World::new("watchdog-stopped-risk");
    let (started, child) = start(&world, &["x", "--ttl", "2s"], STUBBORN);
    started.watchdog().send(Signal::STOP);
    let lock = world.lock_of("x");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    let took = child.dies_within(PATIENCE);
    assert!(took < Duration::from_secs(2), "{took:?}");
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    world.is_empty_soon();
}

// ── nested runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// `tenure run a -- tenure run b -- …`: the outer run, the inner supervisor and the child.
fn nested(world: &World) -> (Started, Process, Process) {
    let words = ["a", "--ttl", "3s", "--", TENURE, "run", "b", "--ttl", "3s", "--", "sh", "-c", STUBBORN];
    let started = world.start(world.run(&words));
    let child = world.told_pid("pid");
    world.told("inner");
    let outer_dog = started.watchdog();
    let inner = until("an inner supervisor", SOON, || {
        run_support::children_of(outer_dog.number).into_iter().find(|&one| watchdog_of(one).is_some())
    });
    (started, Process::of(inner).unwrap(), child)
}

#[test]
fn nested_runs_both_exit_with_the_inner_command() {
    let world = World::new("nested-end");
    let words = ["a", "--", TENURE, "run", "b", "--", "sh", "-c", "echo $TENURE_NAME; exit 11"];
    let ran = world.ran(world.run(&words));
    assert_eq!((ran.code, ran.text(), ran.troubles().as_str()), (11, "b\n", ""));
    assert!(!world.is_held("a") && !world.is_held("b"));
    world.is_empty_soon();
}

#[test]
fn nested_runs_are_killed_with_the_outer_supervisor() {
    let world = World::new("nested-outer");
    let (started, inner, child) = nested(&world);
    let inner_dog = watchdog_of(inner.number).unwrap();
    started.process().send(Signal::KILL);
    for process in [child, inner, inner_dog] {
        process.dies_within(AT_ONCE);
    }
    drop(started);
    world.is_empty_soon();
}

#[test]
fn nested_runs_report_a_killed_inner_supervisor_whose_tree_is_killed() {
    let world = World::new("nested-inner");
    let (started, inner, child) = nested(&world);
    inner.send(Signal::KILL);
    child.dies_within(AT_ONCE);
    let ran = started.end();
    assert_eq!(ran.code, 137, "{ran:?}");
    assert!(!ran.troubles().contains("tenure"), "{}", ran.err);
    assert!(!world.is_held("a"), "it was released");
    world.is_empty_soon();
}

#[test]
fn nested_runs_are_killed_with_the_outer_watchdog() {
    let world = World::new("nested-dog");
    let (started, inner, child) = nested(&world);
    started.watchdog().send(Signal::KILL);
    child.dies_within(Duration::from_secs(4));
    inner.dies_within(SOON);
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(!world.is_held("a"), "it was released");
    world.is_empty_soon();
}

#[test]
fn nested_runs_are_dead_before_the_deadline_of_a_stopped_outer_supervisor() {
    let world = World::new("nested-stopped");
    let (started, inner, child) = nested(&world);
    let stopped = Instant::now();
    started.process().send(Signal::STOP);
    child.dies_within(PATIENCE);
    inner.dies_within(SOON);
    assert!(stopped.elapsed() < Duration::from_secs(3), "{:?}", stopped.elapsed());
    started.process().send(Signal::CONT);
    assert_eq!(started.end().code, 76);
    world.is_empty_soon();
}

#[test]
fn nested_runs_leave_nothing_if_the_inner_supervisor_is_stopped_and_the_outer_one_killed() {
    let world = World::new("nested-both");
    let (started, inner, child) = nested(&world);
    inner.send(Signal::STOP);
    started.process().send(Signal::KILL);
    child.dies_within(AT_ONCE);
    inner.dies_within(AT_ONCE);
    drop(started);
    world.is_empty_soon();
}

#[test]
fn nested_runs_leave_nothing_if_both_watchdogs_are_killed() {
    let world = World::new("nested-dogs");
    let (started, inner, child) = nested(&world);
    let inner_dog = watchdog_of(inner.number).unwrap();
    inner_dog.send(Signal::KILL);
    started.watchdog().send(Signal::KILL);
    child.dies_within(Duration::from_secs(4));
    assert_eq!(started.end().code, 76);
    assert!(!world.is_held("a"), "it was released");
    world.is_empty_soon();
}

// ── processes that are hard to kill ─────────────────────────────────────────────────────────────────────────────────

/// Starts other processes as fast as it can, for at most five seconds.
const STORM: &str = "trap '' TERM; echo $$ > pid; end=$(($(date +%s) + 5)); \
                     while [ $(date +%s) -lt $end ]; do sleep 0.05 & setsid sleep 7 & done; wait";

#[test]
fn a_storm_of_processes_is_killed_after_the_death_of_the_supervisor() {
    let world = World::new("storm");
    let (started, child) = start(&world, &["x"], STORM);
    sleep_ms(500);
    started.process().send(Signal::KILL);
    child.dies_within(SOON);
    drop(started);
    world.is_empty_soon();
}

#[test]
fn the_supervisor_alone_kills_a_storm_of_processes() {
    let world = World::new("storm-alone");
    let (started, child) = start(&world, &["x", "--kill-grace", "300ms"], STORM);
    sleep_ms(500);
    started.watchdog().send(Signal::KILL);
    child.dies_within(SOON);
    assert_eq!(started.end_within(SOON).code, 76);
    world.is_empty_soon();
}

#[test]
fn processes_that_fork_and_exit_all_the_time_are_killed() {
    let world = World::new("runaway");
    // Each one lives just long enough to start the next.
    fs::write(world.path("next"), "#!/bin/sh\ntrap '' TERM\n[ $(date +%s) -lt $END ] && setsid ./next &\n")
        .unwrap();
    fs::set_permissions(world.path("next"), fs::Permissions::from_mode(0o755)).unwrap();
    let script =
        "trap '' TERM; export END=$(($(date +%s) + 6)); ./next & ./next & ./next & echo $$ > pid; sleep 100";
    let (started, child) = start(&world, &["x"], script);
    sleep_ms(300);
    let killed = Instant::now();
    started.process().send(Signal::KILL);
    child.dies_within(SOON);
    drop(started);
    world.is_empty_soon();
    assert!(killed.elapsed() < Duration::from_secs(4), "{:?}", killed.elapsed());
}

#[test]
fn stopped_processes_are_killed_too() {
    let world = World::new("stopped-child");
    let (started, child) =
        start(&world, &["x", "--kill-grace", "300ms"], "echo $$ > pid; sleep 100 & kill -STOP $$");
    until("stop", SOON, || (child.state() == Some('T')).then_some(()));
    started.watchdog().send(Signal::KILL);
    child.dies_within(SOON);
    assert_eq!(started.end().code, 76);
    world.is_empty_soon();
}

// ── the lease is lost ───────────────────────────────────────────────────────────────────────────────────────────────

#[test]
fn another_grant_in_the_record_kills_the_command_at_once() {
    let world = World::new("usurped");
    let (started, child) = start(&world, &["x", "--ttl", "3s"], STUBBORN);
    let store = world.store();
    let written = until("a write that is not raced by a renewal", SOON, || {
        block_on(async {
            let entry = store.get(&key("x")).await.unwrap().entry.unwrap();
            let mut record = decode(&entry.value).unwrap();
            record.term = Nonce::from_bits(7);
            record.nonce = Nonce::from_bits(7);
            record.token = record.token.next().unwrap();
            record.sequence += 1;
            record.witness = None;
            record.holder = Some(Holder::new("usurper").unwrap().into());
            let put = store.put(&key("x"), encode(&record), Expect::Version(entry.version)).await.unwrap();
            matches!(put, Put::Applied(_)).then_some(record)
        })
    });
    // The next renewal sees it, at most a third of the ttl later.
    child.dies_within(Duration::from_millis(1000) + AT_ONCE);
    assert!(!world.exists("termed"), "another holder acts already: no time for TERM");
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert_eq!(world.record("x").unwrap().term, written.term, "the other's record is left alone");
    world.is_empty_soon();
}

#[test]
fn a_deleted_record_kills_the_command_at_once() {
    let world = World::new("deleted");
    let (started, child) = start(&world, &["x", "--ttl", "3s"], STUBBORN);
    fs::remove_file(world.store().path_of(&key("x"))).unwrap();
    child.dies_within(Duration::from_millis(1000) + AT_ONCE);
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(!world.exists("termed"));
    world.is_empty_soon();
}

#[test]
fn processes_that_a_shell_started_before_it_became_the_supervisor_do_not_belong_to_the_command() {
    let world = World::new("bystander");
    let script = "sleep 100 & echo $! > bystander; exec \"$TENURE\" run x --ttl 3s -- sh -c 'echo $$ > pid; exec sleep 100'";
    let started = world.start(world.sh(script));
    let (child, bystander) = (world.told_pid("pid"), world.told_pid("bystander"));
    fs::remove_file(world.store().path_of(&key("x"))).unwrap();
    child.dies_within(Duration::from_millis(1000) + AT_ONCE);
    assert_eq!(started.end().code, 76);
    assert!(!bystander.is_dead(), "it has nothing to do with the lease");
    bystander.send(Signal::KILL);
    world.is_empty_soon();
}

#[test]
fn processes_that_a_shell_started_before_survive_even_if_the_watchdog_is_killed() {
    let world = World::new("before-unwatched");
    let script = "sleep 100 & echo $! > before; exec \"$TENURE\" run x -- sh -c 'setsid sleep 100 & echo $$ > pid; wait'";
    let started = world.start(world.sh(script));
    let (before, child) = (world.told_pid("before"), world.told_pid("pid"));
    started.watchdog().send(Signal::KILL);
    child.dies_within(AT_ONCE);
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(!before.is_dead(), "it is not the command's");
    assert!(!world.is_held("x"), "it was released");
    before.send(Signal::KILL);
    world.is_empty_soon();
}

/// A pipe that is full.
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let blocking = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, blocking | rustix::fs::OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, blocking).unwrap();
    (reader, writer)
}

#[test]
fn a_full_standard_error_does_not_keep_the_guards_from_killing_the_command() {
    let world = World::new("unread");
    let (mut reader, writer) = full_pipe();
    let mut command = world.run(&["x", "--ttl", "9s", "--", "sh", "-c", STUBBORN]);
    let mut supervisor = command.stderr(writer).spawn().unwrap();
    drop(command);
    let child = world.told_pid("pid");
    fs::remove_file(world.store().path_of(&key("x"))).unwrap();
    // The next renewal sees it. The watchdog alone would act after two thirds of the ttl.
    child.dies_within(Duration::from_millis(3000) + AT_ONCE);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(supervisor.wait().unwrap().code(), Some(76));
    assert!(said.contains("the command was stopped"), "a late reader still gets the reason");
    world.is_empty_soon();
}

/// Times of TERM and of the death of the child, counted from `began`.
fn asked_and_killed(world: &World, child: &Process, began: Instant) -> (Duration, Duration) {
    let asked = until("TERM", PATIENCE, || world.exists("termed").then(|| began.elapsed()));
    child.dies_within(PATIENCE);
    (asked, began.elapsed())
}

#[test]
fn when_the_store_is_silent_term_comes_in_time_and_kill_before_the_deadline() {
    let world = World::new("store-gone");
    let words = ["x", "--ttl", "4s", "--kill-grace", "1s"];
    let (started, child) = start(&world, &words, STUBBORN);
    world.told("inner");
    let began = Instant::now();
    let lock = world.lock_of("x");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    let (asked, killed) = asked_and_killed(&world, &child, began);
    // The latest renewal was at most one period of 4/3 s ago: TERM at 3.96 − 0.15 − 1 s after it, KILL a second later.
    assert!(
        asked > Duration::from_millis(2810 - 1340) && asked < Duration::from_millis(2810 + 300),
        "{asked:?}"
    );
    assert!(killed < Duration::from_millis(3960), "{killed:?}");
    let grace = killed - asked;
    assert!(grace > Duration::from_millis(500) && grace < Duration::from_millis(1150), "{grace:?}");
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(ran.err.contains("renew"), "{}", ran.err);
    assert_eq!(world.lines("termed"), ["term"], "once");
    world.is_empty_soon();
}

#[test]
fn when_the_key_cannot_be_written_for_too_long_the_command_is_stopped_in_time() {
    let world = World::new("locked");
    let (started, child) = start(&world, &["x", "--ttl", "3s", "--kill-grace", "500ms"], STUBBORN);
    let lock = world.lock_of("x");
    let began = Instant::now();
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    let (_, killed) = asked_and_killed(&world, &child, began);
    assert!(killed < Duration::from_millis(2970), "{killed:?}");
    drop(lock);
    assert_eq!(started.end().code, 76);
    world.is_empty_soon();
}

#[test]
fn a_store_that_recovers_in_time_stops_nothing() {
    let world = World::new("outage");
    let (started, _) =
        start(&world, &["x", "--ttl", "4s", "--kill-grace", "500ms"], "echo $$ > pid; sleep 3; exit 6");
    let lock = world.lock_of("x");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    sleep_ms(500);
    drop(lock);
    let ran = started.end();
    assert_eq!((ran.code, ran.troubles().as_str()), (6, ""));
    world.is_empty_soon();
}

#[test]
fn a_strict_lease_stops_the_command_in_order_at_the_first_failed_renewal() {
    let world = World::new("strict");
    let words = ["x", "--ttl", "6s", "--kill-grace", "500ms", "--strict"];
    let (started, child) = start(&world, &words, STUBBORN);
    let began = Instant::now();
    let lock = world.lock_of("x");
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    let (asked, killed) = asked_and_killed(&world, &child, began);
    assert!(asked < Duration::from_millis(3200), "{asked:?}");
    assert!(killed - asked < SOON, "{killed:?}");
    assert_eq!(started.end().code, 76);
    world.is_empty_soon();
}
