//! The simulated world of the primitives: elections, groups of slots, plain keys, sets of leases and jobs that
//! run once per period, and the leases under them, on many keys of one store.
//!
//! The code under test is the production lease machine and the pure machines of the primitives. The world is their
//! driver. It shares clocks, network, store and faults with the world of one key, which examines the lease itself.

mod actor;
mod caller;
mod calls;
mod campaigns;
mod entries;
mod faults;
mod happening;
mod jobs;
pub(crate) mod judges;
mod key_users;
mod leases;
mod listings;
mod node;
mod phases;
mod plan;
mod sets;
mod slots;
mod topic;
mod watchers;

use std::collections::VecDeque;

use tenure_core::machine::{Effect, Input};

use crate::Outcome;
use crate::oracle::Verdicts;
use crate::parts::{Agenda, Life, Slab, Store, TimerEntry};
use crate::rng::Rng;
use crate::seed::Seed;
use crate::swarm::Network;
use crate::tally::{Number, Tally};
use crate::time::MINUTE;
use crate::trace::Trace;
use actor::{Actor, Notice};
use caller::{Caller, Engine};
use calls::Letter;
use happening::{Happening, Port};
use judges::{GroupJudge, KeyJudge};
use node::Node;
use phases::Stretch;
use plan::Plan;
use topic::Topic;
use watchers::Watcher;

/// The world of the primitives, of one seed.
#[derive(Debug)]
pub(crate) struct PrimitivesWorld<'a> {
    seed: &'a Seed,
    plan: Plan,
    rng: Rng,
    /// True time, which only the judges see.
    now: u64,
    agenda: Agenda<Happening>,
    nodes: Vec<Node>,
    actors: Vec<Actor>,
    /// Every caller so far, by number.
    callers: Vec<Option<Box<Caller>>>,
    /// The numbers of the callers that exist, and of some that have ended.
    live: Vec<u32>,
    watchers: Vec<Watcher>,
    /// The store: one part for each key, all with the same clock.
    store: Vec<Store>,
    judges: Vec<KeyJudge>,
    /// The judges of the groups of slots.
    groups: Vec<GroupJudge>,
    /// Slots that were vacated under fair contention: key, nonce, a contender that waits, and the time.
    freed: Slab<(usize, tenure_core::record::Nonce, usize, u64)>,
    network: Network,
    letters: Slab<Letter>,
    answers: Slab<Input>,
    verdicts: Verdicts,
    tally: Tally,
    trace: Trace,
    stretch: Stretch,
    storm_until: u64,
    /// Time since which the calls of waiting contenders are counted.
    counted_since: u64,
    /// Number of applied writes of all keys.
    writes_applied: u64,
    /// Reports of machines to their actors that were not handled yet.
    notices: VecDeque<(Port, Notice)>,
    /// The terms whose holders reported a success.
    reported: Vec<tenure_core::record::Nonce>,
    /// Reused for every step of a machine.
    effects: Vec<Effect>,
}

impl<'a> PrimitivesWorld<'a> {
    /// The world of this seed.
    pub(crate) fn new(seed: &'a Seed) -> Self {
        let mut rng = Rng::new(seed.number);
        let plan = Plan::draw(&mut rng, seed.minutes, seed.focus);
        let keys = plan.keys();
        let restore_age = plan.longest_ttl();
        let store = || Store::new(plan.store.clone(), restore_age, false);
        Self {
            now: 0,
            agenda: Agenda::new(),
            nodes: plan.members.iter().cloned().map(|member| Node::new(member, keys)).collect(),
            actors: Vec::new(),
            callers: Vec::new(),
            live: Vec::new(),
            watchers: Vec::new(),
            store: (0..keys).map(|_| store()).collect(),
            judges: (0..keys).map(|_| KeyJudge::new(plan.store.has_floors())).collect(),
            groups: plan.groups.iter().map(|_| GroupJudge::default()).collect(),
            freed: Slab::new(),
            network: plan.network.clone(),
            letters: Slab::new(),
            answers: Slab::new(),
            verdicts: Verdicts::new(seed.wanted),
            tally: Tally::new(),
            trace: Trace::new(seed.readable),
            stretch: Stretch::Faults,
            storm_until: 0,
            counted_since: 0,
            writes_applied: 0,
            notices: VecDeque::new(),
            reported: Vec::new(),
            effects: Vec::new(),
            seed,
            plan,
            rng,
        }
    }

    /// Runs the seed.
    pub(crate) fn run(mut self) -> Outcome {
        self.begin();
        while let Some((at, event)) = self.agenda.pop() {
            debug_assert!(at >= self.now, "time goes forward");
            self.now = at;
            if !self.happens(event) {
                break;
            }
        }
        self.tally.set(Number::Nanos, self.now);
        Outcome {
            violation: self.verdicts.violation().cloned(),
            tally: self.tally,
            hash: self.trace.hash(),
            config: match (self.seed.readable, self.verdicts.violation()) {
                (true, _) => format!("{:#?}", self.plan),
                (false, Some(_)) => format!("{:?}", self.plan),
                (false, None) => String::new(),
            },
            lines: self.trace.into_lines(),
        }
    }

    fn begin(&mut self) {
        self.campaigners_appear();
        self.set_users_appear();
        self.key_users_appear();
        self.slot_users_appear();
        self.job_users_appear();
        self.watchers_appear();
        for actor in 0..self.actors.len() {
            let ttl = self.nodes[self.actors[actor].process].member.ttl();
            let at = self.rng.skewed(0, ttl);
            self.start_at(actor, at);
        }
        for watcher in 0..self.watchers.len() {
            let at = self.rng.between(0, MINUTE / 6);
            self.agenda.push(at, Happening::Watch { watcher: watcher as u16 });
        }
        self.next_strike();
        self.agenda.push(self.plan.length, Happening::Heal);
    }

    /// Handles one event; false at the end.
    fn happens(&mut self, event: Happening) -> bool {
        if let Some(process) = event.needs() {
            let node = &mut self.nodes[process as usize];
            match node.state {
                Life::Running => {}
                Life::Paused => {
                    node.waiting.push(event);
                    return true;
                }
                Life::Dead => {
                    self.forget(event);
                    return true;
                }
            }
        }
        if !self.is_due(event) {
            return true;
        }
        self.tally.count(Number::Events);
        self.trace.mix(self.now);
        self.trace.mix(event.code());
        self.trace.mix(self.rng.state());
        let goes_on = self.handle(event);
        while let Some((port, notice)) = self.notices.pop_front() {
            self.notified(port, notice);
        }
        goes_on && self.verdicts.violation().is_none()
    }

    /// True unless the event is a timer that was set to another time since.
    fn is_due(&mut self, event: Happening) -> bool {
        let now = self.now;
        let (process, timer) = match event {
            Happening::Wake(port) => match self.callers[port.caller as usize].as_mut() {
                Some(caller) => (port.process, &mut caller.timer),
                None => return false,
            },
            Happening::Alarm { process, actor } => (process, &mut self.actors[actor as usize].timer),
            _ => return true,
        };
        match timer.fires(&self.nodes[process as usize].clock, now) {
            TimerEntry::Due => true,
            TimerEntry::Later(at) => {
                self.agenda.push(at, event);
                false
            }
            TimerEntry::Void => false,
        }
    }

    fn handle(&mut self, event: Happening) -> bool {
        match event {
            Happening::Wake(port) => self.caller_wakes(port),
            Happening::Alarm { actor, .. } => self.actor_wakes(actor as usize),
            Happening::Request { message, copy } => self.request_arrives(message, copy),
            Happening::Answer { port, call, answer } => self.answer_arrives(port, call, answer),
            Happening::Unanswered { port, call } => self.call_unanswered(port, call),
            Happening::Release(port) => self.user_releases(port),
            Happening::Drained(port) => self.work_stopped(port),
            Happening::Start { actor, incarnation, .. } => self.starts(actor as usize, incarnation),
            Happening::ReleaseSet { actor, .. } => self.set_user_releases(actor as usize),
            Happening::CheckSet { actor, .. } => self.set_user_checks(actor as usize),
            Happening::LookAtSize { actor, .. } => self.holder_reads_size(actor as usize),
            Happening::FreedSlotBy { freed } => self.freed_slot_by(freed),
            Happening::Hint { process, key } => self.hinted(process as usize, key as usize),
            Happening::Watch { watcher } => self.watches(watcher as usize),
            Happening::Watched { watcher, answer, sent } => self.watched(watcher as usize, answer, sent),
            Happening::Strike => self.strikes(),
            Happening::Resume { process, pause } => self.resumes(process as usize, pause),
            Happening::Restart { process, incarnation } => self.restarts(process as usize, incarnation),
            Happening::Reconnect { process, cut } => self.reconnects(process as usize, cut),
            Happening::Heal => self.heals(),
            Happening::Count => self.counts_calls(),
            Happening::Settled => self.settled(),
            Happening::Quiet => self.quiet(),
            Happening::End => {
                self.ends();
                return false;
            }
        }
        true
    }

    /// Drops an event of a dead process, with its payload.
    fn forget(&mut self, event: Happening) {
        if let Happening::Answer { answer, .. } = event {
            self.answers.take(answer);
        }
    }

    /// The caller, if it still exists.
    fn caller(&mut self, port: Port) -> Option<&mut Caller> {
        self.callers[port.caller as usize].as_deref_mut()
    }

    /// Adds a caller of this actor, for this key.
    fn add_caller(&mut self, actor: usize, key: usize, engine: Engine) -> Port {
        let port = Port { process: self.actors[actor].process as u16, caller: self.callers.len() as u32 };
        self.callers.push(Some(Box::new(Caller::new(actor, key, engine))));
        self.live.push(port.caller);
        port
    }

    /// All callers that exist.
    fn live_callers(&mut self) -> Vec<Port> {
        self.live.retain(|number| self.callers[*number as usize].is_some());
        let port = |number: &u32| {
            let caller = self.callers[*number as usize].as_deref()?;
            Some(Port { process: self.actors[caller.actor].process as u16, caller: *number })
        };
        self.live.iter().filter_map(port).collect()
    }

    /// Adds a line about a process to the trace.
    fn note(&mut self, process: usize, what: std::fmt::Arguments<'_>) {
        self.trace.line(self.now, format_args!("p{process}"), what);
    }
}
