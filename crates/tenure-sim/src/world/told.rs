//! Events of the machine, and the reactions of user and keeper.

use tenure_core::machine::{Denied, Event as Told, Left, Lost, Purpose};
use tenure_core::record::Nonce;
use tenure_core::{Belief, Instant, Token};

use super::World;
use super::event::{Event, LeaseTarget};
use super::lease::{BeliefState, Doubt, OwnWrite};
use super::phases::Phase;
use crate::Invariant;
use crate::oracle::{Interval, WriteFate, really_applied, really_superseded, wins_in_time};
use crate::seed::Bug;
use crate::swarm::Weather;
use crate::tally::{Fault, Number, Sometimes};
use crate::time::MICRO;

impl World<'_> {
    pub(super) fn told(&mut self, target: LeaseTarget, told: Told) {
        self.note(target.process as usize, format_args!("#{} is told {told:?}", target.lease));
        match told {
            Told::Granted { .. } if self.is_command(target) => self.script_renewed(target),
            Told::Granted { term, token, deadline } => self.granted(target, term, token, deadline.as_nanos()),
            Told::Renewed { deadline } => self.renewed(target, deadline.as_nanos()),
            Told::AtRisk(_) | Told::Keeping { .. } => {}
            Told::Outlived { sighting, .. } if sighting.tree_locked => {
                self.tally.reached(Sometimes::TreeOutlived);
            }
            Told::Outlived { .. } => {}
            Told::Lost(why) => self.lost(target, &why),
            Told::Left(left) => self.left(target, left),
            Told::Denied(denied) => self.denied(target, &denied),
            Told::WentBack { .. } => self.tally.reached(Sometimes::WentBack),
        }
    }

    // ── belief ────────────────────────────────────────────────────────────────────────────────────────────────────

    fn granted(&mut self, target: LeaseTarget, term: Nonce, token: Token, deadline: u64) {
        let own = self.confirmed(target, "granted");
        let (now, tampered_at) = (self.now, self.oracle.tampered_at);
        let Some(lease) = self.lease(target) else { return };
        lease.since = now;
        lease.tainted = own.is_some_and(|own| tampered_at.is_some_and(|at| at >= own.sent));
        lease.term = Some((term, token));
        lease.belief_state = BeliefState::Held(Belief::until(Instant::from_nanos(deadline)));
        lease.deadline = deadline;
        lease.acting = true;
        let (tainted, kind, read, revoked) = (lease.tainted, lease.kind, lease.read, lease.revoked);
        if self.swarm.liar {
            let sentence = format!("token {token} was granted on a store that lies");
            self.oracle.judge(self.now, Invariant::S7, Err(sentence));
        }
        self.judge_token(token, own.filter(|_| !tainted));
        self.believes(target, token.get(), deadline, tainted);
        self.tally.count(Number::Terms);
        if own.is_some_and(|own| own.purpose == Purpose::Resume) {
            self.tally.reached(Sometimes::Resumed);
        } else if !read {
            self.tally.reached(Sometimes::WarmGrant);
        }
        if target.slot > 0 {
            self.tally.reached(Sometimes::Overlapping);
        }
        if kind.steals && !revoked && self.races.replaced_revoked == Some(term) {
            self.tally.reached(Sometimes::StealerJoined);
        }
        self.contender_won(target);
        self.begins_to_work(target);
    }

    fn judge_token(&mut self, token: Token, own: Option<OwnWrite>) {
        let Some(own) = own.filter(|own| own.purpose == Purpose::Grant) else { return };
        if let Some(order) = own.applied {
            let verdict = self.oracle.tokens.believed(order, token.get());
            self.oracle.judge(self.now, Invariant::S1, verdict);
        }
        if let Some((seen, replaced)) = own.went_back {
            let verdict = self.oracle.tokens.after_going_back(seen, replaced);
            self.oracle.judge(self.now, Invariant::S1, verdict);
        }
    }

    fn believes(&mut self, target: LeaseTarget, token: u64, deadline: u64, tainted: bool) {
        let now = self.now;
        let process = target.process as usize;
        let end = self.processes[process].clock.reaches(deadline);
        self.oracle.judge(now, Invariant::S6, self.oracle.stays_lost.believes(target.lease));
        let local = self.processes[process].clock.local(now);
        self.oracle.judge(now, Invariant::S6, self.oracle.stays_lost.goes_on(target.lease, local, deadline));
        let belief = Interval { lease: target.lease, process, token, end, tainted };
        let verdict = self.oracle.beliefs.begins(now, belief);
        if self.swarm.promises_exclusion() {
            self.oracle.judge(now, Invariant::S2, verdict);
        }
        self.oracle.held_again.believed(now);
    }

    fn renewed(&mut self, target: LeaseTarget, deadline: u64) {
        self.confirmed(target, "renewed");
        self.tally.count(Number::Renewals);
        let local = self.processes[target.process as usize].clock.local(self.now);
        let Some(lease) = self.lease(target) else { return };
        let before = std::mem::replace(&mut lease.deadline, deadline);
        lease.extending = true;
        let verdict = self.oracle.stays_lost.goes_on(target.lease, local, before);
        self.oracle.judge(self.now, Invariant::S6, verdict);
        self.save_handle(target);
        if self.phase == Phase::Faults && self.rng.chance(self.swarm.work.late_extension) {
            self.stalls(target, before);
        } else {
            self.keeper_extends(target);
        }
    }

    /// The keeper is preempted between its decision and the compare-exchange, perhaps until after the old deadline. The
    /// work may check the lease just then.
    fn stalls(&mut self, target: LeaseTarget, deadline: u64) {
        let now = self.now;
        self.tally.fault(Fault::Stalled);
        let over = self.processes[target.process as usize].clock.reaches(deadline);
        let stall = if self.rng.chance(500) { over.saturating_sub(now) + 2 * MICRO } else { 50 * MICRO };
        if self.rng.chance(700) {
            self.agenda.push(over.max(now), Event::Act(target));
        }
        self.agenda.push(now + stall, Event::Extend(target));
    }

    /// Extends the belief, unless it is latched, or the keeper itself finds that the deadline has passed.
    pub(super) fn keeper_extends(&mut self, target: LeaseTarget) {
        let revives = self.seed.bug == Bug::RevivesBelief;
        let process = target.process as usize;
        let now = Instant::from_nanos(self.processes[process].clock.local(self.now));
        let Some(lease) = self.lease(target).filter(|lease| lease.extending) else { return };
        lease.extending = false;
        let deadline = Instant::from_nanos(lease.deadline);
        let extended =
            matches!(&lease.belief_state, BeliefState::Held(belief) if belief.extend(now, deadline));
        if !extended && revives {
            lease.belief_state = BeliefState::Held(Belief::until(deadline));
        } else if !extended {
            lease.belief_state = BeliefState::Lost;
            self.oracle.stays_lost.lost(target.lease);
            self.tally.reached(Sometimes::LatchedFirst);
            self.agenda.push(self.now, Event::Latched(target));
            return;
        }
        let (tainted, now) = (lease.tainted, self.now);
        let end = self.processes[process].clock.reaches(deadline.as_nanos());
        self.oracle.judge(now, Invariant::S6, self.oracle.stays_lost.believes(target.lease));
        let verdict = self.oracle.beliefs.extends(now, target.lease, end, tainted);
        if self.swarm.promises_exclusion() {
            self.oracle.judge(now, Invariant::S2, verdict);
        }
    }

    /// The write that the machine now counts as applied. S5: the store must have applied it.
    pub(super) fn confirmed(&mut self, target: LeaseTarget, told: &str) -> Option<OwnWrite> {
        let lease = self.lease(target)?;
        let nonce = lease.machine.record()?.nonce;
        let own = lease.write(nonce).copied();
        let doubt = lease.doubt.take();
        lease.confirmed = nonce;
        lease.unconfirmed_calls = 0;
        let found = match own {
            None => WriteFate::NotOwn,
            Some(OwnWrite { applied: None, .. }) => WriteFate::NotApplied,
            Some(_) => WriteFate::Applied,
        };
        self.oracle.judge(self.now, Invariant::S5, really_applied(told, found));
        if let Some(doubt) = doubt {
            self.tally.count(Number::Resolved);
            self.tally.reached(match doubt {
                Doubt::Timeout => Sometimes::ResolvedAfterTimeout,
                Doubt::Conflict => Sometimes::ResolvedAfterConflict,
            });
        }
        own
    }

    /// L6: every other contender has missed one more term.
    fn contender_won(&mut self, winner: LeaseTarget) {
        if self.phase != Phase::Fair {
            return;
        }
        let contenders = self.processes.iter().map(|process| process.member.handles as u64).sum();
        let leases = self.processes.iter_mut().flat_map(|process| process.leases.iter_mut().flatten());
        for lease in leases.filter(|lease| lease.id != winner.lease && lease.wants()) {
            lease.missed += 1;
            self.oracle.judge(self.now, Invariant::L6, wins_in_time(lease.missed, contenders));
        }
    }

    // ── end of a term ─────────────────────────────────────────────────────────────────────────────────────────────

    fn lost(&mut self, target: LeaseTarget, why: &Lost) {
        // A restart of the server may bring back an earlier record of the term.
        let may_forget = self.server.is_some();
        let tampered_at = self.oracle.tampered_at;
        let Some(lease) = self.lease(target) else { return };
        lease.belief_state = BeliefState::Lost;
        let untouched = !lease.tainted && tampered_at.is_none() && !may_forget;
        let read_own = lease.shown.is_some_and(|shown| lease.write(shown).is_some());
        let term = lease.term.map_or(Nonce::ZERO, |(term, _)| term);
        let goes_on = lease.unstoppable && lease.acting && !lease.tainted;
        if goes_on && self.promises_to_keep() && self.phase == Phase::Faults {
            self.oracle.beliefs.acts_after_belief(target.lease);
        } else {
            self.oracle.beliefs.ends(target.lease);
        }
        self.oracle.stays_lost.lost(target.lease);
        if matches!(why, Lost::Superseded { .. } | Lost::Replaced { .. } | Lost::Deleted) && untouched {
            let verdict = really_superseded(term, self.store.content(), read_own);
            self.oracle.judge(self.now, Invariant::S5, verdict);
        }
        if *why != Lost::Released {
            self.tally.count(Number::Losses);
            if self.swarm.weather == Weather::Calm {
                let process = target.process;
                self.oracle.judge(self.now, Invariant::L4, Err(format!("p{process} lost its lease: {why}")));
            }
        }
        self.stops_work(target);
    }

    fn left(&mut self, target: LeaseTarget, left: Left) {
        let Some(lease) = self.lease(target) else { return };
        let (acting, held) = (lease.acting, lease.term.is_some());
        if let (Left::Vacated, Some(command)) = (left, lease.command()) {
            let late = command.late;
            self.tally.reached(Sometimes::ReleasedByHandle);
            if late {
                self.tally.reached(Sometimes::ReleasedLate);
            }
        }
        match left {
            Left::Lapsing if acting => self.tally.reached(Sometimes::LapsedUnderWork),
            Left::Lapsing if held => self.tally.reached(Sometimes::ReleaseLost),
            _ => {}
        }
    }

    fn denied(&mut self, target: LeaseTarget, denied: &Denied) {
        let Some(lease) = self.lease(target) else { return };
        lease.stuck = matches!(denied, Denied::WentBack { .. } | Denied::Foreign(_));
        let ended = lease.machine.is_ended();
        if lease.command().is_some() {
            return self.command_denied(target, denied);
        }
        match denied {
            Denied::Cancelled if !ended => self.tally.reached(Sometimes::CancelledInFlight),
            Denied::WentBack { .. } => self.tally.reached(Sometimes::CorruptDenied),
            Denied::Foreign(_) => self.tally.reached(Sometimes::ForeignDenied),
            Denied::Unstoppable(held) => self.told_unstoppable(&held.record),
            Denied::StaleHandle(_) => self.tally.reached(Sometimes::ResumeRefused),
            _ => {}
        }
    }
}
