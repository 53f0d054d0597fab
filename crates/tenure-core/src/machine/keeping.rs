//! Keeping a record: the belief has ended, the work under the term cannot be stopped, and no contender may be granted
//! until it has ended. So the record is renewed without belief, as long as it belongs to this term.

use std::sync::Arc;

use tenure_store::Expect;

use super::context::Context;
use super::in_flight::Answered;
use super::leaving::{Leaving, OwnRecord};
use super::rules::Proof;
use super::stage::{Next, STAY, Stage};
use super::{Content, Event, Fault, Left, Purpose, writes};
use crate::Instant;
use crate::record::Nonce;

/// A term without belief whose work still runs.
#[derive(Debug)]
pub(super) struct Keeping {
    term: Nonce,
    /// The kept record; `None` if only a read can tell.
    known: Option<OwnRecord>,
    /// Time of the next renewal or retry.
    next: Option<Instant>,
    /// Number of failed calls in a row.
    failures: u32,
}

impl Keeping {
    /// Starts with the next step: if no work runs, that is the next input.
    pub(super) fn begin(ctx: &mut Context<'_>, term: Nonce, known: Option<OwnRecord>) -> Next {
        if let Some(because) = ctx.unstoppable {
            ctx.tell(Event::Keeping { because: Arc::clone(because) });
        }
        Some(Stage::Keeping(Self { term, known, next: Some(ctx.ambient.now), failures: 0 }))
    }

    pub(super) fn wakes_at(&self, ctx: &Context<'_>) -> Option<Instant> {
        self.next.filter(|_| ctx.is_idle())
    }

    pub(super) fn woken(&mut self, ctx: &mut Context<'_>) -> Next {
        let due = self.next.is_some_and(|next| next <= ctx.ambient.now);
        if ctx.is_idle() && due { self.keep(ctx) } else { STAY }
    }

    fn keep(&mut self, ctx: &mut Context<'_>) -> Next {
        self.next = None;
        let Some((record, version)) = &self.known else { return ctx.read() };
        let ttl = record.ttl.unwrap_or(ctx.own_ttl());
        let nonce = ctx.nonce(record);
        let kept = writes::renewed(record, nonce, ttl, ctx.unstoppable, ctx.ambient);
        ctx.write(Purpose::Renew, Expect::Version(version.clone()), kept)
    }

    pub(super) fn write_answered(&mut self, ctx: &mut Context<'_>, (write, outcome): Answered) -> Next {
        let fault = outcome.fault();
        match ctx.rules.proof(&outcome) {
            Proof::Done => {
                ctx.attempts.confirm(write.attempt);
                self.next = Some(ctx.renewal_after(write.attempt.sent));
                self.known = Some((Arc::clone(&write.record), write.landed_version(&outcome)));
                self.failures = 0;
                STAY
            }
            Proof::NoEffect => self.keep_later(ctx, fault.unwrap_or(Fault::Unknown)),
            Proof::ReadBack | Proof::Lost => {
                // One lost answer is read back at once; after that the store gets a pause.
                self.known = None;
                match fault {
                    Some(fault @ Fault::Throttled(_)) => self.keep_later(ctx, fault),
                    _ if self.failures > 0 => self.keep_later(ctx, Fault::Unknown),
                    _ => {
                        self.failures = 1;
                        self.keep(ctx)
                    }
                }
            }
        }
    }

    pub(super) fn read_answered(&mut self, ctx: &mut Context<'_>, answer: Result<Content, Fault>) -> Next {
        match answer {
            Err(fault) => self.keep_later(ctx, fault),
            Ok(Content::Record(record, version))
                if record.is_held() && ctx.rules.is_ours(&record, ctx.mine(Some(self.term))) =>
            {
                let attempt = ctx.attempt_behind(&record);
                if ctx.attempts.expects().is_some_and(|expected| *expected != version) {
                    ctx.attempts.confirm(attempt);
                }
                self.known = Some((record, version));
                self.keep(ctx)
            }
            // It belongs to another holder by now, or is gone. A foreign record is not kept.
            Ok(Content::Absent | Content::Foreign { .. } | Content::Record(..)) => {
                ctx.tell(Event::Left(Left::Nothing));
                Some(Stage::Ended(Left::Nothing))
            }
        }
    }

    /// The work has ended: vacate the record.
    pub(super) fn drained(&mut self, ctx: &mut Context<'_>) -> Next {
        let settled = ctx.is_idle() && !ctx.attempts.may_land();
        let known = self.known.take().filter(|_| settled);
        Leaving::without_work(ctx, Some(self.term), known, false).enter(ctx)
    }

    /// Whatever delay the store asks for, there is an attempt before the record has run out.
    fn keep_later(&mut self, ctx: &Context<'_>, fault: Fault) -> Next {
        self.failures = self.failures.saturating_add(1);
        let asked = fault.asked_pause().min(ctx.params.timing.period());
        self.next = Some(ctx.ambient.now + ctx.pause_after(self.failures).max(asked));
        STAY
    }
}
