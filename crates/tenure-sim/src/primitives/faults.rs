//! The faults that strike from time to time.

use tenure_core::machine::{Seen, Sightings};

use super::PrimitivesWorld;
use super::happening::{Happening, Port};
use crate::parts::{Cut, Life};
use crate::swarm::Strike;
use crate::tally::Fault;
use crate::time::{MILLI, SECOND};

impl PrimitivesWorld<'_> {
    pub(super) fn next_strike(&mut self) {
        let at = self.now + self.rng.between(1, 2 * self.plan.nemesis.every);
        if at < self.plan.length {
            self.agenda.push(at, Happening::Strike);
        }
    }

    pub(super) fn strikes(&mut self) {
        self.next_strike();
        let process = self.rng.index(self.nodes.len());
        match self.plan.nemesis.choose(&mut self.rng) {
            Some(Strike::Pause) => self.pauses(process),
            Some(Strike::Crash) => self.crashes(process),
            Some(Strike::WallJump) => self.jumps(process),
            Some(Strike::Partition) => self.cuts_off(process),
            Some(Strike::Storm) => {
                self.tally.fault(Fault::Storm);
                self.storm_until = self.now + self.rng.between(SECOND, 10 * SECOND);
                self.trace.line(self.now, format_args!("store"), format_args!("a storm begins"));
            }
            Some(Strike::Delete) => self.deletes(),
            Some(Strike::StepStoreClock) => {
                self.tally.fault(Fault::StoreStepped);
                let span = self.rng.skewed(1, 30 * SECOND);
                for part in &mut self.store {
                    part.step_clock(span);
                }
                self.trace.line(self.now, format_args!("store"), format_args!("its clock steps forward"));
            }
            None
            | Some(
                Strike::Reboot | Strike::Freeze | Strike::Restore | Strike::Foreign | Strike::CopyWitness,
            ) => {}
        }
    }

    // ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────

    fn pauses(&mut self, process: usize) {
        let node = &mut self.nodes[process];
        let ttl = node.member.ttl();
        if node.state != Life::Running {
            return;
        }
        let span = self.rng.skewed(ttl / 10, (ttl * self.plan.nemesis.pause_most / 100).max(ttl / 10));
        node.state = Life::Paused;
        node.pause += 1;
        let pause = node.pause;
        self.agenda.push(self.now + span, Happening::Resume { process: process as u16, pause });
        self.tally.fault(Fault::Pause);
        self.note(process, format_args!("is paused for {} ms", span / MILLI));
    }

    pub(super) fn resumes(&mut self, process: usize, pause: u32) {
        let node = &mut self.nodes[process];
        if node.state != Life::Paused || node.pause != pause {
            return;
        }
        node.state = Life::Running;
        self.note(process, format_args!("goes on"));
        // Work may act before any timer fires.
        self.judge_sets_of(process);
        for event in std::mem::take(&mut self.nodes[process].waiting) {
            self.happens(event);
        }
    }

    fn crashes(&mut self, process: usize) {
        if self.nodes[process].state == Life::Dead {
            return;
        }
        self.tally.fault(Fault::Crash);
        self.note(process, format_args!("is killed"));
        self.dies(process);
        let (incarnation, ttl) = (self.nodes[process].incarnation, self.nodes[process].member.ttl());
        let soon = self.rng.chance(500);
        let span = if soon { self.rng.between(MILLI, SECOND) } else { self.rng.skewed(0, 3 * ttl) };
        self.agenda.push(self.now + span, Happening::Restart { process: process as u16, incarnation });
    }

    /// Kills a process. Its requests are still in flight.
    fn dies(&mut self, process: usize) {
        let node = &mut self.nodes[process];
        node.state = Life::Dead;
        node.incarnation += 1;
        for event in std::mem::take(&mut node.waiting) {
            self.forget(event);
        }
        for port in self.live_callers() {
            if port.process as usize == process {
                self.removes(port);
            }
        }
        for actor in 0..self.actors.len() {
            if self.actors[actor].process == process {
                self.actor_dies(actor);
            }
        }
    }

    /// Removes a caller, and ends its belief.
    fn removes(&mut self, port: Port) {
        if let Some(caller) = self.callers[port.caller as usize].take() {
            self.judges[caller.key].beliefs.ends(port.caller);
            if let Some(group) = self.plan.group_of(caller.key) {
                self.groups[group].ends(port.caller);
            }
        }
    }

    pub(super) fn restarts(&mut self, process: usize, incarnation: u32) {
        let node = &mut self.nodes[process];
        if node.state != Life::Dead || node.incarnation != incarnation {
            return;
        }
        node.state = Life::Running;
        node.observers = super::slots::observers(node.sightings.len());
        if !self.rng.chance(node.member.remembers) {
            for sightings in &mut node.sightings {
                // The logbook of this boot has its latest sighting.
                let recalled = sightings.latest().and_then(Seen::to_recall);
                *sightings = Sightings::default();
                if let Some(recalled) = recalled {
                    sightings.recall(recalled);
                }
            }
        }
        self.note(process, format_args!("starts again"));
        for actor in 0..self.actors.len() {
            if self.actors[actor].process == process {
                self.start_at(actor, self.now);
            }
        }
    }

    fn jumps(&mut self, process: usize) {
        self.tally.fault(Fault::WallJump);
        let span = self.rng.pick(&[60_000, 3_600_000, 315_360_000_000]);
        let span = if self.rng.chance(500) { span } else { -span };
        self.nodes[process].wall += span;
    }

    // ── the network and the store ─────────────────────────────────────────────────────────────────────────────────

    fn cuts_off(&mut self, process: usize) {
        let (cut, fault) = self.rng.pick(Cut::KINDS);
        self.tally.fault(fault);
        let everybody = self.rng.chance(200);
        let span = self.rng.skewed(SECOND, 2 * self.plan.longest_ttl());
        for number in 0..self.nodes.len() {
            if number == process || everybody {
                let link = &mut self.nodes[number].link;
                link.cut = cut;
                link.cuts += 1;
                let event = Happening::Reconnect { process: number as u16, cut: link.cuts };
                self.agenda.push(self.now + span, event);
                self.note(number, format_args!("is cut off: {cut:?}"));
            }
        }
    }

    pub(super) fn reconnects(&mut self, process: usize, cut: u32) {
        let link = &mut self.nodes[process].link;
        if link.cuts == cut {
            link.cut = Cut::default();
            self.note(process, format_args!("is connected again"));
        }
    }

    fn deletes(&mut self) {
        let key = self.rng.index(self.store.len());
        self.tally.fault(Fault::Deleted);
        self.store[key].delete(self.now);
        self.judges[key].tampered(self.now);
        if let Some(group) = self.plan.group_of(key).filter(|group| self.plan.size_key(*group) == key) {
            self.groups[group].resized(self.now, None);
        }
        if let Some((group, index)) = self.plan.slot_of(key) {
            self.groups[group].tampered(index);
        }
        for caller in self.callers.iter_mut().flatten().filter(|caller| caller.key == key) {
            if let Some(tenancy) = caller.tenancy() {
                tenancy.tainted |= tenancy.term.is_some();
            }
        }
        self.trace.line(self.now, format_args!("store"), format_args!("key {key} is deleted"));
    }
}
