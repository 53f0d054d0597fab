//! The leases under the primitives: the driver of their machines.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::machine::{
    AcquireMode, AcquireParams, Ambient, Content, Effect, Event as Told, Heed, Input, Lost, Machine,
    Patience, Purpose, Write,
};
use tenure_core::record::{Nonce, Record};
use tenure_core::{Token, machine::Denied};

use super::PrimitivesWorld;
use super::actor::{ActorRole, Notice};
use super::caller::{Caller, Engine, Tenancy};
use super::calls::LetterBody;
use super::happening::{Happening, Port};
use super::phases::Stretch;
use crate::Invariant;
use crate::oracle::Interval;
use crate::tally::{Met, Number};
use crate::time::MICRO;

impl PrimitivesWorld<'_> {
    /// Starts to acquire the lease of a key.
    pub(super) fn acquires(&mut self, actor: usize, key: usize, patience: Patience) -> Port {
        self.acquires_once_per(actor, key, patience, None)
    }

    /// Starts to acquire the lease of a key, unless its last success began less than a period ago.
    pub(super) fn acquires_once_per(
        &mut self,
        actor: usize,
        key: usize,
        patience: Patience,
        once_per: Option<Duration>,
    ) -> Port {
        let node = &self.nodes[self.actors[actor].process];
        let params = AcquireParams {
            holder: Arc::clone(&node.holder),
            timing: node.member.timing,
            store_clock: self.plan.store.clock,
            clock_tick: Duration::from_nanos(self.plan.store.tick),
            process: None,
            witness: None,
            secret_hash: None,
            value: None,
            patience,
            strict: false,
            manual: false,
            hint_pause: node.member.timing.retry(),
            heed: Heed::Ttl,
            once_per,
            mode: AcquireMode::Wait,
        };
        let machine = Machine::with_rules(params, self.seed.rules);
        let port = self.add_caller(actor, key, Engine::Lease(Box::new(Tenancy::new(machine))));
        self.note(port.process as usize, format_args!("#{} wants key {key}: {patience:?}", port.caller));
        self.step_lease(port, Input::Start);
        port
    }

    /// Gives an input to the machine of a lease, and carries out its effects.
    pub(super) fn step_lease(&mut self, port: Port, input: Input) {
        let mut effects = std::mem::take(&mut self.effects);
        let ambient = self.ambient(port.process as usize);
        let node = &mut self.nodes[port.process as usize];
        let Some(caller) = self.callers[port.caller as usize].as_deref_mut() else { return };
        let key = caller.key;
        let Some(tenancy) = caller.tenancy() else { return };
        tenancy.machine.step(&ambient, &mut node.sightings[key], input, &mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Read => self.send(port, LetterBody::Read),
                Effect::Write(write) => self.sends_write(port, write),
                Effect::SleepUntil(at) => self.caller_sleeps(port, at.as_nanos()),
                Effect::LookAtWitness { .. } => unreachable!("no record of this world names a witness"),
                Effect::Tell(told) => self.told(port, told),
            }
        }
        self.effects = effects;
        self.settle(port);
    }

    /// The world at this instant, as a process of it sees it.
    pub(super) fn ambient(&mut self, process: usize) -> Ambient {
        let (nonce, jitter) = (Nonce::from_bits(self.rng.wide()), self.rng.next() as u32);
        let node = &self.nodes[process];
        Ambient { now: node.local(self.now), wall: node.wall_time(self.now), nonce, jitter }
    }

    pub(super) fn sends_write(&mut self, port: Port, write: Write) {
        let Record { token, nonce, .. } = *write.record;
        self.note(
            port.process as usize,
            format_args!("#{} sends {:?} token {token} nonce {nonce}", port.caller, write.purpose),
        );
        self.send(port, LetterBody::Write(write));
    }

    pub(super) fn caller_sleeps(&mut self, port: Port, until: u64) {
        let Some(caller) = self.callers[port.caller as usize].as_deref_mut() else { return };
        let clock = &self.nodes[port.process as usize].clock;
        if let Some(at) = caller.timer.sleep(until, clock, self.now) {
            self.agenda.push(at, Happening::Wake(port));
        }
    }

    /// The machine of a lease has ended and no work runs under it.
    fn settle(&mut self, port: Port) {
        let Some(tenancy) = self.caller(port).and_then(|caller| caller.tenancy()) else { return };
        if tenancy.machine.is_ended() && !tenancy.acting {
            self.notices.push_back((port, Notice::Left));
        }
    }

    pub(super) fn hinted(&mut self, process: usize, key: usize) {
        for port in self.live_callers() {
            let wants = |caller: &mut Caller| caller.key == key && caller.tenancy().is_some();
            if port.process as usize == process && self.caller(port).is_some_and(wants) {
                self.step_lease(port, Input::Changed);
            }
        }
        for actor in 0..self.actors.len() {
            let it = &self.actors[actor];
            if it.process == process && matches!(it.role, ActorRole::Slot(_)) {
                self.slot_user_hinted(actor, key);
            }
        }
    }

    /// The store has applied a write.
    pub(super) fn write_applied(&mut self, key: usize, before: &Content, write: &Write) {
        if write.purpose == Purpose::Grant {
            self.tally.count(Number::Grants);
        }
        if write.purpose == Purpose::Vacate {
            self.tally.count(Number::Releases);
            self.slot_freed(key, &write.record);
        }
        let verdict = self.judges[key].applies(self.now, self.writes_applied, write);
        self.verdicts.judge(self.now, Invariant::S1, verdict);
        self.judge_job(key, before, write);
        if let Some(group) = self.plan.group_of(key).filter(|group| self.plan.size_key(*group) == key)
            && write.purpose == Purpose::Grant
        {
            let size = write.record.value.parse().ok();
            self.groups[group].resized(self.now, size);
            if self.groups[group].believers_from(self.now, size.unwrap_or(0)) > 0 {
                self.tally.met(Met::HeldBeyondSize);
            }
        }
        if write.record.is_key() {
            let [revision, owner, truth] = self.judges[key].entries.applies(self.now, before, write);
            self.verdicts.judge(self.now, Invariant::K1, revision);
            self.verdicts.judge(self.now, Invariant::K2, owner);
            self.verdicts.judge(self.now, Invariant::S5, truth);
        }
    }

    // ── reports ───────────────────────────────────────────────────────────────────────────────────────────────────

    fn told(&mut self, port: Port, told: Told) {
        self.note(port.process as usize, format_args!("#{} is told {told:?}", port.caller));
        match told {
            Told::Granted { term, token, deadline } => self.granted(port, term, token, deadline.as_nanos()),
            Told::Renewed { deadline } => self.renewed(port, deadline.as_nanos()),
            Told::Lost(why) => self.lost(port, why),
            Told::Denied(denied) => self.denied(port, denied),
            Told::AtRisk(_)
            | Told::Keeping { .. }
            | Told::Left(_)
            | Told::Outlived { .. }
            | Told::WentBack { .. } => {}
        }
    }

    fn granted(&mut self, port: Port, term: Nonce, token: Token, deadline: u64) {
        let now = self.now;
        let Some(caller) = self.callers[port.caller as usize].as_deref_mut() else { return };
        let key = caller.key;
        let judge = &mut self.judges[key];
        let applied = judge.applied(term);
        let tainted = judge.is_tainted_since(applied.map(|write| write.at));
        let Some(tenancy) = caller.tenancy() else { return };
        (tenancy.term, tenancy.deadline) = (Some(term), Some(deadline));
        (tenancy.acting, tenancy.tainted) = (true, tainted);
        if let Some(write) = applied.filter(|_| !tainted) {
            let verdict = judge.tokens.believed(write.order, token.get());
            self.verdicts.judge(now, Invariant::S1, verdict);
        }
        let process = port.process as usize;
        let end = self.nodes[process].clock.reaches(deadline);
        let belief = Interval { lease: port.caller, process, token: token.get(), end, tainted };
        let verdict = self.judges[key].beliefs.begins(now, belief);
        self.verdicts.judge(now, Invariant::S2, verdict);
        self.tally.count(Number::Terms);
        self.notices.push_back((port, Notice::Granted(token)));
    }

    fn renewed(&mut self, port: Port, deadline: u64) {
        self.tally.count(Number::Renewals);
        let now = self.now;
        let Some(caller) = self.callers[port.caller as usize].as_deref_mut() else { return };
        let key = caller.key;
        let Some(tenancy) = caller.tenancy() else { return };
        tenancy.deadline = Some(deadline);
        let tainted = tenancy.tainted;
        let end = self.nodes[port.process as usize].clock.reaches(deadline);
        if let Some(group) = self.plan.group_of(key) {
            self.groups[group].extends(port.caller, end);
        }
        let verdict = self.judges[key].beliefs.extends(now, port.caller, end, tainted);
        self.verdicts.judge(now, Invariant::S2, verdict);
    }

    fn lost(&mut self, port: Port, why: Lost) {
        let Some(caller) = self.callers[port.caller as usize].as_deref_mut() else { return };
        let key = caller.key;
        let Some(tenancy) = caller.tenancy() else { return };
        tenancy.deadline = None;
        self.judges[key].beliefs.ends(port.caller);
        if why != Lost::Released {
            self.tally.count(Number::Losses);
        }
        // The work stops within a moment.
        let at = self.now + self.rng.between(0, 100 * MICRO);
        self.agenda.push(at, Happening::Drained(port));
        self.notices.push_back((port, Notice::Lost(why)));
    }

    fn denied(&mut self, port: Port, denied: Denied) {
        self.notices.push_back((port, Notice::Denied(Box::new(denied))));
    }

    // ── acts of the user ──────────────────────────────────────────────────────────────────────────────────────────

    /// The user of a lease holds it for a while, then releases it.
    pub(super) fn holds_for_a_while(&mut self, port: Port) {
        let ttl = self.nodes[port.process as usize].member.ttl();
        let hold = match self.stretch {
            Stretch::Faults => self.rng.skewed(0, self.plan.hold_most * ttl / 100),
            Stretch::Healed | Stretch::Fair | Stretch::Quiet => self.rng.between(0, ttl / 2),
        };
        self.agenda.push(self.now + hold, Happening::Release(port));
    }

    pub(super) fn work_stopped(&mut self, port: Port) {
        let Some(tenancy) = self.caller(port).and_then(|caller| caller.tenancy()) else { return };
        tenancy.acting = false;
        self.step_lease(port, Input::Drained);
    }
}
