//! Holding a lease: renew, read back, stop in time.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Expect, Version};

use super::context::Context;
use super::in_flight::Answered;
use super::keeping::Keeping;
use super::leaving::{Leaving, OwnRecord};
use super::rules::{Proof, RenewalRoom};
use super::stage::{Next, STAY, Stage, earliest};
use super::{Attempt, Content, Event, Fault, Left, Lost, Purpose, TermRef, writes};
use crate::Instant;
use crate::record::{Record, State, Ttl};

/// State of a holder.
#[derive(Debug)]
pub(super) struct Holding {
    /// The record as last confirmed.
    record: Arc<Record>,
    /// Its version.
    version: Version,
    /// Deadline of the belief.
    deadline: Instant,
    /// Time of the next renewal, or of the retry after a failure.
    next: Option<Instant>,
    /// True if the outcome of a renewal must be read back before the next one.
    must_read: bool,
    /// True if the answer to the latest renewal was a conflict.
    conflicted: bool,
    /// Number of failed calls in a row.
    failures: u32,
    /// True if a hint of a loss came during a call, whose answer may be older than the hint.
    doubted: bool,
}

impl Holding {
    /// Starts to hold the record that this write left in the store.
    pub(super) fn begin(
        ctx: &mut Context<'_>,
        attempt: Attempt,
        (record, version): OwnRecord,
        deadline: Instant,
    ) -> Next {
        ctx.attempts.confirm(attempt);
        ctx.tell(Event::Granted { term: record.term, token: record.token, deadline });
        let next = next_renewal(ctx, attempt.sent);
        Some(Stage::Holding(Self { next, ..Self::new(record, version, deadline) }))
    }

    fn new(record: Arc<Record>, version: Version, deadline: Instant) -> Self {
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

    pub(super) fn record(&self) -> &Arc<Record> {
        &self.record
    }

    pub(super) fn term_ref(&self) -> TermRef {
        let Record { token, term, nonce, .. } = *self.record;
        TermRef { token, term, nonce, ttl: self.ttl(), deadline: self.deadline }
    }

    fn ttl(&self) -> Ttl {
        self.record.ttl.expect("a held record has a ttl")
    }

    pub(super) fn wakes_at(&self, ctx: &Context<'_>) -> Option<Instant> {
        earliest(Some(self.deadline), self.next.filter(|_| ctx.is_idle()))
    }

    pub(super) fn woken(&mut self, ctx: &mut Context<'_>) -> Next {
        let now = ctx.ambient.now;
        if !ctx.rules.may_go_on(now, self.deadline) {
            return self.lose(ctx, Lost::Expired);
        }
        if ctx.is_idle() && self.next.is_some_and(|next| next <= now) {
            return self.renew_or_read(ctx);
        }
        STAY
    }

    pub(super) fn renew_asked(&mut self, ctx: &mut Context<'_>) -> Next {
        if ctx.is_idle() { self.renew_in_time(ctx) } else { STAY }
    }

    /// The store hints that the entry or the store itself is gone. Only an answer proves it, so a renewal is sent.
    pub(super) fn doubted(&mut self, ctx: &mut Context<'_>) -> Next {
        self.doubted |= !ctx.is_idle();
        self.renew_asked(ctx)
    }

    fn renew_or_read(&mut self, ctx: &mut Context<'_>) -> Next {
        self.next = None;
        if self.must_read {
            return ctx.read();
        }
        let ttl = ctx.rules.ttl_of_renewal(self.ttl(), ctx.ambient.jitter);
        let nonce = ctx.nonce(&self.record);
        let renewed = writes::renewed(&self.record, nonce, ttl, ctx.unstoppable, ctx.ambient);
        if !ctx.rules.keeps_earlier_attempts() {
            ctx.attempts.forget_outstanding();
        }
        ctx.write(Purpose::Renew, Expect::Version(self.version.clone()), renewed)
    }

    pub(super) fn write_answered(&mut self, ctx: &mut Context<'_>, (write, outcome): Answered) -> Next {
        if outcome.fault() == Some(Fault::STORE_GONE) {
            return self.lose(ctx, Lost::StoreGone);
        }
        match (ctx.rules.proof(&outcome), outcome.fault()) {
            (Proof::Done, _) => {
                let version = write.landed_version(&outcome);
                self.renewed(ctx, write.attempt, (write.record, version))
            }
            (Proof::Lost, _) => {
                let token = write.record.token;
                self.lose(ctx, Lost::Superseded { by: None, token, because: None })
            }
            (Proof::NoEffect, fault) => self.renewal_failed(ctx, fault.unwrap_or(Fault::Unknown), false),
            (Proof::ReadBack, Some(fault)) => self.renewal_failed(ctx, fault, true),
            (Proof::ReadBack, None) => {
                self.conflicted = true;
                self.must_read = true;
                ctx.read()
            }
        }
    }

    /// A failed renewal. It is not a loss: the term lasts until its deadline.
    fn renewal_failed(&mut self, ctx: &mut Context<'_>, fault: Fault, must_read: bool) -> Next {
        self.must_read |= must_read;
        self.failures = self.failures.saturating_add(1);
        // One lost answer is read back at once; after that the store gets a pause.
        let at_once = self.failures == 1 && fault == Fault::Unknown;
        let pause = if at_once { Some(Duration::ZERO) } else { self.pause_after(ctx, fault) };
        self.next = pause.map(|pause| ctx.ambient.now + pause);
        ctx.tell(Event::AtRisk(fault));
        if ctx.params.strict {
            return self.lose(ctx, Lost::RenewalFailed);
        }
        if at_once { self.renew_in_time(ctx) } else { STAY }
    }

    /// Pause before the next call; `None` if it is too late for one. A delay that the store asks for does not move the call
    /// beyond the last attempt.
    fn pause_after(&self, ctx: &Context<'_>, fault: Fault) -> Option<Duration> {
        let timing = &ctx.params.timing;
        let stop = self.deadline - timing.grace() - timing.margin();
        // A write follows a read that shows that no renewal has landed.
        let calls = if self.must_read { 2 } else { 1 };
        let until_stop = stop.since(ctx.ambient.now);
        let until_last = until_stop.saturating_sub(calls * timing.timeout());
        let room = RenewalRoom { failures: self.failures, until_last, until_stop };
        let pause = ctx.rules.renewal_pause(room, timing, ctx.ambient.jitter)?;
        Some(pause.max(fault.asked_pause().min(until_last)))
    }

    pub(super) fn read_answered(&mut self, ctx: &mut Context<'_>, answer: Result<Content, Fault>) -> Next {
        let (record, version) = match answer {
            Ok(Content::Record(record, version)) => (record, version),
            Ok(Content::Absent) => return self.lose(ctx, Lost::Deleted),
            Ok(Content::Foreign { what, .. }) => return self.lose(ctx, Lost::Replaced { what }),
            Err(Fault::STORE_GONE) => return self.lose(ctx, Lost::StoreGone),
            Err(fault) => return self.renewal_failed(ctx, fault, true),
        };
        let confirmed = (&self.version, self.record.nonce);
        if ctx.rules.same_observation(confirmed, (&version, record.nonce)) {
            return self.retry(ctx);
        }
        if !ctx.rules.is_ours(&record, ctx.mine(Some(self.record.term))) {
            return self.lose(ctx, self.superseded_by(&record));
        }
        match &record.state {
            State::Revoked(revocation) => {
                let why = Lost::revoked(&revocation.by, &revocation.because);
                self.lose_to(ctx, why, Some((record, version)))
            }
            _ => self.renewed(ctx, ctx.attempt_behind(&record), (record, version)),
        }
    }

    /// Cause of the loss, when another record is in the place of the own one.
    fn superseded_by(&self, record: &Record) -> Lost {
        let mine = &self.record;
        let earlier = record.is_held() && record.term == mine.term && record.sequence <= mine.sequence;
        if record.token < mine.token || earlier {
            let (token, sequence) = (record.token, record.sequence);
            let what = format!("an earlier record is back (token {token}, sequence {sequence})");
            return Lost::Replaced { what: what.into() };
        }
        Lost::to(record, mine.token)
    }

    /// The version is still the last confirmed one: the renewal has not landed yet, and is retried. The earlier one
    /// stays outstanding.
    fn retry(&mut self, ctx: &mut Context<'_>) -> Next {
        self.must_read = false;
        if std::mem::take(&mut self.conflicted) {
            // The store refused a write without a conflict: that is a failure, and gets a pause.
            return self.renewal_failed(ctx, Fault::Unknown, false);
        }
        self.renew_in_time(ctx)
    }

    fn renew_in_time(&mut self, ctx: &mut Context<'_>) -> Next {
        if !ctx.rules.may_go_on(ctx.ambient.now, self.deadline) {
            return self.lose(ctx, Lost::Expired);
        }
        self.renew_or_read(ctx)
    }

    /// A renewal is known to have landed.
    fn renewed(&mut self, ctx: &mut Context<'_>, attempt: Attempt, (record, version): OwnRecord) -> Next {
        let now = ctx.ambient.now;
        ctx.attempts.confirm(attempt);
        if !ctx.rules.may_go_on(now, self.deadline) {
            return self.lose_to(ctx, Lost::Expired, Some((record, version)));
        }
        let ttl = record.ttl.unwrap_or(ctx.own_ttl());
        let deadline = ctx.rules.deadline(attempt.sent, now, ttl, ctx.params.timing.drift());
        let deadline = deadline.max(self.deadline);
        // A renewal that was sent before its holder said that it cannot stop the work does not say so.
        let unsaid = ctx.unstoppable.is_some() && record.cannot_stop().is_none();
        let at_once = unsaid || self.doubted;
        let next = if at_once { Some(now) } else { next_renewal(ctx, attempt.sent) };
        *self = Self { next, ..Self::new(record, version, deadline) };
        ctx.tell(Event::Renewed { deadline });
        STAY
    }

    /// Ends the term. The store has the last confirmed record, as far as is known.
    pub(super) fn lose(&self, ctx: &mut Context<'_>, why: Lost) -> Next {
        let unsettled = ctx.attempts.may_land();
        let known = (Arc::clone(&self.record), self.version.clone());
        self.lose_to(ctx, why, Some(known).filter(|_| !unsettled))
    }

    /// Ends the term. `target` is the record to vacate, if it is known without a read.
    fn lose_to(&self, ctx: &mut Context<'_>, why: Lost, target: Option<OwnRecord>) -> Next {
        let left = match why {
            Lost::Superseded { .. } | Lost::Deleted | Lost::Replaced { .. } => Some(Left::Nothing),
            // The record still exists somewhere, and says held. It may come back to its place.
            Lost::StoreGone => Some(Left::Lapsing),
            _ => None,
        };
        ctx.tell(Event::Lost(why));
        if let Some(left) = left {
            ctx.tell(Event::Left(left));
            return Some(Stage::Ended(left));
        }
        if ctx.keeps() {
            return Keeping::begin(ctx, self.record.term, target);
        }
        Leaving::after_term(ctx, self.record.term, target).enter(ctx)
    }
}

/// Time of the renewal after a write that was sent at `sent`; `None` with manual renewal.
fn next_renewal(ctx: &Context<'_>, sent: Instant) -> Option<Instant> {
    Some(ctx.renewal_after(sent)).filter(|_| !ctx.params.manual)
}
