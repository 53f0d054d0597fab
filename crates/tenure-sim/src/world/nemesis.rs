//! The faults that strike from time to time.

use tenure_core::machine::{Recalled, Seen, Sightings};

use super::World;
use super::event::Event;
use crate::parts::{Clock, Cut, Life, Link};
use crate::swarm::{Strike, Weather};
use crate::tally::Fault;
use crate::time::{MILLI, MINUTE, SECOND};

impl World<'_> {
    pub(super) fn next_strike(&mut self) {
        let every = self.swarm.nemesis.every;
        let at = self.now + self.rng.between(1, 2 * every);
        if at < self.swarm.length {
            self.agenda.push(at, Event::Strike);
        }
    }

    pub(super) fn strikes(&mut self) {
        self.next_strike();
        let process = self.victim();
        match self.swarm.nemesis.choose(&mut self.rng) {
            None => {}
            Some(Strike::Pause) => self.pauses(process),
            Some(Strike::Crash) => self.crashes(process),
            Some(Strike::Reboot) => self.reboots(),
            Some(Strike::WallJump) => self.jumps(process),
            Some(Strike::Freeze) => self.freezes(process),
            Some(Strike::Partition) => self.cuts_off(process),
            Some(Strike::Storm) => {
                self.tally.fault(Fault::Storm);
                self.storm_until = self.now + self.rng.between(SECOND, 10 * SECOND);
                self.trace.line(self.now, format_args!("store"), format_args!("a storm begins"));
            }
            Some(Strike::Delete) => self.deletes(),
            Some(Strike::Restore) => self.restores(),
            Some(Strike::Foreign) => self.defaces(),
            Some(Strike::StepStoreClock) => {
                self.tally.fault(Fault::StoreStepped);
                let span = self.rng.skewed(1, 30 * SECOND);
                self.store.step_clock(span);
                self.trace.line(self.now, format_args!("store"), format_args!("its clock steps forward"));
            }
            Some(Strike::CopyWitness) => self.copies_witness(process),
        }
    }

    /// The process to strike: often the holder of the key.
    fn victim(&mut self) -> usize {
        let any = self.rng.index(self.processes.len());
        match self.oracle.beliefs.holder(self.now) {
            Some(belief) if self.rng.chance(600) => belief.process,
            _ => any,
        }
    }

    // ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────

    fn pauses(&mut self, process: usize) {
        let now = self.now;
        let aim = self.aim(process);
        let (apart, most) = (self.swarm.nemesis.pause_apart, self.swarm.nemesis.pause_most);
        let it = &mut self.processes[process];
        let ttl = it.member.ttl();
        if it.state != Life::Running || (apart > 0 && now < it.paused_at + apart * ttl) {
            return;
        }
        let span = match aim {
            Some(at) if apart == 0 && at > now && at < now + 10 * ttl => at - now,
            _ => self.rng.skewed(ttl / 10, (ttl * most / 100).max(ttl / 10)),
        };
        self.pause_for(process, span);
        self.tally.fault(Fault::Pause);
        self.note(process, format_args!("is paused for {} ms", span / MILLI));
    }

    fn pause_for(&mut self, process: usize, span: u64) {
        let now = self.now;
        let it = &mut self.processes[process];
        it.state = Life::Paused;
        it.pause += 1;
        it.paused_at = now;
        let pause = it.pause;
        self.agenda.push(now + span, Event::Resume { process: process as u16, pause });
    }

    /// Sometimes returns an end for the pause: the instant at which another contender is about to take over.
    fn aim(&mut self, process: usize) -> Option<u64> {
        if !self.rng.chance(250) {
            return None;
        }
        let other = self.rng.index(self.processes.len());
        let it = &self.processes[other];
        let lease = it.leases[0].as_ref().filter(|_| other != process)?;
        let wake = it.clock.reaches(lease.timer.until()?);
        let ttl = it.member.ttl();
        // At its next read, or one ttl after it, when the version that it saw has run out.
        let at = if self.rng.chance(500) { wake } else { wake + ttl };
        Some(at + self.rng.below(4 * MILLI))
    }

    pub(super) fn resumes(&mut self, process: usize, pause: u32) {
        let it = &mut self.processes[process];
        if it.state != Life::Paused || it.pause != pause {
            return;
        }
        it.state = Life::Running;
        self.note(process, format_args!("goes on"));
        for event in std::mem::take(&mut self.processes[process].waiting) {
            self.happens(event);
        }
    }

    fn crashes(&mut self, process: usize) {
        if self.processes[process].state == Life::Dead {
            return;
        }
        self.tally.fault(Fault::Crash);
        self.note(process, format_args!("is killed"));
        self.dies(process, true);
        self.comes_back(process);
    }

    fn comes_back(&mut self, process: usize) {
        let it = &self.processes[process];
        let (incarnation, ttl) = (it.incarnation, it.member.ttl());
        let span =
            if self.rng.chance(500) { self.rng.between(MILLI, SECOND) } else { self.rng.skewed(0, 3 * ttl) };
        self.agenda.push(self.now + span, Event::Restart { process: process as u16, incarnation });
    }

    pub(super) fn restarts(&mut self, process: usize, incarnation: u32) {
        let it = &mut self.processes[process];
        if it.state != Life::Dead || it.incarnation != incarnation {
            return;
        }
        it.state = Life::Running;
        it.connection = None;
        if !self.rng.chance(it.member.remembers) {
            // The logbook of this boot has its latest sighting.
            let recalled = it.sightings.latest().and_then(Seen::to_recall);
            self.forgets(process);
            self.recalls(process, recalled);
        }
        self.note(process, format_args!("starts again"));
        for slot in self.processes[process].slots() {
            self.start_at(process, slot, self.now);
        }
    }

    fn forgets(&mut self, process: usize) {
        let it = &mut self.processes[process];
        it.sightings = Sightings::default();
        it.shown = (0, 0);
        it.recalled = None;
    }

    fn recalls(&mut self, process: usize, recalled: Option<Recalled>) {
        let it = &mut self.processes[process];
        it.recalled.clone_from(&recalled);
        if let Some(recalled) = recalled {
            it.sightings.recall(recalled);
        }
    }

    /// Kills every process on one machine, and restarts its clock.
    fn reboots(&mut self) {
        let host = self.rng.index(self.swarm.hosts);
        self.tally.fault(Fault::Reboot);
        self.trace.line(self.now, format_args!("host {host}"), format_args!("is rebooted"));
        self.boots[host] += 1;
        for process in 0..self.processes.len() {
            if self.processes[process].member.host != host {
                continue;
            }
            if self.processes[process].state != Life::Dead {
                self.dies(process, false);
                self.comes_back(process);
            }
            for orphan in 0..self.orphans.len() {
                if self.orphans[orphan].process == process {
                    self.orphan_ends(orphan);
                }
            }
            self.forgets(process);
            let base = self.rng.between(SECOND, MINUTE);
            let it = &mut self.processes[process];
            it.clock = Clock::new(self.now, base, it.member.rate);
        }
    }

    fn jumps(&mut self, process: usize) {
        self.tally.fault(Fault::WallJump);
        let span = self.rng.pick(&[60_000, 3_600_000, 315_360_000_000]);
        let span = if self.rng.chance(500) { span } else { -span };
        self.processes[process].wall += span;
        self.note(process, format_args!("wall clock jumps by {span} ms"));
    }

    /// Suspends a machine together with its clock: outside the promise of S2.
    fn freezes(&mut self, process: usize) {
        if self.swarm.weather != Weather::BrokenClocks || self.processes[process].state != Life::Running {
            return;
        }
        self.tally.fault(Fault::ClockFrozen);
        let span = self.rng.between(1_000, 20_000) * MILLI;
        let now = self.now;
        self.processes[process].clock.freeze(now, span);
        self.pause_for(process, span);
    }

    // ── the network ───────────────────────────────────────────────────────────────────────────────────────────────

    fn cuts_off(&mut self, process: usize) {
        let (cut, fault) = self.rng.pick(Cut::KINDS);
        self.tally.fault(fault);
        let everybody = self.rng.chance(200);
        let span = self.rng.skewed(SECOND, 2 * self.swarm.longest_ttl());
        for number in 0..self.processes.len() {
            if number == process || everybody {
                let link: &mut Link = &mut self.processes[number].link;
                link.cut = cut;
                link.cuts += 1;
                let event = Event::Reconnect { process: number as u16, cut: link.cuts };
                self.agenda.push(self.now + span, event);
                self.note(number, format_args!("is cut off: {cut:?}"));
            }
        }
    }

    pub(super) fn reconnects(&mut self, process: usize, cut: u32) {
        let link = &mut self.processes[process].link;
        if link.cuts == cut {
            link.cut = Cut::default();
            self.note(process, format_args!("is connected again"));
        }
    }

    // ── the record ────────────────────────────────────────────────────────────────────────────────────────────────

    fn deletes(&mut self) {
        self.tally.fault(Fault::Deleted);
        self.store.delete(self.now);
        self.tampered("the record is deleted");
    }

    fn restores(&mut self) {
        let age = self.swarm.restore_age();
        if self.may_bring_back()
            && self.now > age
            && self.store.restore(self.now, self.now - age, &mut self.rng)
        {
            self.tally.fault(Fault::Restored);
            self.tampered("the record is restored from an older copy");
        }
    }

    /// True if a record from before may be there again. Within a tick after a grant this is outside the promise, because
    /// the store's clock is not yet beyond the token of that grant.
    pub(super) fn may_bring_back(&self) -> bool {
        self.store.clock_is_beyond(self.now, self.oracle.tokens.greatest_applied())
    }

    fn defaces(&mut self) {
        self.tally.fault(Fault::Foreign);
        self.store.deface(self.now);
        self.tampered("the record is replaced by foreign bytes");
        let span = self.rng.between(SECOND, 30 * SECOND);
        self.agenda.push(self.now + span, Event::Repair);
    }

    /// An operator removes foreign bytes.
    pub(super) fn repairs(&mut self) {
        if matches!(self.store.content(), tenure_core::machine::Content::Foreign { .. }) {
            self.store.delete(self.now);
            self.tampered("the foreign bytes are removed");
        }
    }

    /// The record changed in a way that the protocol does not know: terms that had begun are no longer promised
    /// anything.
    pub(super) fn tampered(&mut self, what: &str) {
        self.oracle.tampered(self.now);
        let leases = self.processes.iter_mut().flat_map(|process| process.leases.iter_mut().flatten());
        for lease in leases.filter(|lease| lease.term.is_some()) {
            lease.tainted = true;
        }
        self.trace.line(self.now, format_args!("store"), format_args!("{what}"));
    }

    fn copies_witness(&mut self, process: usize) {
        let lease = self.processes[process].leases[0].as_ref();
        let Some(witness) = lease.and_then(|lease| lease.witness) else { return };
        let host = self.rng.index(self.swarm.hosts);
        let image = self.rng.chance(500);
        if self.witnesses.copy(witness, host, image) {
            self.tally.fault(if image { Fault::WitnessEmpty } else { Fault::WitnessCopied });
            self.note(process, format_args!("witness w{witness} appears on host {host}, image: {image}"));
        }
    }
}
