//! Witnesses: a holder without any live process is replaced at once, and a holder with a live process is not.
#![expect(clippy::disallowed_methods, reason = "the tests measure how long other processes take")]

mod run_support;

use std::fs;
use std::time::{Duration, Instant};

use run_support::{PATIENCE, Process, SOON, Started, World, sleep_ms};
use rustix::process::Signal;
use tenure_testkit::{FileSystem, Mounted};

/// Long, so that a contender that gets the lease sooner did not wait for it to run out.
const TTL: &str = "20s";

/// Longest delay of the next start. The command promises 100 ms, on a machine that is not busy with other tests.
const AT_ONCE: Duration = Duration::from_millis(500);

fn start(world: &World, script: &str) -> (Started, Process) {
    let started = world.start(world.run(&["x", "--ttl", TTL, "--", "sh", "-c", script]));
    let child = world.told_pid("pid");
    (started, child)
}

fn waiter(world: &World) -> Started {
    let words = ["x", "--ttl", TTL, "--", "sh", "-c", "echo $TENURE_TOKEN > begun"];
    let waiter = world.start(world.run(&words));
    waiter.watchdog();
    sleep_ms(300);
    assert!(!world.exists("begun"));
    waiter
}

/// Time until the waiter's command has begun.
fn begins(world: &World) -> Duration {
    let began = Instant::now();
    world.told("begun");
    began.elapsed()
}

#[test]
fn a_waiter_starts_at_once_when_the_tree_of_a_killed_supervisor_is_dead() {
    let world = World::new("witness-killed");
    let script = "trap '' TERM; setsid sleep 100 & echo $$ > pid; while :; do sleep 0.02; done";
    let (started, child) = start(&world, script);
    let waiter = waiter(&world);
    let first = world.record("x").unwrap().token;
    started.process().send(Signal::KILL);
    child.dies_within(PATIENCE);
    let late = begins(&world);
    assert!(late < AT_ONCE, "{late:?}");
    assert_eq!(waiter.end().code, 0);
    assert!(world.told("begun").parse::<u64>().unwrap() > first.get());
    drop(started);
    world.is_empty_soon();
}

#[test]
fn a_run_without_waiting_takes_over_from_a_dead_holder() {
    let world = World::new("witness-no-wait");
    let (started, child) = start(&world, "echo $$ > pid; exec sleep 100");
    let watchdog = started.watchdog();
    started.process().send(Signal::KILL);
    child.dies_within(PATIENCE);
    watchdog.dies_within(PATIENCE);
    drop(started);
    let ran = world.ran(world.run(&["x", "--ttl", TTL, "--no-wait", "--", "true"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    world.is_empty_soon();
}

#[test]
fn killing_all_processes_of_a_holder_frees_the_lease_at_once() {
    let world = World::new("witness-all");
    let (started, child) = start(&world, "echo $$ > pid; exec sleep 100");
    let watchdog = started.watchdog();
    let waiter = waiter(&world);
    for process in [&watchdog, &started.process(), &child] {
        process.send(Signal::KILL);
    }
    let late = begins(&world);
    assert!(late < AT_ONCE, "{late:?}");
    assert_eq!(waiter.end().code, 0);
    drop(started);
    world.is_empty_soon();
}

/// Asserts that no contender gets the lease for two seconds, and that a contender that does not wait exits with 75.
fn stays_held(world: &World) {
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        assert!(!world.exists("begun"), "a process of the first term was alive");
        sleep_ms(20);
    }
    let ran = world.ran(world.run(&["x", "--ttl", TTL, "--no-wait", "--", "touch", "begun"]));
    assert_eq!(ran.code, 75, "{ran:?}");
}

#[test]
fn a_child_that_closes_inherited_descriptors_still_counts_while_the_watchdog_lives() {
    let world = World::new("witness-closed");
    let script = "exec bash -c 'for n in {3..255}; do eval \"exec $n>&-\"; done; trap \"\" TERM; echo $$ > pid; \
                  while :; do sleep 0.02; done'";
    let (started, child) = start(&world, script);
    let _waiter = waiter(&world);
    started.watchdog().send(Signal::STOP);
    started.process().send(Signal::KILL);
    stays_held(&world);
    assert!(!child.is_dead(), "the test is void");
}

#[test]
fn a_stopped_holder_does_not_count_as_dead() {
    let world = World::new("witness-stopped");
    let (started, child) = start(&world, "echo $$ > pid; while :; do sleep 0.02; done");
    let _waiter = waiter(&world);
    started.process().send(Signal::STOP);
    stays_held(&world);
    assert!(!child.is_dead(), "the test is void");
    started.process().send(Signal::CONT);
    started.process().send(Signal::TERM);
    assert_eq!(started.end().code, 143);
}

#[test]
fn a_released_lease_leaves_no_file_of_its_holder() {
    let world = World::new("witness-files");
    let names = || {
        let names = fs::read_dir(world.leases()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(world.ran(world.run(&["x", "--", "true"])).code, 0);
    let first = names();
    for _ in 0..5 {
        assert_eq!(world.ran(world.run(&["x", "--", "true"])).code, 0);
    }
    assert_eq!(names(), first);
    world.is_empty_soon();
}

#[test]
fn files_of_killed_holders_do_not_accumulate_in_the_directory() {
    let world = World::new("witness-litter");
    let count = || fs::read_dir(world.leases()).unwrap().count();
    let mut counts = Vec::new();
    for _ in 0..3 {
        let started =
            world.start(world.run(&["x", "--ttl", "1s", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"]));
        let child = world.told_pid("pid");
        let _ = fs::remove_file(world.path("pid"));
        started.process().send(Signal::KILL);
        child.dies_within(SOON);
        drop(started);
        assert_eq!(world.ran(world.run(&["x", "--ttl", "1s", "--", "true"])).code, 0);
        counts.push(count());
    }
    assert!(counts[2] <= counts[0] + 1, "{counts:?}");
    world.is_empty_soon();
}

/// A user has 128 inotify instances by default, and a crowd may use all of them.
#[test]
fn a_waiter_without_inotify_polls() {
    let untold = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$@\"";
    let namespace = ["--user", "--map-root-user", "sh", "-c", untold, "sh"];
    let world = World::new("witness-untold");
    let mut tried = world.command("unshare");
    tried.args(namespace).arg("true");
    if world.ran(tried).code != 0 {
        return run_support::skipped("no user namespaces here");
    }
    let waiter = |begun: &str| {
        let mut command = world.command("unshare");
        let script = format!("echo $TENURE_TOKEN > {begun}");
        command.args(namespace).args([
            run_support::TENURE,
            "run",
            "x",
            "--ttl",
            "1h",
            "--",
            "sh",
            "-c",
            &script,
        ]);
        world.start(command)
    };
    let words = ["x", "--ttl", "1h", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"];
    let holder = world.start(world.run(&words));
    world.told("pid");
    let killed = waiter("after-kill");
    killed.watchdog();
    sleep_ms(500);
    holder.process().send(Signal::KILL);
    world.told("after-kill");
    assert_eq!(killed.end().code, 0);
    // The same after a release.
    fs::remove_file(world.path("pid")).unwrap();
    let holder = world.start(world.run(&words));
    world.told("pid");
    let released = waiter("after-release");
    released.watchdog();
    sleep_ms(500);
    holder.process().send(Signal::TERM);
    world.told("after-release");
    assert_eq!(released.end().code, 0);
}

/// The root of most containers is an overlay.
#[test]
fn loops_of_jobs_on_an_overlay_never_overlap() {
    for kind in [FileSystem::OverlayOnTmpfs, FileSystem::OverlayOnExt4] {
        let Some(mounted) = Mounted::new(kind) else { return };
        let world = World::under(mounted.path(), "loops");
        // The directory can exist only once, so two jobs that overlap are detected.
        let job = r#"mkdir inside || echo overlap >> overlaps; sleep 0.02; rmdir inside; echo job >> jobs"#;
        let one =
            format!("for i in 1 2 3 4 5 6 7 8; do \"$TENURE\" run x --ttl {TTL} -- sh -c '{job}'; done");
        let ran = world
            .start(world.sh(&format!("for loop in 1 2 3 4; do ({one}) & done; wait")))
            .end_within(PATIENCE);
        assert_eq!(ran.code, 0, "{ran:?}");
        let overlaps = fs::read_to_string(world.path("overlaps")).unwrap_or_default();
        assert_eq!(overlaps.lines().count(), 0, "on {kind:?}: {ran:?}");
        assert_eq!(fs::read_to_string(world.path("jobs")).unwrap().lines().count(), 32, "{ran:?}");
        world.is_empty_soon();
    }
}
