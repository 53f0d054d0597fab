//! The accident that fences exist for, with real processes: the holder and both of its guards are stopped in the middle of
//! its writes, a successor is granted the lease and writes, and then the former writer continues.
//!
//! The writer is this test binary, started by `tenure run`. It writes without a pause and never checks its lease, as a
//! program does that was paused after its check.

mod resource;
mod target;
mod writer;

use std::path::Path;
use std::time::Duration;

pub(crate) use resource::Resource;
use rustix::process::Signal;
use tenure_testkit::quota;
pub(crate) use writer::serve;

use crate::run_support::{PATIENCE, Process, Started, World, sleep_ms, until};

/// What the accidents of all lanes came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Accidents {
    /// Holders that were stopped and continued after their successor had written.
    pub(crate) continued: u64,
    /// Their late writes that the resource refused.
    pub(crate) refused: u64,
    /// Their late writes that the resource accepted.
    pub(crate) accepted: u64,
}

/// Lets accidents happen, on several leases at once, each with a resource of its own.
pub(crate) fn accidents(name: &str, resource: &Resource, fenced: bool) -> Accidents {
    let rounds = quota(6, 40);
    let counts: Vec<Accidents> = std::thread::scope(|scope| {
        let lanes =
            (0..LANES).map(|lane| scope.spawn(move || Lane::new(name, resource, fenced, lane).run(rounds)));
        let lanes: Vec<_> = lanes.collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect()
    });
    let total = counts.into_iter().fold(Accidents::default(), |sum, lane| Accidents {
        continued: sum.continued + lane.continued,
        refused: sum.refused + lane.refused,
        accepted: sum.accepted + lane.accepted,
    });
    eprintln!("{name}, {}: {total:?}", if fenced { "fenced" } else { "without the fence" });
    assert_eq!(total.continued, LANES * rounds);
    total
}

/// One lease and its resource.
struct Lane {
    world: World,
    /// The resource, as the writer reads it from its environment.
    address: String,
    fenced: bool,
    environment: Vec<(&'static str, &'static str)>,
    /// True if a writer that is stopped in the middle of a write excludes the others.
    excludes_inside: bool,
    holders: u64,
}

/// A command under the lease that has written.
struct Holder {
    supervisor: Started,
    watchdog: Process,
    writer: Process,
    token: u64,
}

impl Lane {
    fn new(name: &str, resource: &Resource, fenced: bool, lane: u64) -> Self {
        let world = World::new(name);
        let address = resource.address(&world.path("resource"), name, lane);
        let environment = resource.environment().to_vec();
        Self { world, address, fenced, environment, excludes_inside: resource.excludes_inside(), holders: 0 }
    }

    fn run(mut self, rounds: u64) -> Accidents {
        let mut counts = Accidents::default();
        let mut holder = self.next_holder();
        for _ in 0..rounds {
            let stopped = self.stop(holder);
            holder = self.next_holder();
            assert!(holder.token > stopped.token);
            counts.continued += 1;
            let number = self.last_begun(stopped.token);
            stopped.writer.send(Signal::CONT);
            // The write that was under way may have been made before the stop. Every later one was not.
            let late = until("late write", PATIENCE, || self.ended_after(stopped.token, number));
            match &*late {
                "stale" => counts.refused += 1,
                "ok" => counts.accepted += 1,
                other => panic!("the late write failed for another reason: {other}"),
            }
            stopped.kill();
        }
        holder.kill();
        counts
    }

    /// Starts a contender, and waits until it holds the lease and has written.
    fn next_holder(&mut self) -> Holder {
        self.holders += 1;
        let (pid, own) = (format!("pid-{}", self.holders), std::env::current_exe().unwrap());
        let mut command =
            self.world.run(&["x", "--ttl", TTL, "--kill-grace", "100ms", "--orphan-wait", "0s", "--"]);
        command.arg(own).args(["--exact", "writer", "--nocapture"]);
        command.env(writer::ADDRESS, &self.address).env(writer::LOG, self.world.path("log"));
        command.env(writer::PID, self.world.path(&pid));
        command.env(writer::FENCED, if self.fenced { "yes" } else { "no" });
        command.envs(self.environment.iter().copied());
        let supervisor = self.world.start(command);
        let writer = self.world.told_pid(&pid);
        let token = until("token", PATIENCE, || writer::token_of(&self.world.path(&format!("{pid}.token"))));
        let has_written = || {
            let wrote = self
                .lines()
                .iter()
                .filter(|line| line.starts_with(&format!("end {token} ")) && line.ends_with(" ok"))
                .count();
            (wrote >= 2).then_some(())
        };
        let wrote = tenure_testkit::wait_for(PATIENCE, Duration::from_millis(2), has_written);
        assert!(
            wrote.is_some(),
            "the new holder does not write: {:?}, {}",
            self.lines().last(),
            supervisor.err_so_far()
        );
        Holder { watchdog: supervisor.watchdog(), supervisor, writer, token }
    }

    /// Stops the holder as the pause of a machine does: the writer in the middle of its work, and both guards.
    fn stop(&self, holder: Holder) -> Holder {
        for process in [&holder.supervisor.process(), &holder.watchdog, &holder.writer] {
            stop(process);
        }
        // A writer that is stopped inside the lock of a file keeps its successor out until it continues.
        let is_inside = || {
            self.lines()
                .iter()
                .rev()
                .find(|line| line.contains(&holder.token.to_string()))
                .is_some_and(|line| line.starts_with("begin"))
        };
        while self.excludes_inside && is_inside() {
            holder.writer.send(Signal::CONT);
            sleep_ms(1);
            stop(&holder.writer);
        }
        holder
    }

    fn lines(&self) -> Vec<String> {
        self.world.lines("log")
    }

    /// Number of the latest write of this token that was begun.
    fn last_begun(&self, token: u64) -> u64 {
        let begun = format!("begin {token} ");
        let lines = self.lines();
        let last = lines.iter().rev().find_map(|line| line.strip_prefix(&begun)).expect("it has written");
        last.parse().unwrap()
    }

    /// The outcome of the first write of this token after this one.
    fn ended_after(&self, token: u64, number: u64) -> Option<String> {
        let ended = format!("end {token} {} ", number + 1);
        self.lines().iter().find_map(|line| line.strip_prefix(&ended).map(str::to_owned))
    }
}

impl Holder {
    fn kill(self) {
        for process in [&self.supervisor.process(), &self.watchdog, &self.writer] {
            process.send(Signal::KILL);
        }
        self.writer.dies_within(PATIENCE);
    }
}

fn stop(process: &Process) {
    assert!(process.send(Signal::STOP));
    until("stop", PATIENCE, || (process.state() == Some('T')).then_some(()));
}

/// Number of leases at once.
const LANES: u64 = 6;

/// Short, because each round waits for it.
const TTL: &str = "2s";

/// The address of a resource in a file.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_str().expect("the tests use plain paths").to_owned()
}
