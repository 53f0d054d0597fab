//! Leaving a lease: belief is over, and what may be in the store of ours is vacated.

use std::sync::Arc;

use tenure_store::{Expect, Reason, Version};

use super::rules::{Verdict, earlier_by_chance};
use super::seeking::{Seeking, asked_for, landed_version};
use super::{
    Attempt, Content, Denied, Event, Fault, Flown, Handle, Left, Machine, Outcome, Purpose, Stage, Step, Way,
    writes,
};
use crate::Instant;
use crate::record::{Nonce, Record};

/// Where somebody is who lets go.
#[derive(Debug)]
pub(super) struct Leaving {
    /// The term that is over; `None` if there never was one.
    pub(super) term: Option<Nonce>,
    /// What to vacate; `None` if only reading will tell.
    target: Option<Target>,
    /// When whatever is there of ours has run out for everybody.
    pub(super) until: Instant,
    /// Whether nobody acts under the term any more.
    drained: bool,
    /// When to try again.
    pub(super) next: Option<Instant>,
    /// How many vacates have failed.
    failures: u32,
    /// Whether to want the lease again afterwards: a grant was learned of too late.
    pub(super) seek_again: bool,
}

/// A record of ours as it is in the store, and its version.
pub(super) type Target = (Arc<Record>, Version);

impl Leaving {
    /// After a term, under which somebody may still be acting.
    pub(super) fn after_term(term: Nonce, target: Option<Target>, until: Instant) -> Self {
        Self { term: Some(term), target, until, drained: false, next: None, failures: 0, seek_again: false }
    }

    /// After a term under which no work goes on any more.
    pub(super) fn drained_term(term: Nonce, target: Option<Target>, until: Instant) -> Self {
        Self { drained: true, ..Self::after_term(term, target, until) }
    }

    /// The term whose work may still go on, if there is one, and what is known of its record.
    pub(super) fn undrained(&self) -> Option<(Nonce, Option<Target>)> {
        self.term.filter(|_| !self.drained).map(|term| (term, self.target.clone()))
    }

    /// After a grant that nobody ever believed.
    pub(super) fn unused(
        term: Option<Nonce>,
        target: Option<Target>,
        until: Instant,
        seek_again: bool,
    ) -> Self {
        Self { term, target, until, drained: true, next: None, failures: 0, seek_again }
    }
}

impl Machine {
    /// Lets go of a term of another process: its record is ours to vacate if it is the one that the handle tells of.
    pub(super) fn leave_by(&mut self, step: &mut Step<'_>, handle: Handle) {
        let now = step.ambient.now;
        self.attempts.confirm(Attempt { nonce: handle.nonce, sent: now, purpose: Purpose::Renew });
        let lapsed = self.lapsed_at(now);
        let until = self.limit().map_or(lapsed, |limit| limit.min(lapsed));
        self.stage = Stage::Leaving(Leaving::unused(Some(handle.term), None, until, false));
        self.leave(step);
    }

    /// Does the next thing towards having left.
    pub(super) fn leave(&mut self, step: &mut Step<'_>) {
        if self.flight.is_some() {
            return;
        }
        let now = step.ambient.now;
        if now >= self.leaving().until {
            return self.finish(step, Left::Lapsing);
        }
        self.leaving().next = None;
        if !self.leaving().drained && !self.rules.vacates_under_work() {
            return;
        }
        match self.leaving().target.clone() {
            None => self.read(step),
            Some((record, version)) => {
                let token = self.rules.token_left_behind(record.token);
                let vacated = writes::vacated(&record, self.nonce(step, &record), token, step.ambient);
                self.write(step, Purpose::Vacate, Expect::Version(version), vacated);
            }
        }
    }

    pub(super) fn leaving_written(&mut self, step: &mut Step<'_>, flown: Flown, outcome: Outcome) {
        let fault = outcome.fault();
        match (self.rules.verdict(&outcome), flown.attempt.purpose) {
            (Verdict::Done, Purpose::Vacate) => self.finish(step, Left::Vacated),
            (Verdict::Done, Purpose::Grant | Purpose::Resume | Purpose::Renew) => {
                // It was under way when we decided to leave, and has landed.
                let version = landed_version(&flown, &outcome);
                self.attempts.confirm(flown.attempt);
                self.leaving().term.get_or_insert(flown.record.term);
                self.leaving().target = Some((flown.record, version));
                self.leave(step);
            }
            (Verdict::NoEffect, _) if self.leaving().term.is_none() && !self.attempts.may_land() => {
                self.finish(step, Left::Nothing);
            }
            (Verdict::NoEffect, _) if fault == Some(Fault::STORE_GONE) => self.finish(step, Left::Lapsing),
            (Verdict::NoEffect, _) => self.leave_later(step, fault.unwrap_or(Fault::Unknown)),
            (Verdict::ReadBack | Verdict::Lost | Verdict::Done, _) => {
                // One lost answer is read back at once; a store that answers nothing gets its pause.
                self.leaving().target = None;
                self.leaving().failures += 1;
                match fault {
                    Some(fault @ Fault::Throttled(_)) => self.leave_later(step, fault),
                    _ if self.leaving().failures > 1 => self.leave_later(step, Fault::Unknown),
                    _ => self.leave(step),
                }
            }
        }
    }

    pub(super) fn leaving_read(&mut self, step: &mut Step<'_>, answer: Result<Content, Fault>) {
        let (record, version) = match answer {
            // Nothing that is vacated there is seen by others any more.
            Err(Fault::STORE_GONE) => return self.finish(step, Left::Lapsing),
            // Whoever has only a handle is told at once what trying again cannot change.
            Err(Fault::Refused(reason))
                if reason != Reason::Unreachable && matches!(self.ask.way, Way::Leave(_)) =>
            {
                return self.finish(step, Left::Lapsing);
            }
            Err(fault) => return self.leave_later(step, fault),
            Ok(Content::Absent | Content::Foreign { .. }) => return self.finish(step, Left::Nothing),
            Ok(Content::Record(record, version)) => (record, version),
        };
        let ours = self.rules.may_vacate(&record, self.mine()) && self.knows_the_secret(&record);
        if record.is_held() && ours {
            self.leaving().target = Some((record, version));
            return self.leave(step);
        }
        let vacated =
            self.attempts.find(record.nonce).is_some_and(|attempt| attempt.purpose == Purpose::Vacate);
        if vacated {
            return self.finish(step, Left::Vacated);
        }
        if self.attempts.expects() == Some(&version) {
            // A grant of ours may land yet. Look again until nobody could mistake it for held.
            return self.leave_later(step, Fault::Unknown);
        }
        self.finish(step, Left::Nothing);
    }

    pub(super) fn leaving_woken(&mut self, step: &mut Step<'_>) {
        let now = step.ambient.now;
        if self.leaving().seek_again && self.limit().is_some_and(|limit| limit <= now) {
            self.leaving().seek_again = false;
            self.tell(step, Event::Denied(Denied::Unavailable(None)));
        }
        let due = self.leaving().next.is_some_and(|next| next <= now);
        if self.flight.is_none() && (due || now >= self.leaving().until) {
            self.leave(step);
        }
    }

    pub(super) fn drained(&mut self, step: &mut Step<'_>) {
        match &mut self.stage {
            Stage::Leaving(leaving) if !leaving.drained => {
                leaving.drained = true;
                self.leave(step);
            }
            Stage::Keeping(_) => self.end_keeping(step),
            Stage::Lapsed(_) => self.stage = Stage::Ended(Left::Lapsing),
            Stage::Seeking(_) | Stage::Holding(_) | Stage::Leaving(_) | Stage::Ended(_) => {}
        }
    }

    fn leave_later(&mut self, step: &mut Step<'_>, fault: Fault) {
        let pause = earlier_by_chance(self.ask.timing.retry() * 2, step.ambient.jitter).max(asked_for(fault));
        self.leaving().next = Some(step.ambient.now + pause);
    }

    fn finish(&mut self, step: &mut Step<'_>, left: Left) {
        if let (Left::Lapsing, Some((term, _))) = (left, self.leaving().undrained()) {
            self.tell(step, Event::Left(left));
            self.stage = Stage::Lapsed(term);
            return;
        }
        self.attempts = super::Attempts::default();
        if self.leaving().seek_again {
            self.stage = Stage::Seeking(Seeking::default());
            return self.seek(step);
        }
        if self.leaving().term.is_some() {
            self.tell(step, Event::Left(left));
        }
        self.stage = Stage::Ended(left);
    }

    fn leaving(&mut self) -> &mut Leaving {
        match &mut self.stage {
            Stage::Leaving(leaving) => leaving,
            stage => unreachable!("not leaving but {stage:?}"),
        }
    }
}
