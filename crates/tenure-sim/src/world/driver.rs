use tenure_core::Instant;
use tenure_core::machine::{Ambient, Effect, Input, Purpose, Write};
use tenure_core::record::Nonce;

use super::World;
use super::event::{Event, LeaseTarget};
use super::lease::{BeliefState, OwnWrite};
use super::network::MessageBody;
use crate::parts::TimerEntry;
use crate::tally::{Fault, Sometimes};
use crate::time::{MICRO, MILLI};

impl World<'_> {
    /// Gives an input to a machine, and carries out its effects.
    pub(super) fn step_machine(&mut self, target: LeaseTarget, input: Input) {
        let mut effects = std::mem::take(&mut self.effects);
        let (nonce, jitter) = (Nonce::from_bits(self.rng.wide()), self.rng.next() as u32);
        let process = &mut self.processes[target.process as usize];
        let now = Instant::from_nanos(process.clock.local(self.now));
        let ambient = Ambient { now, wall: process.wall_time(self.now), nonce, jitter };
        let lease = process.leases[target.slot as usize].as_mut().filter(|lease| lease.id == target.lease);
        // The machine that acquired the handle of a script ended with its command.
        if let Some(lease) = lease.filter(|lease| lease.script().is_none()) {
            lease.machine.step(&ambient, &mut process.sightings, input, &mut effects);
            if process.recognizes() {
                self.tally.reached(Sometimes::Recalled);
            }
            for effect in effects.drain(..) {
                self.carry_out(target, effect);
            }
            self.settle(target);
        }
        self.effects = effects;
    }

    fn carry_out(&mut self, target: LeaseTarget, effect: Effect) {
        match effect {
            Effect::Read => {
                if let Some(lease) = self.lease(target) {
                    lease.read = true;
                }
                self.send(target, MessageBody::Read);
            }
            Effect::Write(write) => {
                self.list_nonce(target, write.record.nonce);
                self.remember_write(target, &write);
                self.send(target, MessageBody::Write(write));
            }
            Effect::SleepUntil(at) => self.sleeps(target, at.as_nanos()),
            Effect::LookAtWitness { witness, nonce } => {
                let host = self.processes[target.process as usize].member.host;
                let seen = self.witnesses.look(&witness, nonce, host, self.boots[host]);
                let look = self.looks.insert((nonce, seen));
                let at = self.now + self.rng.between(10 * MICRO, MILLI);
                self.agenda.push(at, Event::Witness { target, look });
            }
            Effect::Tell(event) => self.told(target, event),
        }
    }

    /// Lists a nonce in the witness before its request is sent. If that fails, the request is sent all the same: an
    /// unlisted nonce is safe.
    fn list_nonce(&mut self, target: LeaseTarget, nonce: Nonce) {
        let Some(witness) = self.lease(target).and_then(|lease| lease.witness) else { return };
        if self.rng.chance(self.swarm.nemesis.unlisted) {
            self.tally.fault(Fault::Unlisted);
        } else {
            self.witnesses.list(witness, nonce);
        }
    }

    /// Stores the facts about a write that the oracle needs.
    fn remember_write(&mut self, target: LeaseTarget, write: &Write) {
        let (purpose, nonce, sent) = (write.purpose, write.record.nonce, self.now);
        let process = &mut self.processes[target.process as usize];
        let seen = process.sightings.latest().filter(|seen| seen.sent.as_nanos() > process.shown.1);
        let replaced = seen.map(|seen| seen.token().map_or(0, |token| token.get()));
        let went_back = replaced.filter(|replaced| *replaced < process.shown.0 && purpose == Purpose::Grant);
        let went_back = went_back.map(|replaced| (process.shown.0, replaced));
        let Some(lease) = process.leases[target.slot as usize].as_mut() else { return };
        lease.revoked |= purpose == Purpose::Revoke;
        if purpose == Purpose::Vacate && lease.term.is_none() && lease.command().is_none() {
            self.tally.reached(Sometimes::LearnedTooLate);
        }
        lease.sends(OwnWrite { nonce, purpose, sent, went_back, applied: None });
        let (process, id, token) = (target.process as usize, target.lease, write.record.token);
        self.note(process, format_args!("#{id} sends {purpose:?} token {token} nonce {nonce}"));
    }

    // ── sleeping and waking ───────────────────────────────────────────────────────────────────────────────────────

    /// Sets the timer of a lease.
    fn sleeps(&mut self, target: LeaseTarget, until: u64) {
        let now = self.now;
        let process = &mut self.processes[target.process as usize];
        let Some(lease) = process.leases[target.slot as usize].as_mut() else { return };
        if let Some(at) = lease.timer.sleep(until, &process.clock, now) {
            self.agenda.push(at, Event::Wake(target));
        }
    }

    /// True if the timer that fires is the one that the lease waits for. If the lease waits for a later time, sets a
    /// new timer.
    pub(super) fn is_due(&mut self, target: LeaseTarget) -> bool {
        let now = self.now;
        let process = &mut self.processes[target.process as usize];
        let lease = process.leases[target.slot as usize].as_mut().filter(|lease| lease.id == target.lease);
        let Some(lease) = lease else { return false };
        match lease.timer.fires(&process.clock, now) {
            TimerEntry::Due => true,
            TimerEntry::Later(at) => {
                self.agenda.push(at, Event::Wake(target));
                false
            }
            TimerEntry::Void => false,
        }
    }

    pub(super) fn witness_seen(&mut self, target: LeaseTarget, look: u32) {
        let (nonce, seen) = self.looks.take(look);
        let sighting = seen.sighting;
        if seen.copied {
            let copy = if sighting.same_file { Sometimes::EmptySeen } else { Sometimes::CopySeen };
            self.tally.reached(copy);
        } else if sighting.is_locked() {
            self.tally.reached(Sometimes::LockedSeen);
            if self.orphans.iter().any(|orphan| orphan.acts_under(nonce)) {
                self.tally.reached(Sometimes::OrphanActed);
            }
        }
        self.note(
            target.process as usize,
            format_args!("#{} sees witness of {nonce}: {sighting:?}", target.lease),
        );
        self.step_machine(target, Input::Witness { nonce, sighting });
    }

    // ── the word that user and keeper share ───────────────────────────────────────────────────────────────────────

    /// Checks the word, and latches it if the deadline has passed. True while the lease is held.
    pub(super) fn check(&mut self, target: LeaseTarget) -> bool {
        let now = Instant::from_nanos(self.processes[target.process as usize].clock.local(self.now));
        let Some(lease) = self.lease(target) else { return false };
        match &lease.belief_state {
            BeliefState::Wanting | BeliefState::Lost => false,
            BeliefState::Held(belief) if belief.left(|| now).is_some() => true,
            BeliefState::Held(_) => {
                lease.belief_state = BeliefState::Lost;
                self.oracle.stays_lost.lost(target.lease);
                self.note(target.process as usize, format_args!("#{} latched lost", target.lease));
                false
            }
        }
    }
}
