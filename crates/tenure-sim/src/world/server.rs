//! The server behind a store that may forget: its runs, its snapshots, and the connections of processes to it.

use std::collections::VecDeque;
use std::time::Duration;

use tenure_core::machine::{Content, Fault as CallFault, Input, Look, Outcome, Write};
use tenure_store::{
    Admission, Expect, Key, Quarantine, QuarantineRules, Reason, RunMarks, RunSighting, Version,
};

use super::World;
use super::event::{Event, LeaseTarget};
use super::network::MessageBody;
use crate::tally::Fault;

/// A server that keeps the record and the marks of the quarantine. A restart may bring back an older snapshot of both.
#[derive(Debug)]
pub(super) struct Server {
    /// Number of the present run.
    run: u32,
    /// Time on its wall clock at which that run began.
    started: u64,
    /// The true time until which it is down.
    down_until: u64,
    marks: RunMarks,
    /// Recent contents and marks, the latest at the end.
    snapshots: VecDeque<(Content, RunMarks)>,
    /// Longest ttl of a holder.
    ttl_max: Duration,
    rules: &'static dyn QuarantineRules,
}

impl Server {
    /// A server that runs for the first time, for holders with at most this ttl.
    pub(super) fn new(ttl_max: u64, rules: &'static dyn QuarantineRules) -> Self {
        Self {
            run: 1,
            started: 0,
            down_until: 0,
            marks: RunMarks::default(),
            snapshots: VecDeque::new(),
            ttl_max: Duration::from_nanos(ttl_max),
            rules,
        }
    }

    /// Number of the present run.
    pub(super) fn run(&self) -> u32 {
        self.run
    }

    /// Length of the quarantine on the clock of a participant, in nanoseconds.
    pub(super) fn quarantine(&self) -> u64 {
        self.rules.lasts(self.ttl_max).as_nanos() as u64
    }

    /// Keeps a snapshot.
    fn saves(&mut self, content: &Content) {
        if self.snapshots.len() == SNAPSHOTS_MAX {
            self.snapshots.pop_front();
        }
        self.snapshots.push_back((content.clone(), self.marks.clone()));
    }
}

impl World<'_> {
    /// The number of the server's present run; zero if the store never restarts.
    pub(super) fn present_run(&self) -> u32 {
        self.server.as_ref().map_or(0, Server::run)
    }

    // ── restarts ──────────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn next_store_restart(&mut self) {
        let Some(restarts) = &self.swarm.restarts else { return };
        let at = self.now + self.rng.between(1, 2 * restarts.every);
        if at < self.swarm.length {
            self.agenda.push(at, Event::RestartStore);
        }
    }

    /// The server restarts: with all its data, with an older snapshot, or with nothing. Every connection breaks.
    pub(super) fn restarts_store(&mut self) {
        self.next_store_restart();
        let (now, wall) = (self.now, self.store.wall(self.now));
        let (Some(server), Some(restarts)) = (&mut self.server, &self.swarm.restarts) else { return };
        self.tally.fault(Fault::StoreRestarted);
        server.run += 1;
        server.started = wall;
        server.down_until = now + self.rng.skewed(0, restarts.down_most);
        let count = server.snapshots.len();
        let back = match self.rng.below(10) {
            0 | 1 => None,
            2 | 3 => Some(0),
            _ => Some((self.rng.skewed(1, SNAPSHOTS_MAX as u64) as usize).min(count)),
        };
        let what = match back {
            None => "restarts, and has lost nothing",
            Some(0) => {
                server.snapshots.clear();
                server.marks = RunMarks::default();
                self.store.roll_back(now, Content::Absent);
                "restarts, and has lost everything"
            }
            Some(back) => {
                server.snapshots.truncate(count - back + 1);
                if let Some((content, marks)) = server.snapshots.back().cloned() {
                    server.marks = marks;
                    self.store.roll_back(now, content);
                }
                "restarts with an older snapshot"
            }
        };
        let run = server.run;
        let waits = u128::from(server.quarantine()) * 1_000_000 / u128::from(restarts.bystander) + 1;
        self.agenda.push(server.down_until + waits as u64, Event::ClearRun { run });
        self.trace.line(now, format_args!("store"), format_args!("{what}: run {run} begins"));
    }

    /// A participant that only reads has seen this run since the server is up, and marks it as cleared.
    pub(super) fn clears_run(&mut self, run: u32) {
        let Some(server) = self.server.as_mut().filter(|server| server.run == run) else { return };
        server.marks.cleared = Some(format!("run{run}").into());
        server.saves(self.store.content());
    }

    /// The server is up for good.
    pub(super) fn server_heals(&mut self) {
        if let Some(server) = &mut self.server {
            server.down_until = 0;
        }
    }

    // ── connections ───────────────────────────────────────────────────────────────────────────────────────────────

    /// Sends a call over the connection of its process, which opens another one after a restart. Returns the answer
    /// instead if nothing is sent.
    pub(super) fn over_connection(
        &mut self,
        target: LeaseTarget,
        body: MessageBody,
    ) -> Result<MessageBody, Input> {
        let process = target.process as usize;
        if self.server.is_none() {
            return Ok(body);
        }
        let Some(quarantine) = self.connected(process) else {
            let fault = CallFault::Refused(Reason::Unreachable);
            return Err(match body {
                MessageBody::Read => Input::Read(Err(fault)),
                MessageBody::Write(_) => Input::Written(Outcome::Fault(fault)),
            });
        };
        let MessageBody::Write(write) = body else { return Ok(body) };
        let now = Duration::from_nanos(self.processes[process].clock.local(self.now));
        let sent = tenure_store::Write::new("", write.expect.clone()).for_purpose(write.for_store());
        let key = Key::parse("k").expect("a short plain name");
        match quarantine.admit(&key, &sent, now) {
            Admission::Conflict => Err(Input::Written(Outcome::Conflict)),
            Admission::Wait(after) => Err(Input::Written(Outcome::Fault(CallFault::Withheld(after)))),
            Admission::Send => {
                let expect = match &write.expect {
                    Expect::Absent => Expect::Absent,
                    Expect::Version(version) => {
                        Expect::Version(Version::new(quarantine.stamp(version).unwrap_or_default()))
                    }
                };
                Ok(MessageBody::Write(Write { expect, ..write }))
            }
        }
    }

    /// The connection of a process to the present run, with the marks of this moment; `None` if there is none.
    fn connected(&mut self, process: usize) -> Option<Quarantine> {
        let clock = format!("p{process}, boot {}", self.boots[self.processes[process].member.host]);
        let uptime = self.store.wall(self.now);
        let process = &mut self.processes[process];
        let server = self.server.as_mut()?;
        let run = format!("run{}", server.run);
        let at = Duration::from_nanos(process.clock.local(self.now));
        let is_open = process.connection.as_ref().is_some_and(|open| open.run() == run);
        if !is_open {
            process.connection = None;
            if self.now < server.down_until || process.link.cut.requests {
                return None;
            }
            let uptime = Duration::from_nanos(uptime - server.started);
            let sighting = RunSighting::new(run.as_str(), clock.as_str(), at).with_uptime(uptime);
            let found = Quarantine::with_rules(server.ttl_max, &sighting, &server.marks, server.rules);
            process.connection = Some(found);
            if server.marks.run.as_deref() != Some(&run) {
                server.marks = RunMarks::of_run(run.as_str());
            }
            if server.marks.seen.iter().all(|(other, _)| **other != clock) {
                server.marks = server.marks.clone().with_sighting(clock, at);
            }
            server.saves(self.store.content());
        }
        let quarantine = process.connection.as_mut()?;
        quarantine.note(&server.marks);
        if quarantine.has_passed(at) {
            server.marks.cleared = Some(run.into());
            server.saves(self.store.content());
        }
        Some(quarantine.clone())
    }

    /// An answer of the server's present run, as its participants see it: a version names the run.
    pub(super) fn in_run(&mut self, input: Input) -> Input {
        let Some(server) = &mut self.server else { return input };
        let of_run = |version: &Version| Version::new(format!("run{}:{version}", server.run));
        match input {
            Input::Read(Ok(Look { content: Content::Record(record, version), age, time })) => {
                let content = Content::Record(record, of_run(&version));
                Input::Read(Ok(Look { content, age, time }))
            }
            Input::Written(Outcome::Applied { version, time }) => {
                let version = of_run(&version);
                server.saves(self.store.content());
                Input::Written(Outcome::Applied { version, time })
            }
            input => input,
        }
    }
}

/// Number of snapshots to keep.
const SNAPSHOTS_MAX: usize = 24;
