//! Decision of a contender after a read: take the record, inspect its witness, ask for it, or wait.

use std::sync::Arc;

use tenure_store::{Expect, StoreClock, Version};

use super::pace::is_remote;
use super::rhythm::Answer;
use super::{Seeking, resumed_term};
use crate::Instant;
use crate::machine::context::Context;
use crate::machine::outlived::AfterRunOut;
use crate::machine::rules::{Doubt, Due, Floor, shortest_pause};
use crate::machine::stage::{Next, STAY, earliest};
use crate::machine::{
    AcquireMode, Content, Denied, Effect, HeldBy, Patience, Purpose, Remaining, Seen, writes,
};
use crate::record::{End, Record, State};

/// A record that was read.
#[derive(Clone, Copy)]
pub(super) struct FoundRecord<'a> {
    pub(super) seen: &'a Seen,
    pub(super) record: &'a Arc<Record>,
    pub(super) version: &'a Version,
}

/// Reason why a held version is free.
#[derive(Clone, Copy, Debug)]
enum RunOut {
    Not,
    Ttl,
    Dead,
}

impl Seeking {
    /// Takes the next step towards the lease.
    pub(super) fn seek(&mut self, ctx: &mut Context<'_>) -> Next {
        self.next = None;
        let Some(seen) = ctx.sightings.latest().cloned() else { return self.read(ctx) };
        // An earlier sighting allows one attempt: while an own write may have landed, only a read can tell.
        let must_read =
            seen.went_back.is_some() || ctx.attempts.may_land() || !self.can_take_unread(ctx, &seen);
        let fresh = ctx.rules.is_fresh(&seen, ctx.ambient.now, ctx.own_ttl());
        if !fresh || (!self.looked && must_read) {
            return self.read(ctx);
        }
        let floor = ctx.rules.floor(&seen, ctx.params.store_clock);
        if let Some(highest) = seen.went_back
            && !ctx.rules.may_grant_after_going_back(floor)
        {
            return self.deny(ctx, Denied::WentBack { seen: highest });
        }
        match &seen.content {
            Content::Absent if only_ends_a_term(ctx) => self.term_is_over(ctx),
            Content::Absent => self.plant(ctx, floor, Expect::Absent),
            Content::Foreign { version, .. } if ctx.rules.overwrites_foreign() => {
                self.plant(ctx, floor, Expect::Version(version.clone()))
            }
            Content::Foreign { what, .. } => self.deny(ctx, Denied::Foreign(Arc::clone(what))),
            Content::Record(record, version) => {
                self.seek_record(ctx, FoundRecord { seen: &seen, record, version })
            }
        }
    }

    fn seek_record(&mut self, ctx: &mut Context<'_>, found: FoundRecord<'_>) -> Next {
        let FoundRecord { seen, record, version } = found;
        if record.is_held() && ctx.rules.is_ours(record, ctx.mine(resumed_term(ctx))) {
            return self.adopt(ctx, ctx.attempt_behind(record), record, version);
        }
        // A read that was sent after our writes shows another version: the expected one is gone for good.
        let later = ctx.attempts.latest_sent().is_none_or(|sent| sent <= seen.sent);
        if later && ctx.attempts.expects().is_some_and(|expected| expected != version) {
            ctx.attempts.forget_outstanding();
            self.failures = 0;
        }
        // Another contender planted it: the store did not fail.
        if std::mem::take(&mut self.planted_in_vain) {
            self.failures = 0;
        }
        if let AcquireMode::Resume(handle) = &ctx.params.mode {
            return self.resume(ctx, record, version, handle);
        }
        if record.is_key() && !ctx.rules.overwrites_foreign() {
            return self.deny(ctx, Denied::PlainKey(Arc::clone(record)));
        }
        if only_ends_a_term(ctx) && (!record.is_held() || self.term_to_end != Some(record.term)) {
            return self.term_is_over(ctx);
        }
        if !matches!(record.state, State::Closed(_))
            && let Some(next) = self.not_due(ctx, found)
        {
            return next;
        }
        match &record.state {
            State::Closed(_) => self.deny(ctx, Denied::Closed(Arc::clone(record))),
            State::Vacant => self.grant(ctx, found, End::Released),
            State::Reserved(successor) if **successor == **ctx.params.holder.id() => {
                self.grant(ctx, found, End::Released)
            }
            State::Held | State::Revoked(_) | State::Reserved(_) => {
                match (self.run_out(ctx, seen, record), &ctx.params.mode) {
                    (RunOut::Ttl, _) => match ctx.after_run_out(record) {
                        AfterRunOut::Take if only_ends_a_term(ctx) => self.term_is_over(ctx),
                        AfterRunOut::Take => self.grant(ctx, found, End::RanOut),
                        AfterRunOut::Look => STAY,
                        AfterRunOut::Wait(limit) => self.wait_for_tree(ctx, found, limit),
                    },
                    (RunOut::Dead, AcquireMode::EndTerm { .. }) => self.term_is_over(ctx),
                    (RunOut::Dead, _) => self.grant(ctx, found, End::Died),
                    (RunOut::Not, AcquireMode::TakeNow(because)) => {
                        let (by, because) = (Arc::clone(ctx.params.holder.id()), Arc::clone(because));
                        self.grant(ctx, found, End::Revoked { by, because })
                    }
                    (RunOut::Not, AcquireMode::Revoke(because) | AcquireMode::EndTerm { because, .. }) => {
                        self.revoke_or_wait(ctx, found, because)
                    }
                    (RunOut::Not, _) => self.wait(ctx, found),
                }
            }
        }
    }

    /// Denies the lease if the period is not over, or reads again for the store's time; `None` if a grant is due.
    fn not_due(&mut self, ctx: &mut Context<'_>, found: FoundRecord<'_>) -> Option<Next> {
        let period = ctx.params.once_per.filter(|period| !period.is_zero() && !only_ends_a_term(ctx))?;
        let last = found.record.last_success?;
        let due = match found.seen.store_time_at(ctx.ambient.now) {
            Some(now) => ctx.rules.due(last, period, now, ctx.ambient.wall),
            // A store with a clock answers with its time, at the latest when it is asked again.
            None if !self.looked => return Some(self.read(ctx)),
            None => Due::Unclear(Doubt::NoTime),
        };
        let denied = match due {
            Due::Now => return None,
            Due::NotYet { since, left } => Denied::NotDue { token: last.token, since, left },
            Due::Unclear(doubt) => Denied::Unclear(doubt),
        };
        Some(self.deny(ctx, denied))
    }

    /// A stealing contender revokes the term that it found at its start, once. If the work under it cannot be stopped,
    /// it is denied and revokes nothing; its witness is inspected first, since the holder may be dead. A contender that
    /// has revoked already, or waits for another revocation, keeps waiting.
    fn revoke_or_wait(&mut self, ctx: &mut Context<'_>, found: FoundRecord<'_>, because: &Arc<str>) -> Next {
        let FoundRecord { seen, record, version } = found;
        let rules = ctx.rules;
        let is_held = record.state == State::Held;
        let is_first = self.term_to_end.is_none() || is_held;
        let is_wanted = !self.revoked && self.term_to_end.is_none_or(|term| term == record.term);
        if is_wanted && is_first && rules.is_unstoppable(record) && !rules.revokes_unstoppable() {
            if self.looks_at_witness(ctx, record) {
                return STAY;
            }
            return self.deny(ctx, Denied::Unstoppable(held_by(ctx, seen, record)));
        }
        self.term_to_end.get_or_insert(record.term);
        if is_wanted && (is_held || rules.revokes_again()) {
            let nonce = ctx.nonce(record);
            let revoked = writes::revoked(record, nonce, because, ctx.params, ctx.ambient);
            return ctx.write(Purpose::Revoke, Expect::Version(version.clone()), revoked);
        }
        self.wait(ctx, found)
    }

    /// Inspects the witness of a record, once for each answer that shows it; `false` if that was done or there is none.
    fn looks_at_witness(&mut self, ctx: &mut Context<'_>, record: &Record) -> bool {
        let Some(witness) = &record.witness else { return false };
        if self.witness_asked.replace(record.nonce) == Some(record.nonce) {
            return false;
        }
        let nonce = record.holders_nonce();
        *ctx.looking_at_witness = true;
        ctx.effects.push(Effect::LookAtWitness { witness: Arc::clone(witness), nonce });
        true
    }

    fn wait(&mut self, ctx: &mut Context<'_>, found: FoundRecord<'_>) -> Next {
        let FoundRecord { seen, record, .. } = found;
        let looks = self.looks_at_witness(ctx, record);
        if ctx.params.patience == Patience::Once {
            return if looks { STAY } else { self.deny(ctx, Denied::Held(held_by(ctx, seen, record))) };
        }
        let out = runs_out_at(ctx, seen, record);
        let late = self.pace.spread_after_run_out(ctx);
        self.look_later(ctx, found, Some(out + late))
    }

    /// The record has run out, and the work under it still runs.
    fn wait_for_tree(
        &mut self,
        ctx: &mut Context<'_>,
        found: FoundRecord<'_>,
        limit: Option<Instant>,
    ) -> Next {
        match ctx.waits_for_tree(found.record) {
            Some(sighting) if ctx.params.patience == Patience::Once => {
                self.deny(ctx, Denied::Outlived { record: Arc::clone(found.record), sighting })
            }
            _ => self.look_later(ctx, found, limit),
        }
    }

    /// Reads again when it is time to, or at this instant at the latest.
    fn look_later(&mut self, ctx: &Context<'_>, found: FoundRecord<'_>, latest: Option<Instant>) -> Next {
        let FoundRecord { seen, record, .. } = found;
        let ttl = record.ttl.unwrap_or(ctx.own_ttl());
        let hinted = self.pace.waits_for(record);
        let in_crowd = self.pace.is_in_crowd();
        let lasts = ctx.params.timing.drift().lengthen(ttl.as_duration()) * 5 / 24;
        let answer = Answer { sent: seen.sent, returned: seen.returned, lasts, hinted, in_crowd };
        self.rhythm.saw(record, answer, ttl, ctx.ambient.jitter);
        // If the store knows the age of a version, the time of the read does not matter.
        let due = self.rhythm.due().filter(|_| ctx.params.store_clock < StoreClock::Ages);
        let look = ctx.rules.next_look(due, seen.sent, ttl, ctx.ambient.jitter);
        self.next = earliest(Some(look.max(ctx.ambient.now + shortest_pause(ttl))), latest);
        if std::mem::take(&mut self.pace.overtaken) {
            self.next = earliest(self.next, self.pace.look_soon(ctx, seen.sent));
        }
        STAY
    }

    /// True if an earlier sighting allows to take the record without a read: then one write is enough.
    fn can_take_unread(&self, ctx: &Context<'_>, seen: &Seen) -> bool {
        let Content::Record(record, _) = &seen.content else { return false };
        let floor = ctx.rules.floor(seen, ctx.params.store_clock);
        let free = match &record.state {
            _ if record.is_key() => false,
            State::Vacant => true,
            State::Held | State::Revoked(_) | State::Reserved(_) => match self.run_out(ctx, seen, record) {
                RunOut::Not => false,
                // One of many is probably too late, and a read costs less than a write.
                _ if self.pace.is_in_crowd() => false,
                RunOut::Dead => !is_remote(ctx),
                RunOut::Ttl => !ctx.heeds_tree_of(record),
            },
            State::Closed(_) => false,
        };
        free && floor != Floor::ReadFirst && resumed_term(ctx).is_none() && !only_ends_a_term(ctx)
    }

    fn run_out(&self, ctx: &Context<'_>, seen: &Seen, record: &Record) -> RunOut {
        if self.dead_nonce == Some(record.holders_nonce()) && record.is_held() {
            return RunOut::Dead;
        }
        let revoked = self.revoked && matches!(record.state, State::Revoked(_));
        let is_out = runs_out_at(ctx, seen, record) <= ctx.ambient.now;
        if is_out || (revoked && !ctx.rules.waits_after_revoking()) { RunOut::Ttl } else { RunOut::Not }
    }
}

/// True if this contender wants a term to end, and not the lease.
fn only_ends_a_term(ctx: &Context<'_>) -> bool {
    matches!(ctx.params.mode, AcquireMode::EndTerm { .. })
}

/// The holder of this record, for a contender that is denied.
pub(super) fn held_by(ctx: &Context<'_>, seen: &Seen, record: &Arc<Record>) -> HeldBy {
    let at_most = runs_out_at(ctx, seen, record).since(ctx.ambient.now);
    HeldBy { record: Arc::clone(record), remaining: Remaining::new(at_most, seen.from < seen.returned) }
}

/// Instant at which the version has run out.
fn runs_out_at(ctx: &Context<'_>, seen: &Seen, record: &Record) -> Instant {
    let own = ctx.own_ttl();
    ctx.rules.runs_out_at(seen.from, record.ttl.unwrap_or(own), own, ctx.params.timing.drift())
}
