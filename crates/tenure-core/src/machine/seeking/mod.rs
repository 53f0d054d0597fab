//! Wanting a lease: plant, observe, grant.

mod decide;
mod grant;
mod pace;
mod rhythm;

use std::sync::Arc;
use std::time::Duration;

use tenure_store::Reason;

use super::context::Context;
use super::in_flight::Answered;
use super::leaving::Leaving;
use super::rules::Proof;
use super::stage::{Next, STAY, Stage, earliest};
use super::tick_reads::TickReads;
use super::{
    AcquireMode, Content, Denied, Event, Fault, Left, Lost, Outcome, Patience, Purpose, Seen, Sighting,
};
use crate::Instant;
use crate::record::{Nonce, State};
use decide::held_by;
use pace::{Pace, is_remote};
use rhythm::Rhythm;

/// State of a contender.
#[derive(Debug, Default)]
pub(super) struct Seeking {
    /// True if this contender made or waited out the latest sighting itself.
    looked: bool,
    /// Time of the next read or attempt.
    next: Option<Instant>,
    /// Number of failed calls in a row.
    failures: u32,
    /// True if the latest of them was a plant.
    planted_in_vain: bool,
    tick_reads: TickReads,
    /// Time until which the first grant of a planted record may take, even if the patience ends before.
    first_grant_by: Option<Instant>,
    /// Number of denied reads since the latest read that succeeded.
    denied_reads: u32,
    /// Number of denied writes since the latest write that was not denied: reading may be allowed, and writing denied.
    denied_writes: u32,
    /// Fault of the latest call.
    last_fault: Option<Fault>,
    /// Time for which the store withholds the grant, by its latest answer to one.
    withheld: Option<Duration>,
    pace: Pace,
    rhythm: Rhythm,
    /// The nonce whose witness was inspected.
    witness_asked: Option<Nonce>,
    /// The nonce whose witness proved that no process acts under it.
    dead_nonce: Option<Nonce>,
    /// The term that this contender wants to end: the one it found at its start, and none after it.
    term_to_end: Option<Nonce>,
    /// True if this contender has revoked it.
    revoked: bool,
}

impl Seeking {
    /// Starts to want the lease again.
    pub(super) fn enter(mut self, ctx: &mut Context<'_>) -> Next {
        self.seek(ctx).or(Some(Stage::Seeking(Box::new(self))))
    }

    pub(super) fn started(&mut self, ctx: &mut Context<'_>) -> Next {
        match &ctx.params.mode {
            AcquireMode::Leave(handle) => Leaving::by_handle(ctx, handle).enter(ctx),
            AcquireMode::EndTerm { term, .. } => {
                self.term_to_end = Some(*term);
                self.seek(ctx)
            }
            AcquireMode::Wait | AcquireMode::Revoke(_) | AcquireMode::TakeNow(_) | AcquireMode::Resume(_) => {
                self.seek(ctx)
            }
        }
    }

    /// True if a hint would cause a read, provided no call is pending.
    pub(super) fn is_waiting(&self) -> bool {
        self.next.is_some()
    }

    pub(super) fn wakes_at(&self, ctx: &Context<'_>) -> Option<Instant> {
        earliest(self.limit(ctx), self.next.filter(|_| ctx.is_idle()))
    }

    pub(super) fn read_answered(&mut self, ctx: &mut Context<'_>, answer: Result<Content, Fault>) -> Next {
        if let Err(fault) = answer {
            self.denied_reads += u32::from(fault == Fault::DENIED);
            return self.failed(ctx, fault);
        }
        self.looked = true;
        self.denied_reads = 0;
        self.last_fault = None;
        self.witness_asked = None;
        ctx.forget_outlived_sighting();
        self.seek(ctx)
    }

    pub(super) fn write_answered(&mut self, ctx: &mut Context<'_>, (write, outcome): Answered) -> Next {
        let purpose = write.attempt.purpose;
        let is_denied = outcome.fault() == Some(Fault::DENIED);
        self.denied_writes = if is_denied { self.denied_writes + 1 } else { 0 };
        if matches!(outcome, Outcome::Applied { .. } | Outcome::Conflict) {
            self.withheld = None;
        }
        match (ctx.rules.proof(&outcome), &outcome) {
            (Proof::Done, _) => {
                self.failures = 0;
                if matches!(purpose, Purpose::Grant | Purpose::Resume) {
                    let version = write.landed_version(&outcome);
                    return self.adopt(ctx, write.attempt, &write.record, &version);
                }
                // Our own write need not be read.
                self.looked = purpose == Purpose::Revoke;
                self.revoked |= self.looked;
                self.seek(ctx)
            }
            (Proof::NoEffect, Outcome::Fault(fault))
            | (Proof::ReadBack, Outcome::Fault(fault @ Fault::Throttled(_))) => self.failed(ctx, *fault),
            (_, outcome) => {
                // One lost answer, or one conflict, is read back at once. If it fails again without a change, the store
                // gets a pause.
                if matches!(outcome, Outcome::Conflict) {
                    self.pace.others_were_faster();
                }
                if self.failures > 0 {
                    return self.failed(ctx, outcome.fault().unwrap_or(Fault::Unknown));
                }
                self.failures = 1;
                self.planted_in_vain = purpose == Purpose::Plant;
                self.read(ctx)
            }
        }
    }

    /// A call failed: retry later, unless that cannot help.
    fn failed(&mut self, ctx: &mut Context<'_>, fault: Fault) -> Next {
        self.looked = false;
        self.last_fault = Some(fault);
        if let Fault::Withheld(after) = fault {
            self.withheld = Some(after);
        }
        match fault {
            Fault::DENIED if waits_for_credentials(ctx) => {
                let denials = self.denied_reads + self.denied_writes;
                let Some(pause) = ctx.rules.pause_after_denied(denials, ctx.ambient.jitter) else {
                    return self.deny(ctx, Denied::Refused(Reason::Denied));
                };
                self.next = Some(ctx.ambient.now + pause);
                return STAY;
            }
            Fault::Refused(reason) if reason != Reason::Unreachable => {
                return self.deny(ctx, Denied::Refused(reason));
            }
            _ if ctx.params.patience == Patience::Once => {
                return self.deny(ctx, Denied::after(Some(fault)));
            }
            _ => {}
        }
        let pause = ctx.pause_after(self.failures).max(fault.asked_pause());
        self.failures = self.failures.saturating_add(1);
        self.next = Some(ctx.ambient.now + pause);
        STAY
    }

    pub(super) fn woken(&mut self, ctx: &mut Context<'_>) -> Next {
        let now = ctx.ambient.now;
        if self.limit(ctx).is_some_and(|limit| limit <= now) {
            return self.deny(ctx, self.out_of_patience(ctx));
        }
        if !ctx.is_idle() || self.next.is_none_or(|next| next > now) {
            return STAY;
        }
        // Either the version seen has run out by now, or it is time to read again.
        self.looked = false;
        self.seek(ctx)
    }

    /// End of the patience. It does not interrupt the first grant of a planted record, which waits for the store's clock
    /// and for no holder. Otherwise a patience shorter than a tick would never be enough, however often a contender
    /// tries.
    fn limit(&self, ctx: &Context<'_>) -> Option<Instant> {
        let limit = ctx.limit()?;
        let planted = ctx.sightings.latest().is_some_and(Seen::is_planted);
        Some(self.first_grant_by.filter(|_| planted).map_or(limit, |by| by.max(limit)))
    }

    fn out_of_patience(&self, ctx: &Context<'_>) -> Denied {
        match (self.last_fault, ctx.sightings.latest()) {
            _ if matches!(ctx.params.mode, AcquireMode::Resume(_)) => Denied::StaleHandle(Lost::Expired),
            (None, Some(seen @ Seen { content: Content::Record(record, _), .. }))
                if record.state != State::Vacant =>
            {
                match ctx.waits_for_tree(record) {
                    Some(sighting) => Denied::Outlived { record: Arc::clone(record), sighting },
                    None => Denied::Held(held_by(ctx, seen, record)),
                }
            }
            // The patience may end during the next attempt, after a read that succeeded.
            (None, _) => self.withheld.map_or(Denied::Unavailable(None), Denied::Withheld),
            (last_fault, _) => Denied::after(last_fault),
        }
    }

    /// A hint is worth a read, but with a pause between two of them: some stores hint at every renewal, and some all
    /// the time.
    pub(super) fn hinted(&mut self, ctx: &mut Context<'_>) -> Next {
        let Some(next) = self.next.filter(|_| ctx.is_idle()) else {
            // A read or an inspection of a witness is pending.
            self.pace.overtaken = true;
            return STAY;
        };
        if self.last_fault.is_some() {
            return STAY;
        }
        let now = ctx.ambient.now;
        let looked = ctx.sightings.latest().map_or(now, |seen| seen.sent);
        self.next = earliest(Some(next), self.pace.look_soon(ctx, looked));
        if self.next.is_some_and(|next| next <= now) {
            self.next = None;
            return self.read(ctx);
        }
        STAY
    }

    /// A witness was inspected: because this contender `asked`, or because the witness has changed. `freed` if it shows the
    /// end of the work that the contender waited for.
    pub(super) fn witnessed(
        &mut self,
        ctx: &mut Context<'_>,
        (nonce, sighting): (Nonce, Sighting),
        asked: bool,
        freed: bool,
    ) -> Next {
        if ctx.rules.is_dead(sighting) {
            self.dead_nonce = Some(nonce);
        }
        let matters = self.dead_nonce == Some(nonce) || self.next.is_none() || freed;
        if !ctx.is_idle() || !self.looked || !matters {
            return STAY;
        }
        let late = self.pace.spread_after_death(ctx);
        if asked || late.is_zero() || self.next.is_none() {
            return self.seek(ctx);
        }
        self.next = earliest(self.next, Some(ctx.ambient.now + late));
        STAY
    }

    /// Ends the wanting. A write that may still land is left to be vacated.
    pub(super) fn deny(&self, ctx: &mut Context<'_>, denied: Denied) -> Next {
        ctx.tell(Event::Denied(denied));
        if !ctx.attempts.may_land() {
            return Some(Stage::Ended(Left::Nothing));
        }
        let term = resumed_term(ctx);
        if term.is_some() && !ctx.rules.vacates_doubtful_resume() {
            return Some(Stage::Ended(Left::Lapsing));
        }
        Leaving::without_work(ctx, term, None, false).enter(ctx)
    }

    /// The term that this contender wanted to end is over, and it wanted nothing else.
    fn term_is_over(&self, ctx: &mut Context<'_>) -> Next {
        ctx.tell(Event::Left(Left::Nothing));
        Some(Stage::Ended(Left::Nothing))
    }

    fn read(&mut self, ctx: &mut Context<'_>) -> Next {
        self.pace.overtaken = false;
        ctx.read()
    }
}

/// True if a denied answer does not end the wait at once, because credentials may be in rotation. A store on this machine
/// has none, and the owner of a handle receives every denial at once.
fn waits_for_credentials(ctx: &Context<'_>) -> bool {
    is_remote(ctx) && ctx.params.patience != Patience::Once && resumed_term(ctx).is_none()
}

/// The term that a contender resumes, if it has one.
fn resumed_term(ctx: &Context<'_>) -> Option<Nonce> {
    match &ctx.params.mode {
        AcquireMode::Resume(handle) => Some(handle.term),
        _ => None,
    }
}
