//! The phases after the faults: healed, held again, steady, fair, quiet.

use super::World;
use super::event::{Event, LeaseTarget};
use super::server::Server;
use crate::Invariant;
use crate::oracle::{calls_after_outage_are_few, calls_are_few};
use crate::parts::{Cut, Life};
use crate::time::{MILLI, SECOND};

/// Phase of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Faults strike.
    Faults,
    /// All faults have ended; the key must be held again soon.
    Healed,
    /// The key is held and no holder releases: the calls for L5 are counted.
    Steady,
    /// Holders release and rest: every contender must win.
    Fair,
    /// No process wants the lease any more.
    Quiet,
}

impl World<'_> {
    /// Ends all faults.
    pub(super) fn heals(&mut self) {
        self.phase = Phase::Healed;
        self.trace.line(self.now, format_args!("world"), format_args!("is healed"));
        self.storm_until = 0;
        self.outage_ends();
        self.server_heals();
        let timeout = self.swarm.members.iter().map(|member| member.timeout()).min().unwrap_or(SECOND);
        self.network.healed(timeout);
        self.repairs();
        for orphan in 0..self.orphans.len() {
            self.orphan_ends(orphan);
        }
        let killed = if self.swarm.orphaned { self.kill_holder() } else { None };
        let mut others = false;
        for process in 0..self.processes.len() {
            self.processes[process].link.cut = Cut::default();
            match self.processes[process].state {
                Life::Running => {}
                Life::Paused => {
                    let pause = self.processes[process].pause;
                    self.resumes(process, pause);
                }
                Life::Dead if killed == Some(process) => {}
                Life::Dead => {
                    let incarnation = self.processes[process].incarnation;
                    self.restarts(process, incarnation);
                }
            }
            self.stop_working(process);
            others |= self.wants_now(process, others);
        }
        for lease in self.processes.iter_mut().flat_map(|process| process.leases.iter_mut().flatten()) {
            lease.calls = 0;
        }
        self.oracle.held_again.healed(self.now, self.oracle.beliefs.any_holder_believes(self.now));
        self.agenda.push(self.now + self.held_again_within(), Event::HeldAgainBy);
    }

    /// Two ttl and one call timeout, and the quarantine of a server that may forget, on the slowest clock.
    fn held_again_within(&self) -> u64 {
        let timeout = self.swarm.members.iter().map(|member| member.timeout()).max().unwrap_or(SECOND);
        let drift = self.swarm.members.iter().map(|member| u64::from(member.drift)).max().unwrap_or(0);
        let quarantine = self.server.as_ref().map_or(0, Server::quarantine);
        let span = 2 * self.swarm.longest_ttl() + timeout + quarantine;
        span / (1_000_000 - drift) * 1_000_000 + SECOND / 10
    }

    fn kill_holder(&mut self) -> Option<usize> {
        let holder = self.oracle.beliefs.holder(self.now)?.process;
        if self.processes[holder].state != Life::Dead {
            self.note(holder, format_args!("is killed for good"));
            self.dies(holder, false);
        }
        Some(holder)
    }

    /// Stops work that still runs although its lease is lost; a script whose work has stopped releases.
    fn stop_working(&mut self, process: usize) {
        for (slot, lease) in self.processes[process].leases.iter().enumerate() {
            let Some(lease) = lease.as_ref().filter(|lease| lease.is_lost()) else { continue };
            let target = LeaseTarget { process: process as u16, slot: slot as u16, lease: lease.id };
            if lease.acting {
                self.agenda.push(self.now, Event::Drained(target));
            } else if lease.script().is_some() {
                self.agenda.push(self.now, Event::Leave(target));
            }
        }
    }

    /// Ends the rest of a process. The first stealer starts at once, the others one after another.
    fn wants_now(&mut self, process: usize, others: bool) -> bool {
        if self.processes[process].state != Life::Running {
            return false;
        }
        let ttl = self.processes[process].member.ttl();
        let stealer = self.processes[process].member.steal > 0;
        for slot in self.processes[process].slots() {
            if self.processes[process].leases[slot].is_none() {
                let wait = if stealer && others { self.rng.between(0, 2 * ttl) } else { MILLI };
                self.start_at(process, slot, self.now + wait);
            }
        }
        true
    }

    /// L1: the time limit is reached. The steady phase follows, in which calls are counted.
    pub(super) fn held_again_by(&mut self) {
        if !self.oracle.tokens.are_void() && self.swarm.promises_exclusion() {
            self.oracle.judge(self.now, Invariant::L1, self.oracle.held_again.at_the_end(self.now));
        }
        if self.swarm.promises_exclusion() {
            let (span, ttl) = (self.held_again_within(), self.swarm.shortest_ttl());
            for lease in self.processes.iter().flat_map(|process| process.leases.iter().flatten()) {
                self.oracle.judge(
                    self.now,
                    Invariant::L5,
                    calls_after_outage_are_few(lease.calls, span, ttl),
                );
            }
        }
        self.phase = Phase::Steady;
        for process in 0..self.processes.len() {
            if self.processes[process].state == Life::Dead {
                let incarnation = self.processes[process].incarnation;
                self.restarts(process, incarnation);
            }
            for lease in self.processes[process].leases.iter_mut().flatten() {
                lease.calls = 0;
            }
        }
        let span = STEADY_TTLS * self.swarm.longest_ttl();
        self.agenda.push(self.now + span, Event::Steady);
    }

    /// L5: a contender that waited for the same holder during the complete phase made few calls. Then holders release.
    pub(super) fn steady_ends(&mut self) {
        let span = STEADY_TTLS * self.swarm.longest_ttl();
        let since = self.now - span;
        let holder = self.oracle.beliefs.holder(self.now).map(|belief| (belief.lease, belief.process));
        if let Some((holder, process)) = holder.filter(|_| self.swarm.promises_exclusion()) {
            let ttl = self.processes[process].member.ttl();
            let leases = self.processes.iter().flat_map(|process| process.leases.iter().flatten());
            let waited = |since_then: u64| since_then <= since;
            let held = self.processes[process].leases.iter().flatten();
            if held.into_iter().any(|lease| lease.id == holder && waited(lease.since)) {
                let calls = leases.filter(|lease| lease.wants() && waited(lease.since));
                for calls in calls.map(|lease| lease.calls) {
                    self.oracle.judge(self.now, Invariant::L5, calls_are_few(calls, span, ttl));
                }
            }
        }
        self.phase = Phase::Fair;
        for process in 0..self.processes.len() {
            for slot in 0..self.processes[process].leases.len() {
                let Some(lease) = &self.processes[process].leases[slot] else { continue };
                let target = LeaseTarget { process: process as u16, slot: slot as u16, lease: lease.id };
                if lease.holds() {
                    self.agenda.push(self.now, Event::Release(target));
                }
            }
        }
        let fair = self.swarm.fairness * self.swarm.longest_ttl();
        self.agenda.push(self.now + fair, Event::Quiet);
    }

    pub(super) fn quiet(&mut self) {
        self.phase = Phase::Quiet;
        self.agenda.push(self.now + 5 * SECOND, Event::End);
    }

    /// The last read of every observer.
    pub(super) fn ends(&mut self) {
        self.last_look();
    }
}

/// Duration of the steady phase, in units of the longest ttl.
const STEADY_TTLS: u64 = 3;
