//! Scripts: terms that no process keeps. A script has a handle, believes until its deadline, and runs short-lived
//! commands to renew and to release it.
//!
//! The script is careless, as many scripts are: it ignores commands that fail. It acts until the deadline of its latest
//! handle, whatever happens to the commands that renew the handle.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Instant;
use tenure_core::machine::{AcquireMode, AcquireParams, Denied, Heed, Input, Left, Lost, Patience, TermRef};
use tenure_core::record::Record;

use super::World;
use super::event::{Event, LeaseTarget};
use super::lease::{BeliefState, LeaseKind, Role, ScriptCommand};
use super::phases::Phase;
use crate::Invariant;
use crate::swarm::Weather;
use crate::tally::{Number, Sometimes};
use crate::time::SECOND;

impl World<'_> {
    // ── holding ───────────────────────────────────────────────────────────────────────────────────────────────────

    /// The command that was granted ends, and leaves the handle to its script.
    pub(super) fn leaves_term_to_script(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target) else { return };
        let handle = lease.machine.term_ref();
        if let Role::Script(script) = &mut lease.role {
            script.handle = handle;
        }
        self.awaits_deadline(target);
    }

    fn awaits_deadline(&mut self, target: LeaseTarget) {
        let Some(deadline) = self.lease(target).map(|lease| lease.deadline) else { return };
        let at = self.processes[target.process as usize].clock.reaches(deadline);
        self.agenda.push(at.max(self.now), Event::Deadline(target));
    }

    /// A script that finds its deadline passed stops its work, at once or late.
    pub(super) fn deadline_comes(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target).filter(|lease| lease.acting) else { return };
        let held = lease.holds();
        if self.check(target) {
            return;
        }
        if held {
            self.tally.count(Number::Losses);
        }
        if held && self.swarm.weather == Weather::Calm {
            let sentence = format!("the script of p{} could not renew its handle in time", target.process);
            self.oracle.judge(self.now, Invariant::L4, Err(sentence));
        }
        self.stops_work(target);
    }

    /// Runs a command that renews the handle, and sometimes a second one, with a copy of the handle or with one that is
    /// used up.
    pub(super) fn script_renews(&mut self, target: LeaseTarget) {
        let Some((script, handle)) = self.lease(target).and_then(|lease| lease.script()) else { return };
        let (handle, former) = (handle.clone(), script.former.clone());
        let faulty = self.phase == Phase::Faults;
        if !faulty && self.is_renewing(target) {
            return;
        }
        self.run_command(target, handle.clone(), AcquireMode::Resume, false);
        if !faulty || !self.rng.chance(self.swarm.scripts.copied) {
            return;
        }
        match former {
            Some(former) if self.rng.chance(500) => {
                let mode = if self.rng.chance(300) { AcquireMode::Leave } else { AcquireMode::Resume };
                self.run_command(target, former, mode, true);
            }
            _ => self.run_command(target, handle, AcquireMode::Resume, true),
        }
    }

    /// True if a command of the script is running.
    fn is_renewing(&self, target: LeaseTarget) -> bool {
        let mut leases = self.processes[target.process as usize].leases.iter().flatten();
        leases.any(|lease| lease.command().is_some_and(|command| command.script == target))
    }

    /// A command learned that the term continues, and gives the next handle to its script.
    pub(super) fn script_renewed(&mut self, target: LeaseTarget) {
        let own = self.confirmed(target, "granted");
        let (now, tampered_at) = (self.now, self.oracle.tampered_at);
        let Some(lease) = self.lease(target) else { return };
        let (Some(handle), Some(command)) = (lease.machine.term_ref(), lease.command().cloned()) else {
            return;
        };
        let process = target.process as usize;
        let local = self.processes[process].clock.local(now);
        let verdict = self.oracle.stays_lost.goes_on(target.lease, local, command.handle.deadline.as_nanos());
        self.oracle.judge(now, Invariant::S6, verdict);
        let tainted = own.is_some_and(|own| tampered_at.is_some_and(|at| at >= own.sent));
        let deadline = handle.deadline;
        let Some(lease) = self.lease(command.script) else { return };
        let extended = matches!(&lease.belief_state, BeliefState::Held(belief) if belief.extend(Instant::from_nanos(local), deadline));
        let (true, Role::Script(script)) = (extended, &mut lease.role) else { return };
        script.former = script.handle.replace(handle);
        lease.deadline = deadline.as_nanos();
        lease.tainted |= tainted;
        let tainted = lease.tainted;
        self.tally.count(Number::Renewals);
        self.tally.reached(Sometimes::ScriptRenewed);
        self.note(process, format_args!("#{} has a new handle from #{}", command.script.lease, target.lease));
        let end = self.processes[process].clock.reaches(deadline.as_nanos());
        self.oracle.judge(now, Invariant::S6, self.oracle.stays_lost.believes(command.script.lease));
        let verdict = self.oracle.beliefs.extends(now, command.script.lease, end, tainted);
        if self.swarm.promises_exclusion() {
            self.oracle.judge(now, Invariant::S2, verdict);
        }
        self.awaits_deadline(command.script);
    }

    // ── releasing ─────────────────────────────────────────────────────────────────────────────────────────────────

    /// The script has finished: it stops its work first, then releases.
    pub(super) fn script_stops(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target).filter(|lease| lease.holds()) else { return };
        lease.belief_state = BeliefState::Lost;
        self.oracle.beliefs.ends(target.lease);
        self.oracle.stays_lost.lost(target.lease);
        self.stops_work(target);
    }

    pub(super) fn script_stopped(&mut self, target: LeaseTarget) {
        let faulty = self.phase == Phase::Faults;
        if faulty && self.rng.chance(self.swarm.scripts.forgotten) {
            return self.rests(target, false, false);
        }
        let ttl = self.processes[target.process as usize].member.ttl();
        let late = faulty && self.rng.chance(self.swarm.scripts.late);
        let wait = if late { self.rng.between(0, 2 * ttl) } else { 0 };
        self.agenda.push(self.now + wait, Event::Leave(target));
    }

    /// Runs the command that releases the handle, and does not wait for it.
    pub(super) fn script_releases(&mut self, target: LeaseTarget) {
        let Some((_, handle)) = self.lease(target).and_then(|lease| lease.script()) else { return };
        let handle = handle.clone();
        self.run_command(target, handle, AcquireMode::Leave, false);
        self.rests(target, false, false);
    }

    // ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Runs a command of a script, if a slot is free.
    fn run_command(
        &mut self,
        script: LeaseTarget,
        handle: TermRef,
        mode: fn(TermRef) -> AcquireMode,
        copy: bool,
    ) {
        let process = script.process as usize;
        let Some(slot) = self.processes[process].room_for_command() else { return };
        let Some((it, _)) = self.lease(script).and_then(|lease| lease.script()) else { return };
        let secret = it.secret;
        let local = Instant::from_nanos(self.processes[process].clock.local(self.now));
        let late = handle.deadline <= local;
        let (faulty, mode) = (self.phase == Phase::Faults, mode(handle.clone()));
        let limit = match &mode {
            AcquireMode::Leave(_) => local + RELEASE_MAX,
            _ if !late && faulty && self.rng.chance(self.swarm.scripts.hasty) => {
                Instant::from_nanos(self.rng.between(local.as_nanos(), handle.deadline.as_nanos()))
            }
            _ => handle.deadline,
        };
        let member = &self.processes[process].member;
        let timeout = member.timeout();
        let params = AcquireParams {
            holder: Arc::clone(&self.processes[process].holder),
            timing: member.timing,
            store_clock: self.swarm.store.clock,
            clock_tick: Duration::from_nanos(self.swarm.store.tick),
            process: None,
            witness: None,
            secret_hash: Some(secret),
            value: None,
            patience: Patience::Until(limit),
            strict: false,
            manual: true,
            hint_pause: if self.swarm.hosts > 1 { member.timing.retry() } else { Duration::ZERO },
            heed: Heed::Ttl,
            once_per: None,
            mode,
        };
        let number = self.leases_made + 1;
        let of = script.lease;
        self.note(process, format_args!("#{number} is a command of #{of}: {:?}, copy: {copy}", params.mode));
        let kind = LeaseKind { manual: true, steals: false, resumes: true };
        let role = Role::Command(ScriptCommand { script, handle, copy, late });
        let target = self.put_lease(process, slot, params, None, kind, role);
        if faulty {
            let at = self.now + self.rng.between(0, 2 * timeout);
            if self.rng.chance(self.swarm.scripts.killed) {
                self.agenda.push(at, Event::Kill(target));
            } else if self.rng.chance(self.swarm.scripts.cancelled) {
                self.agenda.push(at, Event::Release(target));
            }
        }
        self.step_machine(target, Input::Start);
    }

    pub(super) fn is_command(&mut self, target: LeaseTarget) -> bool {
        self.lease(target).is_some_and(|lease| lease.command().is_some())
    }

    /// Ends a command that has succeeded or failed.
    pub(super) fn command_settles(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target) else { return };
        if lease.machine.is_ended() || lease.machine.term_ref().is_some() {
            self.command_ends(target);
        }
    }

    /// A command is killed. Its requests are still in flight, and no process receives their answers.
    pub(super) fn command_killed(&mut self, target: LeaseTarget) {
        let Some(lease) = self.lease(target) else { return };
        if lease.has_resumed() {
            self.tally.reached(Sometimes::CommandKilled);
        }
        self.note(target.process as usize, format_args!("#{} is killed", target.lease));
        self.command_ends(target);
    }

    fn command_ends(&mut self, target: LeaseTarget) {
        self.processes[target.process as usize].leases[target.slot as usize] = None;
    }

    pub(super) fn command_denied(&mut self, target: LeaseTarget, denied: &Denied) {
        let Some(lease) = self.lease(target) else { return };
        let in_doubt = lease.machine.left() == Some(Left::Lapsing);
        let landed = lease.has_resumed();
        let copy = lease.command().is_some_and(|command| command.copy);
        if in_doubt && landed {
            self.tally.reached(Sometimes::RenewalInDoubt);
        }
        match denied {
            Denied::StaleHandle(Lost::Resumed) if copy => self.tally.reached(Sometimes::CopyRefused),
            Denied::StaleHandle(_) => self.tally.reached(Sometimes::RenewalRefused),
            _ => {}
        }
    }

    /// A resume was applied over `old`.
    pub(super) fn resume_applied(&mut self, target: LeaseTarget, old: &Record) {
        let commands = self.processes[target.process as usize].member.handles;
        let Some(lease) = self.lease(target) else {
            if target.slot as usize >= commands {
                self.tally.reached(Sometimes::RenewalUnheard);
            }
            return;
        };
        if let Some(handle) = lease.command().map(|command| command.handle.nonce) {
            let verdict = self.oracle.stays_lost.resumed(handle, old.nonce);
            self.oracle.judge(self.now, Invariant::S6, verdict);
        }
    }
}

/// Longest time to try a release.
const RELEASE_MAX: Duration = Duration::from_nanos(60 * SECOND);
