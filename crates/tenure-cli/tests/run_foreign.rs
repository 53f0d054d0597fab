//! The supervisor keeps the lease as long as a process of the tree is alive, even one of another user that it cannot
//! kill.

mod run_support;

use std::os::unix::process::CommandExt;
use std::time::Duration;

use run_support::{OTHER_USER, SOON, World, run_as_other_user, sleep_ms, until, world_of_other_user};
use rustix::process::Signal;

/// "At once", on a busy machine with two cores.
const AT_ONCE: Duration = Duration::from_millis(700);

/// Asserts that no other holder is granted the lease for more than two ttls.
fn assert_stays_held(world: &World) {
    let waiter = run_as_other_user(world, &["--wait", "5s", "--", "touch", "second"]).end();
    assert_eq!(waiter.code, 75, "{waiter:?}");
    assert!(!world.exists("second"));
}

#[test]
fn the_lease_is_kept_while_a_process_lives_that_cannot_be_killed() {
    let Some(world) = world_of_other_user("another-user") else { return };
    // Root by its setuid bit, and for good: its parent may not signal it.
    let script = "./root --reuid 0 --regid 0 --clear-groups sh -c 'echo $$ > pid; exec sleep 100' & \
                  while ! [ -s pid ]; do sleep 0.02; done; exit 3";
    let mut started = run_as_other_user(&world, &["--", "sh", "-c", script]);
    let root = world.told_pid("pid");
    assert_stays_held(&world);
    assert!(
        !root.is_dead() && !started.has_ended(),
        "the supervisor ended while a process of its tree lived"
    );
    let said = started.err_so_far();
    assert!(said.contains("is kept") && said.contains(&root.number.to_string()), "{said}");
    root.send(Signal::KILL);
    let ran = started.end();
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!world.other_user_holds("x"), "it was released");
    world.is_empty_soon();
}

#[test]
fn a_watchdog_without_a_supervisor_stays_while_a_process_lives_that_it_cannot_kill() {
    let Some(world) = world_of_other_user("beside") else { return };
    // It closes the descriptors that it inherits, as sudo and Python do, including the witness.
    let script = "(eval 'exec 101>&-'; exec ./root --reuid 0 --regid 0 --clear-groups sh -c 'echo $$ > root-pid; exec sleep 100') & \
                  while ! [ -s root-pid ]; do sleep 0.02; done; trap '' TERM; echo $$ > pid; while :; do sleep 0.02; done";
    let started = run_as_other_user(&world, &["--", "bash", "-c", script]);
    let (child, root) = (world.told_pid("pid"), world.told_pid("root-pid"));
    let watchdog = started.watchdog();
    started.process().send(Signal::KILL);
    child.dies_within(AT_ONCE);
    assert_stays_held(&world);
    assert!(!root.is_dead() && !watchdog.is_dead(), "the watchdog ended while a process of its tree lived");
    root.send(Signal::KILL);
    watchdog.dies_within(SOON);
    drop(started);
    world.is_empty_soon();
}

#[test]
fn a_supervisor_without_a_watchdog_keeps_the_lease_while_a_process_lives_that_it_cannot_kill() {
    let Some(world) = world_of_other_user("unwatched-beside") else { return };
    let script = "(eval 'exec 101>&-'; exec ./root --reuid 0 --regid 0 --clear-groups sh -c 'echo $$ > pid; exec sleep 100') & \
                  while ! [ -s pid ]; do sleep 0.02; done; echo $$ > child; exec sleep 100";
    let mut started = run_as_other_user(&world, &["--", "bash", "-c", script]);
    let (root, _) = (world.told_pid("pid"), world.told_pid("child"));
    started.watchdog().send(Signal::KILL);
    assert_stays_held(&world);
    assert!(
        !root.is_dead() && !started.has_ended(),
        "the supervisor ended while a process of its tree lived"
    );
    root.send(Signal::KILL);
    assert_eq!(started.end().code, 76);
    world.is_empty_soon();
}

#[test]
fn a_setuid_command_is_detected_before_it_starts_and_its_lease_cannot_be_stolen() {
    let Some(world) = world_of_other_user("setuid") else { return };
    let words = [
        "--",
        "./root",
        "--reuid",
        "0",
        "--regid",
        "0",
        "--clear-groups",
        "sh",
        "-c",
        "echo $$ > pid; exec sleep 100",
    ];
    let started = run_as_other_user(&world, &words);
    let root = world.told_pid("pid");
    assert!(started.err_so_far().contains("runs as user 0"), "{}", started.err_so_far());
    let mut steal = world.command(world.path("tenure"));
    steal
        .args(["steal", "x", "--reason", "test", "--wait", "3s", "--", "touch", "stolen"])
        .uid(OTHER_USER)
        .gid(OTHER_USER);
    let stolen = world.ran(steal);
    assert_eq!(stolen.code, 75, "{stolen:?}");
    assert!(stolen.err.contains("cannot be stopped"), "{}", stolen.err);
    assert!(!world.exists("stolen") && !root.is_dead());
    root.send(Signal::KILL);
    assert_eq!(started.end().code, 137);
}

#[test]
fn a_revoked_lease_is_kept_until_the_process_that_cannot_be_killed_exits() {
    let Some(world) = world_of_other_user("revoked") else { return };
    let script = "./root --reuid 0 --regid 0 --clear-groups sh -c 'echo $$ > pid; exec sleep 100'; exit 0";
    let started = run_as_other_user(&world, &["--", "sh", "-c", script]);
    let root = world.told_pid("pid");
    let mut steal = world.command(world.path("tenure"));
    steal
        .args(["steal", "x", "--ttl", "2s", "--reason", "test", "--", "sh", "-c"])
        .uid(OTHER_USER)
        .gid(OTHER_USER);
    let look = format!("[ -d /proc/{} ] && echo alive > stolen || echo dead > stolen", root.number);
    let mut stealer = world.start({
        steal.arg(&look);
        steal
    });
    sleep_ms(6000);
    assert!(!stealer.has_ended() && !world.exists("stolen"), "two ran at once");
    root.send(Signal::KILL);
    assert_eq!(world.told("stolen"), "dead");
    assert_eq!(stealer.end().code, 0);
    assert_eq!(started.end().code, 76);
}

#[test]
fn a_holder_whose_lease_was_stolen_at_once_does_not_claim_to_keep_it() {
    let Some(world) = world_of_other_user("taken") else { return };
    let script = "./root --reuid 0 --regid 0 --clear-groups sh -c 'echo $$ > pid; exec sleep 100'; exit 0";
    let started = run_as_other_user(&world, &["--", "sh", "-c", script]);
    let root = world.told_pid("pid");
    let mut steal = world.command(world.path("tenure"));
    steal.args(["steal", "x", "--now", "--reason", "test", "--", "true"]).uid(OTHER_USER).gid(OTHER_USER);
    assert_eq!(world.ran(steal).code, 0);
    until("the message", SOON, || started.err_so_far().contains("could not be killed").then_some(()));
    root.send(Signal::KILL);
    let ran = started.end();
    assert_eq!(ran.code, 76, "{ran:?}");
    assert!(ran.err.contains("is lost, but process") && !ran.err.contains("is kept"), "{}", ran.err);
}
