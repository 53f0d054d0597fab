//! Use of the lease by processes: they want it, work under it, release it, and rest.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Instant;
use tenure_core::machine::{AcquireMode, AcquireParams, Heed, Input, Machine, Patience};
use tenure_core::record::{Nonce, State};

use super::World;
use super::event::{Event, LeaseTarget};
use super::lease::{Lease, LeaseKind, Role, Script};
use super::phases::Phase;
use super::process::Saved;
use crate::Invariant;
use crate::parts::Life;
use crate::seed::Bug;
use crate::swarm::Weather;
use crate::tally::{Number, Sometimes};
use crate::time::{MICRO, MILLI};

/// A child of a killed holder. It keeps the witness locked, and acts until the last deadline that it knows.
#[derive(Debug)]
pub(super) struct Orphan {
    pub(super) process: usize,
    pub(super) lease: u32,
    pub(super) witness: Option<u32>,
    pub(super) nonce: Nonce,
    pub(super) alive: bool,
}

impl Orphan {
    /// True if it acts under the record with this nonce.
    pub(super) fn acts_under(&self, nonce: Nonce) -> bool {
        self.alive && self.nonce == nonce
    }
}

impl World<'_> {
    // ── wanting ───────────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn start_at(&mut self, process: usize, slot: usize, at: u64) {
        let incarnation = self.processes[process].incarnation;
        self.agenda.push(at, Event::Start { process: process as u16, slot: slot as u16, incarnation });
    }

    pub(super) fn starts(&mut self, process: usize, slot: usize, incarnation: u32) {
        let it = &self.processes[process];
        if it.incarnation != incarnation || it.leases[slot].is_some() || self.phase == Phase::Quiet {
            return;
        }
        let script = it.member.script > 0 && self.rng.chance(it.member.script);
        let witness = (it.member.witness && !script).then(|| {
            let host = it.member.host;
            self.witnesses.make(host, self.boots[host], self.swarm.hosts > 1)
        });
        let params = self.params(process, witness, script);
        let kind = LeaseKind {
            manual: params.manual,
            steals: matches!(params.mode, AcquireMode::Revoke(_)),
            resumes: matches!(params.mode, AcquireMode::Resume(_)),
        };
        self.note(
            process,
            format_args!("#{} starts: {:?}, {:?}", self.leases_made + 1, params.mode, params.patience),
        );
        let role = match params.secret_hash {
            Some(secret) => Role::Script(Script { secret, handle: None, former: None }),
            None => Role::Kept,
        };
        let target = self.put_lease(process, slot, params, witness, kind, role);
        let member = &self.processes[process].member;
        if self.phase == Phase::Faults && self.rng.chance(member.impatient / 4) {
            // The caller cancels its request.
            let at = self.now + self.rng.skewed(0, member.ttl());
            self.agenda.push(at, Event::Release(target));
        }
        self.step_machine(target, Input::Start);
    }

    /// Puts a new lease into a slot. Its machine has not started yet.
    pub(super) fn put_lease(
        &mut self,
        process: usize,
        slot: usize,
        params: AcquireParams,
        witness: Option<u32>,
        kind: LeaseKind,
        role: Role,
    ) -> LeaseTarget {
        self.leases_made += 1;
        let lease = self.leases_made;
        let machine = Machine::with_rules(params, self.seed.rules);
        let made = Lease::new(lease, machine, witness, kind, role, self.now);
        self.processes[process].leases[slot] = Some(made);
        LeaseTarget { process: process as u16, slot: slot as u16, lease }
    }

    fn params(&mut self, process: usize, witness: Option<u32>, script: bool) -> AcquireParams {
        let faulty = self.phase == Phase::Faults;
        // A revocation makes every contender wait anew. So after healing it must come at once, or join another one.
        let revoked = self.store.record().is_some_and(|record| matches!(record.state, State::Revoked(_)));
        let may_steal_now = self.phase == Phase::Healed && (revoked || self.now <= self.swarm.length + MILLI);
        let it = &mut self.processes[process];
        let local = it.clock.local(self.now);
        let boot = self.boots[it.member.host];
        let usable = |saved: &mut Saved| saved.boot == boot && saved.incarnation < it.incarnation;
        // A process may resume a term only if no other process still acts under it.
        let saved = it.saved.take_if(usable).filter(|_| it.orphans == 0 && !script);
        let resumes = saved.filter(|_| self.rng.chance(it.member.resume));
        let steals = self.rng.chance(it.member.steal) && (faulty || may_steal_now);
        let impatient = faulty && self.rng.chance(it.member.impatient);
        let patience = if !impatient {
            Patience::Forever
        } else if self.rng.chance(500) {
            Patience::Once
        } else {
            Patience::Until(Instant::from_nanos(local + self.rng.between(0, 2 * it.member.ttl())))
        };
        AcquireParams {
            holder: Arc::clone(&it.holder),
            timing: it.member.timing,
            store_clock: self.swarm.store.clock,
            clock_tick: Duration::from_nanos(self.swarm.store.tick),
            process: None,
            witness: witness.map(|number| self.witnesses.named(number)),
            secret_hash: script.then(|| secret_of(self.leases_made)),
            value: None,
            patience,
            strict: faulty && self.rng.chance(it.member.strict),
            manual: self.rng.chance(it.member.manual) || script,
            hint_pause: if self.swarm.hosts > 1 { it.member.timing.retry() } else { Duration::ZERO },
            heed: if it.member.heeds { Heed::Tree { limit: None } } else { Heed::Ttl },
            once_per: None,
            mode: match resumes {
                Some(saved) => AcquireMode::Resume(saved.handle),
                None if steals => AcquireMode::Revoke("it is my turn".into()),
                None => AcquireMode::Wait,
            },
        }
    }

    pub(super) fn hinted(&mut self, process: usize) {
        for slot in 0..self.processes[process].leases.len() {
            if let Some(lease) = &self.processes[process].leases[slot] {
                let target = LeaseTarget { process: process as u16, slot: slot as u16, lease: lease.id };
                self.step_machine(target, Input::Changed);
            }
        }
    }

    // ── working ───────────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn begins_to_work(&mut self, target: LeaseTarget) {
        let ttl = self.processes[target.process as usize].member.ttl();
        let work = &self.swarm.work;
        let hold = match self.phase {
            Phase::Faults => self.rng.skewed(0, work.hold_most * ttl / 100),
            Phase::Healed | Phase::Steady | Phase::Fair | Phase::Quiet => self.rng.between(0, ttl / 2),
        };
        self.agenda.push(self.now + hold, Event::Release(target));
        self.draws_stubborn_work(target);
        let act = self.rng.skewed(0, ttl / 4);
        self.agenda.push(self.now + act, Event::Act(target));
        if self.lease(target).is_some_and(|lease| lease.kind.manual) {
            self.agenda.push(self.now + ttl / 4, Event::Renew(target));
        }
        if self.lease(target).is_some_and(|lease| matches!(lease.role, Role::Script(_))) {
            self.leaves_term_to_script(target);
        } else {
            self.save_handle(target);
        }
    }

    /// Checks the lease, and writes to the resource if it is held. A stall may happen in between.
    pub(super) fn acts(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target) else { return };
        let Some((_, token)) = lease.term.filter(|_| lease.acting) else { return };
        let was_lost = lease.is_lost();
        let held = self.check(target);
        let ttl = self.processes[target.process as usize].member.ttl();
        if held || was_lost {
            // Work that is lost and has not stopped writes, too: the fence must stop it.
            let way = self.arrival();
            let stalled = self.phase == Phase::Faults && self.rng.chance(self.swarm.work.stall);
            let stall = if stalled { self.rng.skewed(0, 3 * ttl) } else { 0 };
            self.agenda.push(way + stall, Event::ResourceWrite { token: token.get() });
        } else if self.lease(target).is_some_and(|lease| lease.script().is_some()) {
            // A script has no keeper to notify.
        } else if self.rng.chance(500) {
            // The work that latches the word notifies the keeper, or leaves it to find the latch.
            self.agenda.push(self.now, Event::Latched(target));
        }
        let next = self.rng.between(ttl / 10, (self.swarm.work.check_most * ttl / 100).max(ttl / 10));
        self.agenda.push(self.now + next, Event::Act(target));
    }

    pub(super) fn resource_write_arrives(&mut self, token: u64) {
        self.tally.count(Number::ResourceWrites);
        if self.resource.write(token) {
            let verdict = self.oracle.fence.accepted(token);
            self.oracle.judge(self.now, Invariant::S3, verdict);
        } else {
            self.tally.reached(Sometimes::StaleWriteStopped);
        }
    }

    pub(super) fn renews_by_hand(&mut self, target: LeaseTarget) {
        if !self.lease(target).is_some_and(|lease| lease.holds()) {
            return;
        }
        let ttl = self.processes[target.process as usize].member.ttl();
        let careless = self.phase == Phase::Faults && self.swarm.weather != Weather::Calm;
        let most = if careless { ttl } else { ttl / 3 };
        let next = self.rng.between(ttl / 5, most);
        self.agenda.push(self.now + next, Event::Renew(target));
        if self.lease(target).is_some_and(|lease| lease.script().is_some()) {
            self.script_renews(target);
        } else {
            self.step_machine(target, Input::Renew);
        }
    }

    /// Saves the handle that a restart needs to resume the term. It does so not every time, so that some handles are
    /// stale.
    pub(super) fn save_handle(&mut self, target: LeaseTarget) {
        let process = &mut self.processes[target.process as usize];
        if process.member.resume == 0 || !self.rng.chance(700) {
            return;
        }
        let handle = process.leases[target.slot as usize].as_ref().and_then(|lease| lease.machine.term_ref());
        if let Some(handle) = handle {
            let boot = self.boots[process.member.host];
            process.saved = Some(Saved { handle, boot, incarnation: process.incarnation });
        }
    }

    // ── releasing ─────────────────────────────────────────────────────────────────────────────────────────────────

    pub(super) fn releases(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target) else { return };
        let (held, script) = (lease.term.is_some(), lease.script().is_some());
        if held && matches!(self.phase, Phase::Healed | Phase::Steady | Phase::Quiet) {
            return;
        }
        if script {
            self.script_stops(target);
        } else {
            self.step_machine(target, Input::Release);
        }
    }

    /// Tells the work to stop. It stops at once or late.
    pub(super) fn stops_work(&mut self, target: LeaseTarget) {
        if self.stubborn_work_goes_on(target) {
            return;
        }
        let ttl = self.processes[target.process as usize].member.ttl();
        let work = &self.swarm.work;
        let slow = self.phase == Phase::Faults && self.rng.chance(work.slow_stop);
        let most = if slow { work.stop_most * ttl / 100 } else { 100 * MICRO };
        let at = self.now + self.rng.between(0, most);
        self.agenda.push(at, Event::Drained(target));
    }

    pub(super) fn work_stopped(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target) else { return };
        let acted = std::mem::replace(&mut lease.acting, false);
        if lease.unstoppable && lease.is_lost() {
            self.oracle.beliefs.ends(target.lease);
        }
        let Some(lease) = self.lease(target) else { return };
        if lease.script().is_none() {
            self.step_machine(target, Input::Drained);
        } else if acted {
            self.script_stopped(target);
        }
    }

    /// Removes a lease whose machine has ended and whose work has stopped, and rests.
    pub(super) fn settle(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target) else { return };
        if lease.command().is_some() {
            return self.command_settles(target);
        }
        if !lease.machine.is_ended() || lease.acting {
            return;
        }
        let (witness, stuck) = (lease.witness, lease.stuck);
        let resumed = lease.kind.resumes && lease.term.is_none();
        if let Some(witness) = witness {
            self.witnesses.unlock(witness);
            if self.rng.chance(500) {
                self.witnesses.remove(witness);
            }
        }
        self.rests(target, resumed, stuck);
    }

    /// Removes a lease, and wants another one after a while.
    pub(super) fn rests(&mut self, target: LeaseTarget, resumed: bool, stuck: bool) {
        let (process, slot) = (target.process as usize, target.slot as usize);
        self.processes[process].leases[slot] = None;
        let ttl = self.processes[process].member.ttl();
        let rest = match self.phase {
            _ if resumed => MILLI,
            // Trying again at once does not help: an operator must inspect the record.
            _ if stuck => self.rng.between(ttl, 10 * ttl),
            _ if self.seed.bug == Bug::NeverRests => 0,
            Phase::Faults => self.rng.between(MILLI, (self.swarm.work.rest_most * ttl / 100).max(MILLI)),
            Phase::Healed | Phase::Steady => MILLI,
            Phase::Fair | Phase::Quiet => self.rng.between(0, 2 * ttl),
        };
        self.start_at(process, slot, self.now + rest);
    }

    // ── dying ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /// Kills a process. Its requests are still in flight.
    pub(super) fn dies(&mut self, process: usize, orphans: bool) {
        self.processes[process].state = Life::Dead;
        self.processes[process].incarnation += 1;
        for event in std::mem::take(&mut self.processes[process].waiting) {
            self.forget(event);
        }
        for slot in 0..self.processes[process].leases.len() {
            let Some(lease) = self.processes[process].leases[slot].take() else { continue };
            let believes = self.oracle.beliefs.of(self.now, lease.id);
            if believes && lease.acting && orphans && self.rng.chance(self.swarm.nemesis.orphans) {
                self.leaves_orphan(process, &lease);
                continue;
            }
            self.oracle.beliefs.ends(lease.id);
            if let Some(witness) = lease.witness {
                self.witnesses.unlock(witness);
            }
        }
    }

    fn leaves_orphan(&mut self, process: usize, lease: &Lease) {
        self.tally.fault(crate::tally::Fault::Orphan);
        if let Some(witness) = lease.witness {
            self.witnesses.guards_die(witness);
        }
        let ttl = self.processes[process].member.ttl();
        let orphan =
            Orphan { process, lease: lease.id, witness: lease.witness, nonce: lease.confirmed, alive: true };
        let number = self.orphans.len() as u32;
        self.orphans.push(orphan);
        self.processes[process].orphans += 1;
        if let Some((_, token)) = lease.term {
            let at = self.now + self.rng.between(0, ttl);
            self.agenda.push(at, Event::ResourceWrite { token: token.get() });
        }
        let ends = self.now + self.rng.skewed(0, 3 * ttl);
        self.agenda.push(ends, Event::OrphanEnds { orphan: number });
    }

    pub(super) fn orphan_ends(&mut self, number: usize) {
        let orphan = &mut self.orphans[number];
        if !std::mem::replace(&mut orphan.alive, false) {
            return;
        }
        let (process, lease, witness) = (orphan.process, orphan.lease, orphan.witness);
        self.oracle.beliefs.ends(lease);
        self.processes[process].orphans -= 1;
        if let Some(witness) = witness {
            self.witnesses.unlock(witness);
        }
    }
}

/// The hash of a secret that no other lease has.
fn secret_of(lease: u32) -> [u8; 32] {
    let mut hash = [0; 32];
    hash[..4].copy_from_slice(&lease.to_be_bytes());
    hash
}
