//! Writes of a contender, and the steps after one of them has landed.

use std::sync::Arc;

use tenure_store::{Expect, Reason, Version};

use super::decide::FoundRecord;
use super::{Seeking, resumed_term};
use crate::Token;
use crate::machine::context::Context;
use crate::machine::holding::Holding;
use crate::machine::leaving::Leaving;
use crate::machine::rules::{Doubt, Floor};
use crate::machine::stage::{Next, STAY};
use crate::machine::tick_reads::NextTick;
use crate::machine::{AcquireMode, Attempt, Denied, Lost, Patience, Purpose, Seen, TermRef, writes};
use crate::record::{End, Record, State};

impl Seeking {
    pub(super) fn plant(&mut self, ctx: &mut Context<'_>, floor: Floor, expect: Expect) -> Next {
        if resumed_term(ctx).is_some() {
            return self.deny(ctx, Denied::StaleHandle(Lost::Deleted));
        }
        let floor = match floor {
            Floor::At(time) => Token::new(time.as_micros()).unwrap_or(Token::ZERO),
            Floor::None | Floor::ReadFirst => Token::ZERO,
        };
        let token = floor.max(ctx.sightings.highest());
        let planted = Record::new(token, ctx.ambient.nonce, ctx.ambient.wall);
        if ctx.rules.plants_first() {
            return ctx.write(Purpose::Plant, expect, planted);
        }
        let granted = writes::granted(&planted, planted.nonce, token, End::Released, ctx.params, ctx.ambient);
        ctx.write(Purpose::Grant, expect, granted)
    }

    pub(super) fn grant(&mut self, ctx: &mut Context<'_>, found: FoundRecord<'_>, end: End) -> Next {
        let FoundRecord { seen, record: old, version } = found;
        let floor = match ctx.rules.floor(seen, ctx.params.store_clock) {
            Floor::None => None,
            Floor::At(_) if !ctx.rules.is_after_plant(seen, ctx.params.clock_tick) => {
                return self.await_tick(ctx, seen);
            }
            Floor::At(time) => Some(time),
            Floor::ReadFirst if self.looked => {
                // The store declares a clock, but the answer to the read had no time.
                return self.deny(ctx, Denied::Refused(Reason::Unsupported));
            }
            Floor::ReadFirst => return self.read(ctx),
        };
        let Some(token) = ctx.rules.next_token(old.token, ctx.sightings.highest(), floor) else {
            return self.deny(ctx, Denied::TokensExhausted);
        };
        *ctx.began = seen.store_time_at(ctx.ambient.now);
        if ctx.began.is_none() && ctx.params.once_per.is_some_and(|period| !period.is_zero()) {
            // Its success could not be recorded, and every contender would be granted.
            return self.deny(ctx, Denied::Unclear(Doubt::NoTime));
        }
        self.pace.found_free();
        let record = writes::granted(old, ctx.nonce(old), token, end, ctx.params, ctx.ambient);
        ctx.write(Purpose::Grant, Expect::Version(version.clone()), record)
    }

    /// Waits for a later time of the store's clock than a planted record has.
    fn await_tick(&mut self, ctx: &mut Context<'_>, seen: &Seen) -> Next {
        let timing = ctx.params.timing;
        let tick = timing.drift().lengthen(ctx.params.clock_tick);
        match self.tick_reads.after(seen, tick, timing.period(), ctx.ambient.now) {
            NextTick::Wait(due) => {
                self.next = Some(due);
                // One more tick for the read and the grant.
                self.first_grant_by.get_or_insert(seen.returned + 2 * tick);
                STAY
            }
            NextTick::Stands => self.deny(ctx, Denied::ClockStands),
            NextTick::Read { again: true } if ctx.params.patience == Patience::Once => {
                self.deny(ctx, Denied::Unavailable(None))
            }
            NextTick::Read { .. } => self.read(ctx),
        }
    }

    /// Continues the term of a handle, if it is the one in this record.
    pub(super) fn resume(
        &mut self,
        ctx: &mut Context<'_>,
        old: &Arc<Record>,
        version: &Version,
        handle: &TermRef,
    ) -> Next {
        let now = ctx.ambient.now;
        let good =
            ctx.rules.may_resume(old, handle) && old.ttl == Some(ctx.own_ttl()) && ctx.knows_the_secret(old);
        if !good {
            return self.deny(ctx, Denied::StaleHandle(Lost::of_handle(old, handle)));
        }
        if !ctx.rules.may_go_on(now, handle.deadline) {
            return self.deny(ctx, Denied::StaleHandle(Lost::Expired));
        }
        if ctx.rules.resume_believes_at_once() {
            let attempt = Attempt { nonce: old.nonce, sent: now, purpose: Purpose::Resume };
            return Holding::begin(ctx, attempt, (Arc::clone(old), version.clone()), handle.deadline);
        }
        let record = writes::resumed(old, ctx.nonce(old), ctx.params, ctx.ambient);
        ctx.write(Purpose::Resume, Expect::Version(version.clone()), record)
    }

    /// A held record that is our own write: the belief counts from when that attempt was sent.
    pub(super) fn adopt(
        &mut self,
        ctx: &mut Context<'_>,
        attempt: Attempt,
        record: &Arc<Record>,
        version: &Version,
    ) -> Next {
        let now = ctx.ambient.now;
        let ttl = record.ttl.unwrap_or(ctx.own_ttl());
        let deadline = ctx.rules.deadline(attempt.sent, now, ttl, ctx.params.timing.drift());
        let learned_by = match &ctx.params.mode {
            AcquireMode::Resume(handle) => ctx.rules.resumable_until(handle.deadline, deadline),
            _ => deadline,
        };
        let target = (Arc::clone(record), version.clone());
        if record.state == State::Held && ctx.rules.may_go_on(now, learned_by) {
            return Holding::begin(ctx, attempt, target, deadline);
        }
        // Learned too late, or revoked before it was learned: it was never believed, and is not wanted like that.
        ctx.attempts.confirm(attempt);
        if let AcquireMode::Resume(handle) = &ctx.params.mode {
            let why = match &record.state {
                State::Held => Lost::Expired,
                _ => Lost::of_handle(record, handle),
            };
            return self.deny(ctx, Denied::StaleHandle(why));
        }
        Leaving::without_work(ctx, Some(record.term), Some(target), true).enter(ctx)
    }
}
