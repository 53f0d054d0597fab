//! Witnesses of leases in a bucket. On its own machine, a holder without any live process is replaced at once, and a
//! holder with a live process is not.
#![expect(clippy::disallowed_methods, reason = "the tests measure how long other processes take")]

mod run_support;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use run_support::{PATIENCE, Process, Started, World, sleep_ms};
use rustix::process::Signal;
use tenure_testkit::{Kind, Server};

/// Long, so that a contender that gets the lease sooner did not wait for it to run out.
const TTL: &str = "60s";

/// Far less than the ttl, and enough for a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(15);

struct Place {
    world: World,
    server: &'static Server,
    url: String,
}

impl Place {
    fn on_minio(bucket: &str) -> Option<Self> {
        let server = Server::shared(Kind::Minio)?;
        server.create_bucket(bucket);
        let url = format!("s3://{bucket}/locks?endpoint={}", server.endpoint());
        Some(Self { world: World::new(bucket), server, url })
    }

    fn run(&self, words: &[&str]) -> Command {
        let mut command = self.world.run(words);
        command.envs(self.server.environment()).env("TENURE_STORE", &self.url);
        command
    }

    /// Starts a holder, and returns once its command runs.
    fn holder(&self, ttl: &str) -> (Started, Process) {
        let words = ["x", "--ttl", ttl, "--", "sh", "-c", "echo $$ > pid; while :; do sleep 0.02; done"];
        let started = self.world.start(self.run(&words));
        (started, self.world.told_pid("pid"))
    }

    /// Number of witnesses in the directory of this world.
    fn witnesses(&self) -> usize {
        fs::read_dir(self.world.path("tenure")).map_or(0, Iterator::count)
    }
}

/// Kills supervisor, watchdog and child with `kill -9`.
fn kill_tree(started: Started, child: &Process) {
    let watchdog = started.watchdog();
    for process in [&watchdog, &started.process(), child] {
        process.send(Signal::KILL);
    }
    watchdog.dies_within(PATIENCE);
    child.dies_within(PATIENCE);
    drop(started);
}

#[test]
fn a_run_that_crashed_is_replaced_on_its_machine_long_before_its_ttl_is_over() {
    let Some(place) = Place::on_minio("witness-crash") else { return };
    let (started, child) = place.holder(TTL);
    assert_eq!(place.witnesses(), 1);
    kill_tree(started, &child);
    let began = Instant::now();
    let ran = place.world.ran(place.run(&["x", "--ttl", TTL, "--", "true"]));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(place.witnesses(), 0, "the successor removes what the dead one left");
    let mut history = place.world.tenure(&["history", "x", "--json"]);
    history.envs(place.server.environment()).env("TENURE_STORE", &place.url);
    let history = place.world.ran(history);
    assert!(history.text().contains("died"), "{history:?}");
    place.world.is_empty_soon();
}

#[test]
fn a_waiter_notices_the_death_of_the_holder_before_its_next_poll() {
    let Some(place) = Place::on_minio("witness-waiter") else { return };
    // The next poll would be a third of this away.
    let (started, child) = place.holder("10m");
    let words = ["x", "--ttl", "10m", "--", "sh", "-c", "echo $TENURE_TOKEN > begun"];
    let waiter = place.world.start(place.run(&words));
    waiter.watchdog();
    sleep_ms(1_000);
    assert!(!place.world.exists("begun"));
    kill_tree(started, &child);
    assert_eq!(waiter.end_within(PATIENCE).code, 0);
    assert!(place.world.exists("begun"));
}

#[test]
fn a_stopped_run_does_not_count_as_dead_but_a_run_without_guards_does() {
    let Some(place) = Place::on_minio("witness-stopped") else { return };
    let (started, child) = place.holder(TTL);
    let no_wait = || place.world.ran(place.run(&["x", "--ttl", TTL, "--no-wait", "--", "true"])).code;
    let (supervisor, watchdog) = (started.process(), started.watchdog());
    for process in [&watchdog, &supervisor, &child] {
        process.send(Signal::STOP);
    }
    assert_eq!(no_wait(), 75);
    // The child dies with its guards, although it is stopped.
    supervisor.send(Signal::KILL);
    watchdog.send(Signal::KILL);
    watchdog.dies_within(PATIENCE);
    child.dies_within(PATIENCE);
    drop(started);
    assert_eq!(no_wait(), 0);
}

/// Cleaners of temporary directories delete files that have been there for days.
#[test]
fn a_waiter_whose_witness_was_deleted_still_runs_its_command() {
    let Some(place) = Place::on_minio("witness-cleaned") else { return };
    let (started, _child) = place.holder(TTL);
    let words = ["x", "--ttl", TTL, "--", "sh", "-c", "ls tenure > seen"];
    let waiter = place.world.start(place.run(&words));
    waiter.watchdog();
    eventually_two(&place);
    fs::remove_dir_all(place.world.path("tenure")).unwrap();
    started.process().send(Signal::TERM);
    let ended = waiter.end_within(PATIENCE);
    assert_eq!(ended.code, 0, "{ended:?}");
    let seen = fs::read_to_string(place.world.path("seen")).unwrap();
    assert_eq!(seen.lines().count(), 1, "it has a new witness: {seen:?}");
}

fn eventually_two(place: &Place) {
    let began = Instant::now();
    while place.witnesses() != 2 {
        assert!(began.elapsed() < PATIENCE, "the waiter has no witness");
        sleep_ms(20);
    }
    // A contender that does not get the lease at once closes its first witness, and waits with another.
    sleep_ms(1_000);
}

/// In a container with its own directory, for example, or as another user.
#[test]
fn a_waiter_with_another_witness_directory_waits_until_the_lease_runs_out() {
    let Some(place) = Place::on_minio("witness-elsewhere") else { return };
    let ttl = "5s";
    let (started, child) = place.holder(ttl);
    kill_tree(started, &child);
    let elsewhere = place.world.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut no_wait = place.run(&["x", "--ttl", ttl, "--no-wait", "--", "true"]);
    no_wait.env("XDG_RUNTIME_DIR", &elsewhere);
    assert_eq!(place.world.ran(no_wait).code, 75);
    let mut waiter = place.run(&["x", "--ttl", ttl, "--", "true"]);
    waiter.env("XDG_RUNTIME_DIR", &elsewhere);
    let ran = place.world.ran(waiter);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.took > Duration::from_secs(2), "{:?}", ran.took);
}

#[test]
fn status_creates_no_directory_and_a_released_lease_leaves_no_file() {
    let Some(place) = Place::on_minio("witness-files") else { return };
    let mut status = place.world.tenure(&["status", "x"]);
    status.envs(place.server.environment()).env("TENURE_STORE", &place.url);
    assert_eq!(place.world.ran(status).code, 1);
    assert!(!place.world.exists("tenure"));
    assert_eq!(place.world.ran(place.run(&["x", "--", "true"])).code, 0);
    assert!(place.world.exists("tenure") && place.witnesses() == 0);
}

#[test]
fn the_lease_is_granted_without_a_witness_if_there_is_no_place_for_one() {
    let Some(place) = Place::on_minio("witness-none") else { return };
    // All of these places are read-only in there.
    let script = "for place in /run /tmp /dev/shm; do mount --rbind $place $place && mount -o remount,bind,ro $place || exit 9; \
                  done; exec \"$@\"";
    let enclosed = |words: &[&str]| {
        let mut command = place.world.command("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).args(words);
        command.envs(place.server.environment()).env("TENURE_STORE", &place.url);
        command.env("XDG_RUNTIME_DIR", "/proc");
        place.world.ran(command)
    };
    if enclosed(&["true"]).code != 0 {
        return run_support::skipped("no user and mount namespaces here");
    }
    let ran = enclosed(&[run_support::TENURE, "run", "x", "--", "echo", "hi"]);
    assert_eq!((ran.code, ran.text(), &*ran.troubles()), (0, "hi\n", ""));
}
