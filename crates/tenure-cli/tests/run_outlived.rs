//! A command that outlives its holder blocks others on its machine, and a command that cannot be stopped is not
//! revoked.

mod run_support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use run_support::{PATIENCE, Process, Ran, Started, World, block_on, said, until};
use rustix::process::Signal;
use tenure::{Coordinator, Holder, Lease, WitnessPart, WorkGuard};

/// Short, because the tests wait for it to run out.
const TTL: Duration = Duration::from_secs(1);

/// The directory of the store, for a holder in its own process.
const DIRECTORY: &str = "OUTLIVED_DIRECTORY";

/// The work of a holder, which outlives the holder. It is killed on drop.
struct Orphan(Process);

impl Drop for Orphan {
    fn drop(&mut self) {
        self.0.send(Signal::KILL);
    }
}

/// A holder that passes its work the tree's part of the witness, and then does nothing.
#[test]
#[ignore = "a process of other tests"]
fn holder() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let (lease, acting) = block_on(held(&tenure::store::File::open(directory).unwrap()));
    let tree = lease.witness(WitnessPart::Tree).unwrap().expect("there is a witness");
    let mut work = Command::new("sleep").arg("100").stdin(Stdio::from(tree)).spawn().unwrap();
    println!("> {}", work.id());
    work.wait().unwrap();
    std::mem::forget((lease, acting));
}

/// A holder of all slots of a group of two, that passes its work the tree's part of both witnesses, and then does
/// nothing.
#[test]
#[ignore = "a process of other tests"]
fn slot_holder() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let store = tenure::store::File::open(directory).unwrap();
    let slots = block_on(async {
        let former = Holder::new("former").unwrap();
        let coordinator = Coordinator::builder().holder(former).connect(store).await.unwrap();
        let slots = || coordinator.slots("g", 2).unwrap().ttl(TTL).manual().acquire();
        [slots().await.unwrap(), slots().await.unwrap()]
    });
    let acting = slots.each_ref().map(|slot| slot.work_guard().unwrap());
    let [first, second] = slots.each_ref().map(|slot| slot.witness(WitnessPart::Tree).unwrap().unwrap());
    let mut work = Command::new("sleep").arg("100").stdin(first).stdout(second).spawn().unwrap();
    println!("> {}", work.id());
    work.wait().unwrap();
    std::mem::forget((slots, acting));
}

async fn held(store: &tenure::store::File) -> (Lease, WorkGuard) {
    let former = Holder::new("former").unwrap();
    let coordinator = Coordinator::builder().holder(former).connect(store.clone()).await.unwrap();
    let lease = coordinator.lease("x").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    let acting = lease.work_guard().unwrap();
    (lease, acting)
}

/// Starts a holder and its work.
fn working(world: &World) -> (Child, Orphan) {
    working_as(world, "holder")
}

/// Starts this holder and its work.
fn working_as(world: &World, holder: &str) -> (Child, Orphan) {
    world.store();
    let mut holder = world
        .command(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", holder, "--nocapture"])
        .env(DIRECTORY, world.leases())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let said = lines.filter_map(|line| line.split_once("> ").map(|(_, said)| said.to_owned())).next();
    (holder, Orphan(Process::of(said.expect("it says which process works").parse().unwrap()).unwrap()))
}

/// Kills a holder while its work continues.
fn orphaned(world: &World) -> Orphan {
    let (mut holder, orphan) = working(world);
    holder.kill().unwrap();
    holder.wait().unwrap();
    orphan
}

/// The output of `status`, once the record has run out.
fn until_outlived(world: &World) -> Ran {
    until("run-out", PATIENCE, || {
        let status = world.ran(world.tenure(&["status", "x"]));
        status.text().contains("has run out").then_some(status)
    })
}

/// Waits until the process has printed these words.
fn until_said(started: &Started, words: &str) {
    until(words, PATIENCE, || started.err_so_far().contains(words).then_some(()));
}

#[test]
fn no_command_runs_beside_an_orphan_and_both_run_and_status_name_it() {
    let world = World::new("outlived-no-wait");
    let orphan = orphaned(&world);
    let status = until_outlived(&world);
    let process = format!("process {} (sleep 100)", orphan.0.number);
    let whose = "of former (token";
    assert_eq!(status.code, 0, "{status:?}");
    for words in ["run out: the lease of former", "its command is still alive, an orphan", &process] {
        assert!(status.text().contains(words), "{words:?} is not in {status:?}");
    }
    let ran = world.ran(world.run(&["x", "--ttl", "1s", "--no-wait", "--", "touch", "begun"]));
    said(&ran, 75, &["lease x on file:///", whose, "an orphan without a guard", &process, "--orphan-wait"]);
    assert!(!world.exists("begun"));
    let quiet = world.ran(world.run(&["x", "--ttl", "1s", "--no-wait", "-q", "--", "touch", "begun"]));
    assert_eq!((quiet.code, &*quiet.err), (75, ""));
    let limited = world.ran(world.run(&["x", "--ttl", "1s", "--wait", "1s", "--", "touch", "begun"]));
    said(&limited, 75, &[&process, "wait longer"]);
    assert!(!world.exists("begun"));
}

#[test]
fn a_waiting_run_reports_that_only_an_orphan_is_left_and_starts_once_it_has_exited() {
    let world = World::new("outlived-wait");
    let (mut holder, orphan) = working(&world);
    let waiter = world.start(world.run(&["x", "--ttl", "1s", "--", "touch", "begun"]));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let process = format!("process {} (sleep 100)", orphan.0.number);
    until_said(&waiter, &process);
    assert!(!world.exists("begun"));
    drop(orphan);
    let ran = waiter.end();
    said(&ran, 0, &["its command is still alive, an orphan"]);
    assert_eq!(ran.err.matches(&process).count(), 1, "{}", ran.err);
    assert!(world.exists("begun"));
}

#[test]
fn after_its_orphan_wait_a_run_starts_with_a_warning() {
    let world = World::new("outlived-limit");
    let orphan = orphaned(&world);
    let words = ["x", "--ttl", "1s", "--orphan-wait", "300ms", "-q", "--", "touch", "begun"];
    let ran = world.ran(world.run(&words));
    let process = format!("process {} (sleep 100)", orphan.0.number);
    said(&ran, 0, &["--orphan-wait is over", "both may act at once", &process]);
    assert!(world.exists("begun"));
}

#[test]
fn a_run_that_wants_a_slot_names_the_orphans_in_it_and_starts_beside_them_only_after_its_orphan_wait() {
    let world = World::new("outlived-slots");
    let (mut holder, orphan) = working_as(&world, "slot_holder");
    let slot = |words: &[&str]| {
        let begin = ["g", "--slots", "2", "--ttl", "1s"];
        world.run(&[&begin, words, &["--", "touch", "begun"]].concat())
    };
    let waiter = world.start(slot(&[]));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let process = format!("process {} (sleep 100)", orphan.0.number);
    let sentences = [0, 1].map(|index| format!("slot {index} of g on file://{}", world.leases().display()));
    for sentence in &sentences {
        until_said(&waiter, &format!("{sentence} of former (token"));
    }
    until_said(&waiter, &format!("an orphan without a guard: {process}. Waiting for it to end"));
    let once = world.ran(slot(&["--no-wait"]));
    let told = ["all 2 slots of g", "slot 0 by former (token", "its command is still alive", &process];
    said(&once, 75, &told);
    said(&once, 75, &[&sentences[0], &sentences[1], "kill it, wait longer", "--orphan-wait DURATION"]);
    assert!(!world.exists("begun"));

    let limited = world.ran(slot(&["--orphan-wait", "300ms", "-q"]));
    said(&limited, 0, &["--orphan-wait is over: taking over the slot, and both may act at once", &process]);
    assert!(world.exists("begun"));
    drop(orphan);
    let ran = waiter.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.err.matches(&process).count(), 2, "once for each slot: {}", ran.err);
}

#[test]
fn a_late_holder_with_a_live_command_is_distinguished_from_an_orphan() {
    let world = World::new("outlived-late");
    let (mut holder, _orphan) = working(&world);
    until_outlived(&world);
    let ran = world.ran(world.run(&["x", "--ttl", "1s", "--no-wait", "--", "touch", "begun"]));
    holder.kill().unwrap();
    holder.wait().unwrap();
    said(&ran, 75, &["under a process that guards it and does not renew the lease"]);
    assert!(!world.exists("begun"));
}

#[test]
fn a_command_that_cannot_be_stopped_is_not_revoked_and_stealing_at_once_warns_of_it() {
    let world = World::new("unstoppable");
    let former = Holder::new("former").unwrap();
    let store = world.store();
    let coordinator = block_on(Coordinator::builder().holder(former).connect(store)).unwrap();
    let lease = block_on(coordinator.lease("x").unwrap().acquire()).unwrap();
    let acting = lease.work_guard().unwrap();
    acting.cannot_stop("process 4711 (sudo) runs as another user");
    until("word of it", PATIENCE, || world.record("x")?.cannot_stop().map(|_| ()));
    let why = "its command cannot be stopped, because process 4711 (sudo) runs as another user";
    let status = world.ran(world.tenure(&["status", "x"]));
    assert!(status.text().contains(why), "{status:?}");
    for command in [&[][..], &["--", "touch", "begun"]] {
        let mut steal = world.tenure(&["steal", "x", "--reason", "drained", "--wait", "20s"]);
        steal.args(command);
        let told = ["lease x on file:///", "held by former (token", why, "not asked to release", "--now"];
        said(&world.ran(steal), 75, &told);
    }
    lease.check().expect("it was not revoked");
    assert!(!world.exists("begun"));
    let now = world.tenure(&["steal", "x", "--reason", "drained", "--now", "--", "touch", "begun"]);
    said(&world.ran(now), 0, &[why, "both may act at once"]);
    drop(acting);
    assert!(world.exists("begun"));
}
