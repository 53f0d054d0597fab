//! Arrival of a write at the store, and the oracle's checks of it.

use tenure_core::machine::{Content, Outcome, Purpose, Write};
use tenure_core::record::{End, Nonce, Record, State};
use tenure_store::StoreClock;

use super::World;
use super::event::{Event, LeaseTarget};
use crate::Invariant;
use crate::oracle::{follows, overwrites_nothing_foreign};
use crate::parts::Life;
use crate::tally::{Number, Sometimes};
use crate::time::MILLI;

/// The latest events that other events may race with.
#[derive(Debug, Default)]
pub(super) struct Races {
    /// Time of the last takeover, and the term that it ended.
    takeover: (u64, Nonce),
    /// Time of the last grant that arrived, and its lease.
    grant: (u64, u32),
    /// Time of the last applied renewal.
    renewal: u64,
    /// The term that replaced a revoked one.
    pub(super) replaced_revoked: Option<Nonce>,
}

impl World<'_> {
    /// A write arrives. `basis` is the content that its sender means to replace; `late` is true if the sender no longer
    /// waits for the answer.
    pub(super) fn write_arrives(
        &mut self,
        target: LeaseTarget,
        write: &Write,
        basis: Option<u64>,
        late: bool,
    ) -> Outcome {
        let write = &self.as_written(target, write);
        let (now, purpose) = (self.now, write.purpose);
        // A copy of a plant that arrives after a deletion brings back the same record, with the same version.
        let is_copy = purpose == Purpose::Plant && self.store.has_superseded(write.record.nonce);
        if is_copy && !self.may_bring_back() {
            return Outcome::Conflict;
        }
        let before = self.store.content().clone();
        let mistaken = self.is_mistaken(&before, write, basis, late);
        let outcome = self.store.write(now, write);
        self.notice_races(target, write, &outcome);
        let applied = matches!(outcome, Outcome::Applied { .. });
        let process = target.process as usize;
        let word = if applied { "applied" } else { "conflict" };
        self.note(process, format_args!("#{} {purpose:?} at the store: {word}", target.lease));
        if !applied {
            return outcome;
        }
        self.writes_applied += 1;
        self.oracle.judge(now, Invariant::S9, overwrites_nothing_foreign(&before));
        if let (Content::Record(old, _), false) = (&before, mistaken) {
            self.oracle.judge(now, Invariant::S9, follows(purpose, old, &write.record));
            self.judge_patience(target, write, old);
        }
        if mistaken {
            // The store confused two records because their versions are equal. For every other process this is
            // equivalent to tampering, and no client can prevent it.
            self.tally.reached(Sometimes::RepeatedVersion);
            self.tampered("a write lands on a version that was used before");
        }
        let order = self.writes_applied;
        if let Some(lease) = self.lease(target) {
            lease.applied(write.record.nonce, order);
        }
        if let (Purpose::Resume, Content::Record(old, _), false) = (purpose, &before, mistaken) {
            self.resume_applied(target, old);
        }
        if late {
            self.tally.reached(Sometimes::LateApplied);
        }
        match (purpose, &before) {
            (Purpose::Grant, Content::Record(old, _)) => self.grant_applied(&write.record, Some(old)),
            (Purpose::Grant, _) => self.grant_applied(&write.record, None),
            (Purpose::Vacate, Content::Record(old, _)) if !mistaken => self.vacate_applied(target, old),
            _ => {}
        }
        self.give_hints();
        outcome
    }

    /// True if a write lands on another content than its sender means, because the store uses a version twice.
    ///
    /// A request that is still awaited and relies on a very old answer is not excused: the client should not have sent
    /// it.
    fn is_mistaken(&self, before: &Content, write: &Write, basis: Option<u64>, late: bool) -> bool {
        let Content::Record(old, _) = before else { return false };
        if !self.store.was_tampered_with() {
            return false;
        }
        let follows = write.record.sequence == old.sequence + 1;
        let same = match write.purpose {
            Purpose::Renew | Purpose::Vacate => old.term == write.record.term,
            _ => {
                let meant = basis.is_none_or(|basis| basis == self.store.generation());
                meant || !(late || self.store.has_repeated_version())
            }
        };
        !(follows && same)
    }

    fn grant_applied(&mut self, record: &Record, old: Option<&Record>) {
        let token = record.token.get();
        self.grants_applied += 1;
        self.tally.count(Number::Grants);
        let verdict = self.oracle.tokens.applied(token);
        self.oracle.judge(self.now, Invariant::S1, verdict);
        let Some(old) = old else { return };
        if token > old.token.get() + 1 {
            self.tally.reached(Sometimes::TokenGap);
        }
        if !old.is_held() {
            return;
        }
        self.races.takeover = (self.now, old.term);
        if matches!(old.state, State::Revoked(_)) {
            self.tally.reached(Sometimes::RevokeRanOut);
            self.races.replaced_revoked = Some(record.term);
        }
        match record.history.last().map(|past| &past.end) {
            Some(End::Died) => self.tally.reached(Sometimes::WitnessTookOver),
            _ if self.swarm.store.clock == StoreClock::Ages => self.tally.reached(Sometimes::Aged),
            _ => {}
        }
        let holds =
            |lease: &super::Lease| lease.holds() && lease.term.is_some_and(|(term, _)| term == old.term);
        let paused = self.processes.iter().filter(|process| process.state == Life::Paused);
        if paused.flat_map(|process| process.leases.iter().flatten()).any(holds) {
            self.tally.reached(Sometimes::PausedHolderReplaced);
        }
    }

    fn vacate_applied(&mut self, target: LeaseTarget, old: &Record) {
        self.tally.count(Number::Releases);
        if matches!(old.state, State::Revoked(_)) {
            self.tally.reached(Sometimes::RevokeAcknowledged);
        }
        let under = |lease: &mut super::Lease| lease.term.is_some_and(|(term, _)| term == old.term);
        // A command acts for its script, which may be acting itself.
        let command = self.lease(target).and_then(|lease| lease.command());
        let whose = command.map_or(target, |command| command.script);
        let acts = |lease: &mut super::Lease| lease.acting && under(lease);
        // A restored record may carry the nonce of a handle that was used up.
        let acting =
            self.lease(whose).is_some_and(|lease| acts(lease) && (whose == target || !lease.tainted));
        let verdict = self.oracle.stays_lost.vacated(target.lease, acting);
        self.oracle.judge(self.now, Invariant::S6, verdict);
    }

    fn notice_races(&mut self, target: LeaseTarget, write: &Write, outcome: &Outcome) {
        let now = self.now;
        let applied = matches!(outcome, Outcome::Applied { .. });
        let within = |at: u64| now - at <= MILLI && at > 0;
        match write.purpose {
            Purpose::Renew if applied => self.races.renewal = now,
            Purpose::Renew => {
                let (at, term) = self.races.takeover;
                if within(at) && term == write.record.term {
                    self.tally.reached(Sometimes::Raced);
                }
            }
            Purpose::Grant => {
                let (at, lease) = self.races.grant;
                if at == now && lease != target.lease {
                    self.tally.reached(Sometimes::EqualTime);
                }
                if !applied && within(self.races.renewal) {
                    self.tally.reached(Sometimes::Raced);
                }
                self.races.grant = (now, target.lease);
            }
            _ => {}
        }
    }

    fn give_hints(&mut self) {
        if self.swarm.store.hints == 0 {
            return;
        }
        for process in 0..self.processes.len() {
            if self.rng.chance(self.swarm.store.hints) {
                let at = self.arrival();
                self.agenda.push(at, Event::Hint { process: process as u16 });
            }
        }
    }
}
