//! Where it can, the supervisor starts the command in its own cgroup, and kills all of it at once.

mod run_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use run_support::{PATIENCE, World, skipped, until};
use rustix::process::Signal;
use tenure_testkit::{cgroup_in, own_cgroup};

/// The directory of this process's cgroup, if cgroups can be created there.
fn own_directory(test: &str) -> Option<PathBuf> {
    let directory = own_cgroup()?;
    let trial = directory.join(format!("trial-{test}-{}", std::process::id()));
    fs::create_dir(&trial).ok()?;
    let can_kill = trial.join("cgroup.kill").exists();
    fs::remove_dir(&trial).unwrap();
    can_kill.then_some(directory)
}

/// The directory of the child's cgroup, from the file that the child wrote.
fn directory_of(world: &World, own: &std::path::Path) -> PathBuf {
    let cgroup = cgroup_in(&fs::read_to_string(world.path("cgroup")).unwrap()).unwrap();
    own.join(PathBuf::from(cgroup).file_name().unwrap())
}

#[test]
fn the_command_starts_in_its_own_cgroup_which_is_removed_at_its_end() {
    let Some(own) = own_directory("born") else { return skipped("no cgroup can be made here") };
    let world = World::new("cgroup");
    let script =
        "cat /proc/self/cgroup > cgroup; echo > told; while ! [ -e seen ]; do sleep 0.01; done; exit 3";
    let started = world.start(world.run(&["x", "--", "sh", "-c", script]));
    world.told("told");
    let directory = directory_of(&world, &own);
    let mode = fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "another user could lock it, and pass for a guard");
    fs::write(world.path("seen"), "").unwrap();
    assert_eq!(started.end().code, 3);
    assert!(directory.file_name().unwrap().to_str().unwrap().starts_with("tenure-"), "{directory:?}");
    until("the cgroup goes", PATIENCE, || (!directory.exists()).then_some(()));
}

#[test]
fn processes_that_fork_too_fast_to_be_found_are_killed_by_one_write() {
    let Some(own) = own_directory("storm") else { return skipped("no cgroup can be made here") };
    let world = World::new("cgroup-storm");
    // Bounded: each of them exits after some thousand children.
    let storm = "cat /proc/self/cgroup > cgroup; trap '' TERM
        storm() { n=0; while [ $n -lt 3000 ]; do (trap '' TERM; : & :) & n=$((n+1)); done; }
        storm & storm & storm & storm & echo $$ > pid; wait";
    let started = world.start(world.run(&["x", "--", "sh", "-c", storm]));
    world.told("pid");
    started.process().send(Signal::KILL);
    drop(started);
    world.is_empty_soon();
    let directory = directory_of(&world, &own);
    until("the cgroup goes", PATIENCE, || (!directory.exists()).then_some(()));
}

#[test]
fn a_cgroup_and_its_children_are_removed_even_if_the_watchdog_died_first() {
    let Some(own) = own_directory("nested") else { return skipped("no cgroup can be made here") };
    let world = World::new("cgroup-nested");
    let inner = "cat /proc/self/cgroup > cgroup; \"$TENURE\" run y -- sh -c 'echo $$ > pid; exec sleep 100'";
    let mut outer = world.run(&["x", "--kill-grace", "100ms", "--", "sh", "-c", inner]);
    outer.env("TENURE", run_support::TENURE);
    let started = world.start(outer);
    world.told("pid");
    let directory = directory_of(&world, &own);
    assert!(directory.exists());
    started.watchdog().send(Signal::KILL);
    assert_eq!(started.end().code, 76);
    until("the cgroup goes", PATIENCE, || (!directory.exists()).then_some(()));
    world.is_empty_soon();
}

#[test]
fn a_supervisor_that_is_moved_to_another_cgroup_still_counts_as_a_guard() {
    let Some(own) = own_directory("moved") else { return skipped("no cgroup can be made here") };
    let world = World::new("cgroup-moved");
    let holder = world.start(world.run(&["x", "--", "sh", "-c", "echo $$ > holder; exec sleep 100"]));
    let held = world.told_pid("holder");
    let waiter = world.start(world.run(&["x", "--", "sh", "-c", "echo $$ > pid; exec sleep 100"]));
    waiter.watchdog();
    let elsewhere = own.join(format!("elsewhere-{}", std::process::id()));
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("cgroup.procs"), waiter.process().number.to_string()).unwrap();
    held.send(Signal::KILL);
    world.told("pid");
    let open = fs::read_dir(format!("/proc/{}/fd", waiter.process().number)).unwrap().flatten();
    let links: Vec<_> = open.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
    let has_lock =
        links.iter().any(|link| link.starts_with(&own) && link.display().to_string().contains("/tenure-"));
    drop((holder, waiter));
    world.is_empty_soon();
    until("the other cgroup goes", PATIENCE, || fs::remove_dir(&elsewhere).ok());
    assert!(has_lock, "{links:?}");
}
