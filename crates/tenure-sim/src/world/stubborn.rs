//! Work that cannot be stopped, and trees that outlive their holders.

use std::sync::Arc;

use tenure_core::machine::{Content, Input, Purpose, Write};
use tenure_core::record::{End, Record};

use super::World;
use super::event::{Event, LeaseTarget};
use super::lease::Role;
use super::phases::Phase;
use crate::Invariant;
use crate::oracle::{leaves_alone, really_said, takes_nothing_alive};
use crate::swarm::Weather;
use crate::tally::{Fault, Sometimes};

impl World<'_> {
    /// Draws whether the work of a new term cannot be stopped, and whether its holder learns this within the first ttl.
    pub(super) fn draws_stubborn_work(&mut self, target: LeaseTarget) {
        let chance = self.swarm.work.unstoppable;
        if chance == 0 || self.phase != Phase::Faults || !self.rng.chance(chance) {
            return;
        }
        let ttl = self.processes[target.process as usize].member.ttl();
        let Some(lease) = self.lease(target).filter(|lease| matches!(lease.role, Role::Kept)) else { return };
        lease.unstoppable = true;
        self.tally.fault(Fault::Unstoppable);
        if self.rng.chance(500) {
            let at = self.now + self.rng.between(0, ttl);
            self.agenda.push(at, Event::CannotStop(target));
        }
    }

    /// Continues the work of a lost lease for a while; false if the work can be stopped. A holder that did not know this
    /// learns it soon.
    pub(super) fn stubborn_work_goes_on(&mut self, target: LeaseTarget) -> bool {
        let is_stubborn = self.lease(target).is_some_and(|lease| lease.unstoppable && lease.acting);
        if !is_stubborn || self.phase != Phase::Faults {
            return false;
        }
        let ttl = self.processes[target.process as usize].member.ttl();
        let finds_out = self.now + self.rng.between(0, ttl / 20);
        self.agenda.push(finds_out, Event::CannotStop(target));
        let ends = finds_out + self.rng.skewed(0, 3 * ttl);
        self.agenda.push(ends, Event::Drained(target));
        true
    }

    pub(super) fn cannot_stop(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target).filter(|lease| lease.acting && !lease.said_unstoppable) else {
            return;
        };
        lease.said_unstoppable = true;
        let Some((term, _)) = lease.term else { return };
        self.unstoppable_terms.insert(term);
        self.step_machine(target, Input::CannotStop("it runs as another user".into()));
    }

    /// True if no other holder may believe while the work of a lost lease runs: its holder can renew.
    pub(super) fn promises_to_keep(&self) -> bool {
        self.swarm.weather == Weather::Stubborn
    }

    /// A write as it arrives. A program that does not know the field copies it into its own write.
    pub(super) fn as_written(&mut self, target: LeaseTarget, write: &Write) -> Write {
        let mut write = write.clone();
        let Content::Record(before, _) = self.store.content() else { return write };
        let copied = before.unstoppable.clone();
        if self.processes[target.process as usize].member.old
            && write.record.unstoppable.is_none()
            && copied.is_some()
        {
            self.tally.fault(Fault::FieldCopied);
            Arc::make_mut(&mut write.record).unstoppable = copied;
        }
        write
    }

    /// Judges a write that was applied over the record of another term.
    pub(super) fn judge_patience(&mut self, target: LeaseTarget, write: &Write, before: &Record) {
        match write.purpose {
            Purpose::Revoke => {
                let is_unstoppable =
                    self.unstoppable_terms.contains(&before.term) && before.cannot_stop().is_some();
                self.oracle.judge(self.now, Invariant::S6, leaves_alone(before.term, is_unstoppable));
            }
            Purpose::Renew if self.lease(target).is_some_and(|lease| lease.is_lost()) => {
                self.tally.reached(Sometimes::Kept);
            }
            Purpose::Grant if before.is_held() => {
                let ran_out = write.record.history.last().is_some_and(|past| past.end == End::RanOut);
                if let (Some(witness), true) = (&before.witness, ran_out && self.heeds(target)) {
                    let host = self.processes[target.process as usize].member.host;
                    let seen = self.witnesses.look(witness, before.holders_nonce(), host, self.boots[host]);
                    let alive = seen.sighting.same_file && seen.sighting.tree_locked;
                    self.oracle.judge(self.now, Invariant::S6, takes_nothing_alive(before.term, alive));
                }
            }
            _ => {}
        }
    }

    /// A stealer learned that the work of a term cannot be stopped.
    pub(super) fn told_unstoppable(&mut self, record: &Record) {
        self.tally.reached(Sometimes::StealerAnswered);
        let verdict = really_said(record.term, self.unstoppable_terms.contains(&record.term));
        self.oracle.judge(self.now, Invariant::S5, verdict);
    }

    fn heeds(&self, target: LeaseTarget) -> bool {
        self.processes[target.process as usize].member.heeds
    }
}
