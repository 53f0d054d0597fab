//! Leaving a lease: the belief has ended, and the remaining record of this lease is vacated.

use std::sync::Arc;

use tenure_store::{Expect, Reason, Version};

use super::context::Context;
use super::in_flight::{Answered, InFlight};
use super::keeping::Keeping;
use super::rules::Proof;
use super::seeking::Seeking;
use super::stage::{Next, STAY, Stage, earliest};
use super::{AcquireMode, Attempt, Attempts, Content, Denied, Event, Fault, Left, Purpose, TermRef, writes};
use crate::Instant;
use crate::record::{Nonce, Record};

/// State of a former holder that leaves.
#[derive(Debug)]
pub(super) struct Leaving {
    /// The term that is over; `None` if there was none.
    term: Option<Nonce>,
    /// The record to vacate; `None` if only a read can tell.
    target: Option<OwnRecord>,
    /// Instant at which the remaining record has run out for all contenders.
    until: Instant,
    /// True if no work runs under the term any more.
    drained: bool,
    /// Time of the next attempt.
    next: Option<Instant>,
    /// Number of failed vacates.
    failures: u32,
    /// Number of pauses after failed calls.
    pauses: u32,
    /// True if the lease is wanted again afterwards: a grant was learned of too late.
    seek_again: bool,
    /// True once a vacate was sent, or a call failed after the record had run out.
    tried: bool,
    /// True if the end was reported already: the record had run out under work.
    told: bool,
}

/// An own record in the store, with its version.
pub(super) type OwnRecord = (Arc<Record>, Version);

impl Leaving {
    /// After a term under which work may still run.
    pub(super) fn after_term(ctx: &Context<'_>, term: Nonce, target: Option<OwnRecord>) -> Self {
        Self { drained: false, ..Self::without_work(ctx, Some(term), target, false) }
    }

    /// After a term without remaining work, or after a grant that was never believed.
    pub(super) fn without_work(
        ctx: &Context<'_>,
        term: Option<Nonce>,
        target: Option<OwnRecord>,
        seek_again: bool,
    ) -> Self {
        Self {
            term,
            target,
            until: ctx.lapsed_at(),
            drained: true,
            next: None,
            failures: 0,
            pauses: 0,
            seek_again,
            tried: false,
            told: false,
        }
    }

    /// After the end of the work under a term that has run out.
    pub(super) fn after_lapse(ctx: &Context<'_>, term: Nonce) -> Self {
        Self { told: true, ..Self::without_work(ctx, Some(term), None, false) }
    }

    /// After a term of another process: its record may be vacated if it is the one of the handle.
    pub(super) fn by_handle(ctx: &mut Context<'_>, handle: &TermRef) -> Self {
        let sent = ctx.ambient.now;
        ctx.attempts.confirm(Attempt { nonce: handle.nonce, sent, purpose: Purpose::Renew });
        let mut leaving = Self::without_work(ctx, Some(handle.term), None, false);
        leaving.until = ctx.limit().map_or(leaving.until, |limit| limit.min(leaving.until));
        leaving
    }

    /// Starts to leave.
    pub(super) fn enter(mut self, ctx: &mut Context<'_>) -> Next {
        self.leave(ctx).or(Some(Stage::Leaving(self)))
    }

    pub(super) fn wakes_at(&self, ctx: &Context<'_>) -> Option<Instant> {
        // While a call is pending there is nothing to do at the end but wait for its answer.
        let limit = ctx.limit().filter(|_| self.seek_again);
        earliest(limit, earliest(Some(self.until), self.next).filter(|_| ctx.is_idle()))
    }

    /// Takes the next step.
    fn leave(&mut self, ctx: &mut Context<'_>) -> Next {
        if !ctx.is_idle() {
            return STAY;
        }
        let may_vacate = self.drained || ctx.rules.vacates_under_work();
        // After the record has run out, the machine still tries once to vacate it: contenders that have not seen the record
        // for long would wait for its whole ttl. The write replaces the own record alone.
        if ctx.ambient.now >= self.until && (self.tried || !may_vacate) {
            return self.finish(ctx, Left::Lapsing);
        }
        self.next = None;
        if !may_vacate {
            return STAY;
        }
        let Some((record, version)) = &self.target else { return ctx.read() };
        self.tried = true;
        let token = ctx.rules.token_left_behind(record.token);
        let success = ctx.success_of(record);
        let vacated = writes::vacated(record, ctx.nonce(record), token, success, ctx.ambient);
        ctx.write(Purpose::Vacate, Expect::Version(version.clone()), vacated)
    }

    pub(super) fn write_answered(&mut self, ctx: &mut Context<'_>, (write, outcome): Answered) -> Next {
        let fault = outcome.fault();
        match (ctx.rules.proof(&outcome), write.attempt.purpose) {
            (Proof::Done, Purpose::Vacate) => self.finish(ctx, Left::Vacated),
            (Proof::Done, Purpose::Grant | Purpose::Resume | Purpose::Renew) => {
                // It was pending when leaving began, and has landed.
                let version = write.landed_version(&outcome);
                ctx.attempts.confirm(write.attempt);
                self.term.get_or_insert(write.record.term);
                self.target = Some((write.record, version));
                self.leave(ctx)
            }
            (Proof::NoEffect, _) if self.term.is_none() && !ctx.attempts.may_land() => {
                self.finish(ctx, Left::Nothing)
            }
            (Proof::NoEffect, _) if fault == Some(Fault::STORE_GONE) => self.finish(ctx, Left::Lapsing),
            (Proof::NoEffect, _) => self.leave_later(ctx, fault.unwrap_or(Fault::Unknown)),
            (Proof::ReadBack | Proof::Lost | Proof::Done, _) => {
                // One lost answer is read back at once; after that the store gets a pause.
                self.target = None;
                self.failures += 1;
                match fault {
                    Some(fault @ Fault::Throttled(_)) => self.leave_later(ctx, fault),
                    _ if self.failures > 1 => self.leave_later(ctx, Fault::Unknown),
                    _ => self.leave(ctx),
                }
            }
        }
    }

    pub(super) fn read_answered(&mut self, ctx: &mut Context<'_>, answer: Result<Content, Fault>) -> Next {
        let (record, version) = match answer {
            // A vacate there would not be visible to other processes any more.
            Err(Fault::STORE_GONE) => return self.finish(ctx, Left::Lapsing),
            // The owner of a handle receives at once an error that a retry cannot change.
            Err(Fault::Refused(reason))
                if reason != Reason::Unreachable && matches!(ctx.params.mode, AcquireMode::Leave(_)) =>
            {
                return self.finish(ctx, Left::Lapsing);
            }
            Err(fault) => return self.leave_later(ctx, fault),
            Ok(Content::Absent | Content::Foreign { .. }) => return self.finish(ctx, Left::Nothing),
            Ok(Content::Record(record, version)) => (record, version),
        };
        let ours = ctx.rules.may_vacate(&record, ctx.mine(self.term)) && ctx.knows_the_secret(&record);
        if record.is_held() && ours {
            self.target = Some((record, version));
            return self.leave(ctx);
        }
        let vacated =
            ctx.attempts.find(record.nonce).is_some_and(|attempt| attempt.purpose == Purpose::Vacate);
        if vacated {
            return self.finish(ctx, Left::Vacated);
        }
        if ctx.attempts.expects() == Some(&version) {
            // An own grant may still land. Read again until no contender could mistake it for held.
            return self.leave_later(ctx, Fault::Unknown);
        }
        self.finish(ctx, Left::Nothing)
    }

    pub(super) fn woken(&mut self, ctx: &mut Context<'_>) -> Next {
        let now = ctx.ambient.now;
        if ctx.limit().is_some_and(|limit| limit <= now) {
            self.give_up(ctx, Denied::Unavailable(None));
        }
        let due = self.next.is_some_and(|next| next <= now);
        if due || now >= self.until { self.leave(ctx) } else { STAY }
    }

    pub(super) fn released(&mut self, ctx: &mut Context<'_>) -> Next {
        self.give_up(ctx, Denied::Cancelled);
        STAY
    }

    /// Does not want the lease again afterwards.
    fn give_up(&mut self, ctx: &mut Context<'_>, denied: Denied) {
        if std::mem::take(&mut self.seek_again) {
            ctx.tell(Event::Denied(denied));
        }
    }

    pub(super) fn drained(&mut self, ctx: &mut Context<'_>) -> Next {
        if std::mem::replace(&mut self.drained, true) { STAY } else { self.leave(ctx) }
    }

    /// The work under the term cannot be stopped: its record is kept, unless it is being vacated.
    pub(super) fn cannot_stop(&mut self, ctx: &mut Context<'_>) -> Next {
        let vacates = matches!(&ctx.in_flight, Some(InFlight::Write(write)) if write.attempt.purpose == Purpose::Vacate);
        match self.undrained_term() {
            Some(term) if ctx.keeps() && !vacates => Keeping::begin(ctx, term, self.target.take()),
            _ => STAY,
        }
    }

    /// The term whose work may still run, if there is one.
    fn undrained_term(&self) -> Option<Nonce> {
        self.term.filter(|_| !self.drained)
    }

    fn leave_later(&mut self, ctx: &Context<'_>, fault: Fault) -> Next {
        self.pauses = self.pauses.saturating_add(1);
        self.tried |= ctx.ambient.now >= self.until;
        self.next = Some(ctx.ambient.now + ctx.pause_after(self.pauses).max(fault.asked_pause()));
        STAY
    }

    fn finish(&self, ctx: &mut Context<'_>, left: Left) -> Next {
        if let (Left::Lapsing, Some(term)) = (left, self.undrained_term()) {
            ctx.tell(Event::Left(left));
            return Some(Stage::Lapsed(term));
        }
        *ctx.attempts = Attempts::default();
        if self.seek_again {
            return Seeking::default().enter(ctx);
        }
        if self.term.is_some() && !self.told {
            ctx.tell(Event::Left(left));
        }
        Some(Stage::Ended(left))
    }
}
