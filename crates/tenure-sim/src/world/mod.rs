//! The simulated world: processes with their own clocks, a network, a store, witnesses, a fenced resource, and a
//! nemesis, in one thread under virtual time.
//!
//! The code under test is the production machine. The world is the driver: it carries out the machine's effects, and
//! keeps the word that user and keeper share.

mod arrivals;
mod driver;
mod event;
mod heard;
mod lease;
mod nemesis;
mod network;
mod observers;
mod outage;
mod phases;
mod process;
mod resource;
mod scripts;
mod server;
mod stubborn;
mod told;
mod witness;
mod workload;

use std::collections::HashSet;

use tenure_core::machine::{Effect, Input};

use crate::oracle::Oracle;
use crate::parts::{Agenda, Life, Slab, Store};
use crate::rng::Rng;
use crate::seed::{Bug, Seed};
use crate::swarm::{Network, Swarm};
use crate::tally::{Fault, Number, Sometimes, Tally};
use crate::time::MINUTE;
use crate::trace::Trace;
use crate::{Invariant, Outcome, liars};
use arrivals::Races;
use event::{Event, LeaseTarget};
pub(crate) use heard::AnswerWords;
use lease::Lease;
use network::Message;
use observers::SimObserver;
use outage::Outage;
use phases::Phase;
use process::Process;
use resource::Resource;
use server::Server;
use witness::{WitnessLook, Witnesses};

/// The world of one seed.
#[derive(Debug)]
pub(crate) struct World<'a> {
    seed: &'a Seed,
    swarm: Swarm,
    rng: Rng,
    /// True time, which only the oracle sees.
    now: u64,
    agenda: Agenda<Event>,
    processes: Vec<Process>,
    /// Number of boots of each machine.
    boots: Vec<u32>,
    store: Store,
    /// The server behind the store, if it may forget.
    server: Option<Server>,
    network: Network,
    messages: Slab<Message>,
    /// Pending answers, each with the generation of the store's content that it describes.
    answers: Slab<(Input, u64)>,
    looks: Slab<(tenure_core::record::Nonce, WitnessLook)>,
    witnesses: Witnesses,
    orphans: Vec<workload::Orphan>,
    /// The terms whose holders said that they cannot stop their work.
    unstoppable_terms: HashSet<tenure_core::record::Nonce>,
    resource: Resource,
    watchers: Vec<SimObserver>,
    oracle: Oracle,
    tally: Tally,
    trace: Trace,
    phase: Phase,
    storm_until: u64,
    outage: Outage,
    leases_made: u32,
    writes_applied: u64,
    grants_applied: u64,
    races: Races,
    /// Reused for every step of a machine.
    effects: Vec<Effect>,
}

impl<'a> World<'a> {
    /// The world of this seed.
    pub(crate) fn new(seed: &'a Seed) -> Self {
        let mut rng = Rng::new(seed.number);
        let swarm = Swarm::draw(&mut rng, seed.minutes, seed.focus);
        let has_floors = swarm.store.has_floors();
        Self {
            now: 0,
            agenda: Agenda::new(),
            processes: swarm.members.iter().cloned().map(Process::new).collect(),
            boots: vec![0; swarm.hosts],
            store: Store::new(
                swarm.store.clone(),
                swarm.restore_age(),
                swarm.liar || seed.bug == Bug::StoreIgnoresConditions,
            ),
            server: swarm.restarts.is_some().then(|| Server::new(swarm.longest_ttl(), seed.quarantine)),
            network: swarm.network.clone(),
            messages: Slab::new(),
            answers: Slab::new(),
            looks: Slab::new(),
            witnesses: Witnesses::default(),
            orphans: Vec::new(),
            unstoppable_terms: HashSet::new(),
            resource: Resource::new(seed.bug == Bug::NoFence),
            watchers: (0..swarm.observers).map(|_| SimObserver::new(seed.rules)).collect(),
            oracle: Oracle::new(seed.wanted, has_floors, swarm.observers),
            tally: Tally::new(),
            trace: Trace::new(seed.readable),
            phase: Phase::Faults,
            storm_until: 0,
            outage: Outage::default(),
            leases_made: 0,
            writes_applied: 0,
            grants_applied: 0,
            races: Races::default(),
            effects: Vec::new(),
            seed,
            swarm,
            rng,
        }
    }

    /// Runs the seed.
    pub(crate) fn run(mut self) -> Outcome {
        if self.connects() {
            self.begin();
            while let Some((at, event)) = self.agenda.pop() {
                debug_assert!(at >= self.now, "time goes forward");
                self.now = at;
                if !self.happens(event) {
                    break;
                }
            }
        }
        self.tally.set(Number::Nanos, self.now);
        Outcome {
            violation: self.oracle.violation().cloned(),
            tally: self.tally,
            hash: self.trace.hash(),
            config: match (self.seed.readable, self.oracle.violation()) {
                (true, _) => format!("{:#?}", self.swarm),
                (false, Some(_)) => format!("{:?}", self.swarm),
                (false, None) => String::new(),
            },
            lines: self.trace.into_lines(),
        }
    }

    /// True if the processes may use the store. The check at connect refuses a store that lies.
    fn connects(&mut self) -> bool {
        let refused = if self.swarm.liar {
            self.tally.fault(Fault::Lied);
            self.swarm.length = self.swarm.length.min(2 * MINUTE);
            liars::refuses_liar(&mut self.rng)
        } else {
            self.rng.chance(20) && liars::refuses_honest(&mut self.rng)
        };
        match (refused, self.swarm.liar) {
            (true, true) if self.seed.bug == Bug::ConnectsUnchecked => true,
            (true, true) => {
                self.tally.reached(Sometimes::LiarRefused);
                false
            }
            (true, false) => {
                self.oracle.judge(0, Invariant::S7, Err("an honest store was refused".to_owned()));
                false
            }
            (false, true) => {
                self.oracle.judge(0, Invariant::S7, Err("a lying store was not refused".to_owned()));
                false
            }
            (false, false) => true,
        }
    }

    fn begin(&mut self) {
        for member in &self.swarm.members {
            if member.rate.abs_diff(1_000_000) > u64::from(member.drift) {
                self.tally.fault(Fault::ClockBeyond);
            }
        }
        for process in 0..self.processes.len() {
            for slot in self.processes[process].slots() {
                let most = self.processes[process].member.ttl();
                let at = self.rng.skewed(0, most);
                self.start_at(process, slot, at);
            }
        }
        for observer in 0..self.watchers.len() {
            self.agenda.push(self.rng.between(0, MINUTE / 6), Event::Observe { observer: observer as u16 });
        }
        self.next_strike();
        self.next_outage();
        self.next_store_restart();
        self.agenda.push(self.swarm.length, Event::Heal);
    }

    /// Handles one event; false at the end.
    fn happens(&mut self, event: Event) -> bool {
        if let Some(process) = event.needs() {
            let process = &mut self.processes[process as usize];
            match process.state {
                Life::Running => {}
                Life::Paused => {
                    process.waiting.push(event);
                    return true;
                }
                Life::Dead => {
                    self.forget(event);
                    return true;
                }
            }
        }
        if let Event::Wake(target) = event
            && !self.is_due(target)
        {
            return true;
        }
        self.tally.count(Number::Events);
        self.trace.mix(self.now);
        self.trace.mix(event.code());
        self.trace.mix(self.rng.state());
        self.handle(event) && self.oracle.violation().is_none()
    }

    fn handle(&mut self, event: Event) -> bool {
        match event {
            Event::Wake(target) => self.step_machine(target, Input::Wake),
            Event::Request { message, copy } => self.request_arrives(message, copy),
            Event::Answer { target, call, answer } => self.answer_arrives(target, call, answer),
            Event::Unanswered { target, call } => self.call_unanswered(target, call),
            Event::Witness { target, look } => self.witness_seen(target, look),
            Event::Act(target) => self.acts(target),
            Event::Renew(target) => self.renews_by_hand(target),
            Event::Release(target) => self.releases(target),
            Event::Drained(target) => self.work_stopped(target),
            Event::CannotStop(target) => self.cannot_stop(target),
            Event::Extend(target) => self.keeper_extends(target),
            Event::Latched(target) => self.step_machine(target, Input::Latched),
            Event::Deadline(target) => self.deadline_comes(target),
            Event::Leave(target) => self.script_releases(target),
            Event::Kill(target) => self.command_killed(target),
            Event::Hint { process } => self.hinted(process as usize),
            Event::Start { process, slot, incarnation } => {
                self.starts(process as usize, slot as usize, incarnation);
            }
            Event::ResourceWrite { token } => self.resource_write_arrives(token),
            Event::Strike => self.strikes(),
            Event::Outage => self.goes_down(),
            Event::RestartStore => self.restarts_store(),
            Event::ClearRun { run } => self.clears_run(run),
            Event::Resume { process, pause } => self.resumes(process as usize, pause),
            Event::Restart { process, incarnation } => self.restarts(process as usize, incarnation),
            Event::Reconnect { process, cut } => self.reconnects(process as usize, cut),
            Event::OrphanEnds { orphan } => self.orphan_ends(orphan as usize),
            Event::Repair => self.repairs(),
            Event::Observe { observer } => self.observes(observer as usize),
            Event::Observed { observer, answer } => self.observed(observer as usize, answer),
            Event::Heal => self.heals(),
            Event::HeldAgainBy => self.held_again_by(),
            Event::Steady => self.steady_ends(),
            Event::Quiet => self.quiet(),
            Event::End => {
                self.ends();
                return false;
            }
        }
        true
    }

    /// Drops an event of a dead process, with its payload.
    fn forget(&mut self, event: Event) {
        match event {
            Event::Answer { answer, .. } => drop(self.answers.take(answer)),
            Event::Witness { look, .. } => drop(self.looks.take(look)),
            _ => {}
        }
    }

    /// The lease, if it is still in its slot.
    fn lease(&mut self, target: LeaseTarget) -> Option<&mut Lease> {
        let process = &mut self.processes[target.process as usize];
        process.leases[target.slot as usize].as_mut().filter(|lease| lease.id == target.lease)
    }

    /// Adds a line about a process to the trace.
    fn note(&mut self, process: usize, what: std::fmt::Arguments<'_>) {
        self.trace.line(self.now, format_args!("p{process}"), what);
    }
}
