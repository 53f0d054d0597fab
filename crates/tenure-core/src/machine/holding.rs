//! Holding a lease: renew, read back, stop in time.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Expect, Version};

use super::leaving::Leaving;
use super::rules::{Verdict, earlier_by_chance};
use super::seeking::{asked_for, landed_version};
use super::{
    Content, Event, Fault, Flown, Handle, Left, Lost, Machine, Outcome, Purpose, Stage, Step, writes,
};
use crate::Instant;
use crate::record::{Record, State, Ttl};

/// Where a holder is.
#[derive(Debug)]
pub(super) struct Holding {
    /// The record as it was confirmed last.
    pub(super) record: Arc<Record>,
    /// Its version.
    version: Version,
    /// Until when the holder believes.
    pub(super) deadline: Instant,
    /// When to renew, or to look again after a failure.
    pub(super) next: Option<Instant>,
    /// Whether the outcome of a renewal must be read back before the next one.
    must_read: bool,
    /// Whether the latest renewal was answered with a conflict.
    conflicted: bool,
    /// How many calls in a row failed.
    failures: u32,
    /// A hint that the term may be lost came while a call was under way, whose answer may be older than that.
    doubted: bool,
}

impl Holding {
    pub(super) fn new(record: Arc<Record>, version: Version, deadline: Instant) -> Self {
        Self {
            record,
            version,
            deadline,
            next: None,
            must_read: false,
            conflicted: false,
            failures: 0,
            doubted: false,
        }
    }

    pub(super) fn handle(&self) -> Handle {
        let Record { token, term, nonce, .. } = *self.record;
        Handle { token, term, nonce, ttl: self.ttl(), deadline: self.deadline }
    }

    fn ttl(&self) -> Ttl {
        self.record.ttl.expect("a held record has a ttl")
    }
}

impl Machine {
    pub(super) fn holding_woken(&mut self, step: &mut Step<'_>) {
        let now = step.ambient.now;
        if !self.rules.may_go_on(now, self.holding().deadline) {
            return self.lose(step, Lost::Expired);
        }
        if self.flight.is_none() && self.holding().next.is_some_and(|next| next <= now) {
            self.renew_or_read(step);
        }
    }

    pub(super) fn renew_asked(&mut self, step: &mut Step<'_>) {
        if !matches!(self.stage, Stage::Holding(_)) || self.flight.is_some() {
            return;
        }
        self.renew_in_time(step);
    }

    /// The store hints that the entry or the store itself has gone. Only an answer proves it, and a renewal asks for one.
    pub(super) fn doubted(&mut self, step: &mut Step<'_>) {
        if !matches!(self.stage, Stage::Holding(_)) {
            return;
        }
        if self.flight.is_some() {
            self.holding().doubted = true;
            return;
        }
        self.renew_in_time(step);
    }

    pub(super) fn latched(&mut self, step: &mut Step<'_>) {
        if matches!(self.stage, Stage::Holding(_)) {
            self.lose(step, Lost::Expired);
        }
    }

    fn renew_or_read(&mut self, step: &mut Step<'_>) {
        self.holding().next = None;
        if self.holding().must_read {
            return self.read(step);
        }
        let (record, version) = (Arc::clone(&self.holding().record), self.holding().version.clone());
        let ttl = self.rules.ttl_of_renewal(self.holding().ttl(), step.ambient.jitter);
        let renewed =
            writes::renewed(&record, self.nonce(step, &record), ttl, self.unstoppable.as_ref(), step.ambient);
        if !self.rules.keeps_earlier_attempts() {
            self.attempts.forget_outstanding();
        }
        self.write(step, Purpose::Renew, Expect::Version(version), renewed);
    }

    pub(super) fn holding_written(&mut self, step: &mut Step<'_>, flown: Flown, outcome: Outcome) {
        if outcome.fault() == Some(Fault::STORE_GONE) {
            return self.lose(step, Lost::StoreGone);
        }
        match (self.rules.verdict(&outcome), outcome.fault()) {
            (Verdict::Done, _) => {
                let version = landed_version(&flown, &outcome);
                self.renewed(step, flown.attempt, &flown.record, version);
            }
            (Verdict::Lost, _) => {
                let token = flown.record.token;
                self.lose(step, Lost::Superseded { by: None, token, because: None });
            }
            (Verdict::NoEffect, fault) => self.renewal_failed(step, fault.unwrap_or(Fault::Unknown), false),
            (Verdict::ReadBack, Some(fault)) => self.renewal_failed(step, fault, true),
            (Verdict::ReadBack, None) => {
                self.holding().conflicted = true;
                self.holding().must_read = true;
                self.read(step);
            }
        }
    }

    /// A renewal without success. It is not a loss: what the ttl is for.
    fn renewal_failed(&mut self, step: &mut Step<'_>, fault: Fault, must_read: bool) {
        let (timing, jitter) = (self.ask.timing, step.ambient.jitter);
        let holding = self.holding();
        holding.must_read |= must_read;
        holding.failures = holding.failures.saturating_add(1);
        // One lost answer is read back at once; a store that answers nothing gets its pause.
        let at_once = holding.failures == 1 && fault == Fault::Unknown;
        let growing = timing.retry() * 2u32.pow(holding.failures.min(16) - 1);
        let pause = match at_once {
            true => Duration::ZERO,
            false => {
                // Whatever the store asks for, there is another try before the deadline.
                let asked = asked_for(fault).min(holding.deadline.since(step.ambient.now) / 2);
                earlier_by_chance(growing.min(timing.retry_max()), jitter).max(asked)
            }
        };
        holding.next = Some(step.ambient.now + pause);
        self.tell(step, Event::AtRisk(fault));
        if self.ask.strict {
            return self.lose(step, Lost::RenewalFailed);
        }
        if at_once {
            self.renew_in_time(step);
        }
    }

    pub(super) fn holding_read(&mut self, step: &mut Step<'_>, answer: Result<Content, Fault>) {
        let content = match answer {
            Ok(content) => content,
            Err(Fault::STORE_GONE) => return self.lose(step, Lost::StoreGone),
            Err(fault) => return self.renewal_failed(step, fault, true),
        };
        let (record, version) = match content {
            Content::Absent => return self.lose(step, Lost::Deleted),
            Content::Foreign { what, .. } => return self.lose(step, Lost::Replaced { what }),
            Content::Record(record, version) => (record, version),
        };
        let mine = (&self.holding().version.clone(), self.holding().record.nonce);
        if self.rules.same_observation(mine, (&version, record.nonce)) {
            return self.retry(step);
        }
        if !self.rules.is_ours(&record, self.mine()) {
            let why = self.superseded_by(&record);
            return self.lose(step, why);
        }
        match &record.state {
            State::Revoked(revocation) => {
                let (by, because) = (Arc::clone(&revocation.by), Arc::clone(&revocation.because));
                self.lose_to(step, Lost::Revoked { by, because }, Some((record, version)));
            }
            _ => {
                let attempt = self.attempt_behind(step, &record);
                self.renewed(step, attempt, &record, version);
            }
        }
    }

    /// Why a record that is not our own write is there instead of one.
    fn superseded_by(&mut self, record: &Record) -> Lost {
        let mine = &self.holding().record;
        let earlier = record.is_held() && record.term == mine.term && record.sequence <= mine.sequence;
        if record.token < mine.token || earlier {
            let (token, sequence) = (record.token, record.sequence);
            let what = format!("an earlier record is back (token {token}, sequence {sequence})");
            return Lost::Replaced { what: what.into() };
        }
        Lost::to(record, mine.token)
    }

    /// The version is still the one we confirmed last: the renewal has not landed yet, so it is tried again. The
    /// earlier one stays outstanding.
    fn retry(&mut self, step: &mut Step<'_>) {
        let holding = self.holding();
        holding.must_read = false;
        if std::mem::take(&mut holding.conflicted) {
            // The store refused a write that nothing stood against: that is a failure, and gets its pause.
            return self.renewal_failed(step, Fault::Unknown, false);
        }
        self.renew_in_time(step);
    }

    fn renew_in_time(&mut self, step: &mut Step<'_>) {
        if !self.rules.may_go_on(step.ambient.now, self.holding().deadline) {
            return self.lose(step, Lost::Expired);
        }
        self.renew_or_read(step);
    }

    /// A renewal is known to have landed.
    fn renewed(
        &mut self,
        step: &mut Step<'_>,
        attempt: super::Attempt,
        record: &Arc<Record>,
        version: Version,
    ) {
        let now = step.ambient.now;
        self.attempts.confirm(attempt);
        if !self.rules.may_go_on(now, self.holding().deadline) {
            return self.lose_to(step, Lost::Expired, Some((Arc::clone(record), version)));
        }
        let ttl = record.ttl.unwrap_or(self.own_ttl());
        let deadline = self.rules.deadline(attempt.sent, now, ttl, self.ask.timing.drift());
        // What was on its way when its holder said that it cannot stop the work does not say so.
        let unsaid = self.unstoppable.is_some() && record.cannot_stop().is_none();
        let next = if unsaid { Some(now) } else { self.next_renewal(step, attempt.sent) };
        let holding = self.holding();
        let doubted = holding.doubted;
        *holding = Holding::new(Arc::clone(record), version, deadline.max(holding.deadline));
        holding.next = if doubted { Some(now) } else { next };
        let deadline = holding.deadline;
        self.tell(step, Event::Renewed { deadline });
    }

    /// When to renew what was sent at `sent`, unless the holder does it itself.
    pub(super) fn next_renewal(&self, step: &Step<'_>, sent: Instant) -> Option<Instant> {
        let at = sent + earlier_by_chance(self.ask.timing.period(), step.ambient.jitter);
        Some(at.max(step.ambient.now)).filter(|_| !self.ask.manual)
    }

    /// Ends the term; what is in the store is the record we confirmed last, as far as we know.
    pub(super) fn lose(&mut self, step: &mut Step<'_>, why: Lost) {
        let known = (Arc::clone(&self.holding().record), self.holding().version.clone());
        let unsettled = self.attempts.may_land();
        self.lose_to(step, why, Some(known).filter(|_| !unsettled));
    }

    /// Ends the term. `target` is what may have to be vacated, if that is known without reading.
    fn lose_to(&mut self, step: &mut Step<'_>, why: Lost, target: Option<(Arc<Record>, Version)>) {
        let left = match why {
            Lost::Superseded { .. } | Lost::Deleted | Lost::Replaced { .. } => Some(Left::Nothing),
            // The record is still there, wherever that is now, and says held. It may come back to its place.
            Lost::StoreGone => Some(Left::Lapsing),
            _ => None,
        };
        self.tell(step, Event::Lost(why));
        if let Some(left) = left {
            self.tell(step, Event::Left(left));
            self.stage = Stage::Ended(left);
            return;
        }
        let until = self.lapsed_at(step.ambient.now);
        let term = self.holding().record.term;
        if self.keeps() {
            return self.begin_keeping(step, term, target);
        }
        self.stage = Stage::Leaving(Leaving::after_term(term, target, until));
        self.leave(step);
    }

    fn holding(&mut self) -> &mut Holding {
        match &mut self.stage {
            Stage::Holding(holding) => holding,
            stage => unreachable!("not holding but {stage:?}"),
        }
    }
}
