//! Keeping a record: belief is over, the work under the term cannot be stopped, and until it has ended no contender may be
//! granted. So the record is renewed without belief, as long as it is still ours.

use std::sync::Arc;

use tenure_store::Expect;

use super::leaving::{Leaving, Target};
use super::rules::{Verdict, earlier_by_chance};
use super::seeking::{asked_for, landed_version};
use super::{Content, Event, Fault, Flight, Flown, Left, Machine, Outcome, Purpose, Stage, Step, writes};
use crate::Instant;
use crate::record::Nonce;

/// A term without belief, whose work goes on.
#[derive(Debug)]
pub(super) struct Keeping {
    pub(super) term: Nonce,
    /// The record that is kept; `None` if only a read will tell.
    known: Option<Target>,
    /// The instant to renew, or to try again.
    pub(super) next: Option<Instant>,
    /// The number of calls in a row that failed.
    failures: u32,
}

impl Machine {
    /// The holder says that it cannot stop the work under its term.
    pub(super) fn cannot_stop(&mut self, step: &mut Step<'_>, because: Arc<str>) {
        if self.unstoppable.is_some() {
            return;
        }
        self.unstoppable = Some(because);
        match &self.stage {
            // Stealers read it in the record, so it must be there soon.
            Stage::Holding(_) => self.renew_asked(step),
            Stage::Leaving(leaving) if self.keeps() && !self.is_vacating() => {
                if let Some((term, target)) = leaving.undrained() {
                    self.begin_keeping(step, term, target);
                }
            }
            Stage::Lapsed(term) if self.keeps() => self.begin_keeping(step, *term, None),
            Stage::Seeking(_)
            | Stage::Leaving(_)
            | Stage::Keeping(_)
            | Stage::Lapsed(_)
            | Stage::Ended(_) => {}
        }
    }

    /// True if the record of this term is kept when its belief is over.
    pub(super) fn keeps(&self) -> bool {
        self.unstoppable.is_some() && self.rules.keeps_unstoppable()
    }

    /// Begins with the next step: if no work goes on, that is the first thing the machine is told now.
    pub(super) fn begin_keeping(&mut self, step: &mut Step<'_>, term: Nonce, known: Option<Target>) {
        self.stage = Stage::Keeping(Keeping { term, known, next: Some(step.ambient.now), failures: 0 });
        if let Some(because) = self.unstoppable.clone() {
            self.tell(step, Event::Keeping { because });
        }
    }

    pub(super) fn keeping_woken(&mut self, step: &mut Step<'_>) {
        let due = self.keeping().next.is_some_and(|next| next <= step.ambient.now);
        if self.flight.is_none() && due {
            self.keep(step);
        }
    }

    fn keep(&mut self, step: &mut Step<'_>) {
        self.keeping().next = None;
        let Some((record, version)) = self.keeping().known.clone() else { return self.read(step) };
        let ttl = record.ttl.unwrap_or(self.own_ttl());
        let nonce = self.nonce(step, &record);
        let kept = writes::renewed(&record, nonce, ttl, self.unstoppable.as_ref(), step.ambient);
        self.write(step, Purpose::Renew, Expect::Version(version), kept);
    }

    pub(super) fn keeping_written(&mut self, step: &mut Step<'_>, flown: Flown, outcome: Outcome) {
        let fault = outcome.fault();
        match self.rules.verdict(&outcome) {
            Verdict::Done => {
                let version = landed_version(&flown, &outcome);
                self.attempts.confirm(flown.attempt);
                let next =
                    flown.attempt.sent + earlier_by_chance(self.ask.timing.period(), step.ambient.jitter);
                let keeping = self.keeping();
                keeping.known = Some((flown.record, version));
                keeping.failures = 0;
                keeping.next = Some(next.max(step.ambient.now));
            }
            Verdict::NoEffect => self.keep_later(step, fault.unwrap_or(Fault::Unknown)),
            Verdict::ReadBack | Verdict::Lost => {
                // One lost answer is read back at once; a store that answers nothing gets its pause.
                let keeping = self.keeping();
                keeping.known = None;
                keeping.failures = keeping.failures.saturating_add(1);
                match fault {
                    Some(fault @ Fault::Throttled(_)) => self.keep_later(step, fault),
                    _ if self.keeping().failures > 1 => self.keep_later(step, Fault::Unknown),
                    _ => self.keep(step),
                }
            }
        }
    }

    pub(super) fn keeping_read(&mut self, step: &mut Step<'_>, answer: Result<Content, Fault>) {
        match answer {
            Err(fault) => self.keep_later(step, fault),
            Ok(Content::Record(record, version))
                if record.is_held() && self.rules.is_ours(&record, self.mine()) =>
            {
                let attempt = self.attempt_behind(step, &record);
                let landed = self.attempts.expects().is_some_and(|expected| *expected != version);
                if landed {
                    self.attempts.confirm(attempt);
                }
                self.keeping().known = Some((record, version));
                self.keep(step);
            }
            // It is another's by now, or gone. What is not ours is not kept.
            Ok(Content::Absent | Content::Foreign { .. } | Content::Record(..)) => {
                self.tell(step, Event::Left(Left::Nothing));
                self.stage = Stage::Ended(Left::Nothing);
            }
        }
    }

    /// The work has ended: the record is vacated.
    pub(super) fn end_keeping(&mut self, step: &mut Step<'_>) {
        let until = self.lapsed_at(step.ambient.now);
        let unsettled = self.flight.is_some() || self.attempts.may_land();
        let keeping = self.keeping();
        let (term, known) = (keeping.term, keeping.known.take().filter(|_| !unsettled));
        self.stage = Stage::Leaving(Leaving::drained_term(term, known, until));
        self.leave(step);
    }

    /// However long the store asks for, a try comes before the record has run out.
    fn keep_later(&mut self, step: &mut Step<'_>, fault: Fault) {
        let timing = self.ask.timing;
        let growing = timing.retry() * 2u32.pow(self.keeping().failures.clamp(1, 16) - 1);
        let pause = earlier_by_chance(growing.min(timing.retry_max()), step.ambient.jitter);
        let pause = pause.max(asked_for(fault).min(timing.period()));
        self.keeping().next = Some(step.ambient.now + pause);
    }

    fn is_vacating(&self) -> bool {
        matches!(&self.flight, Some(Flight::Write(flown)) if flown.attempt.purpose == Purpose::Vacate)
    }

    fn keeping(&mut self) -> &mut Keeping {
        match &mut self.stage {
            Stage::Keeping(keeping) => keeping,
            stage => unreachable!("not keeping but {stage:?}"),
        }
    }
}
