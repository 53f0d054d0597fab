//! The whole protocol as a state machine without I/O, clock or randomness: inputs in, effects out.
//!
//! A [`Machine`] is one lease, from wanting it to having left it:
//!
//! ```text
//!            Start                 granted                 lost, released
//!   ─────────────────▶  Seeking  ──────────▶  Holding  ────────────────────▶  Leaving  ──▶  Ended
//!                       (seeking.rs)          (holding.rs)                    (leaving.rs)
//!                          │  denied, cancelled: what may still land is vacated  ▲
//!                          └─────────────────────────────────────────────────────┘
//! ```
//!
//! Between Holding and Leaving there may be Keeping (keeping.rs): belief is over, and the work cannot be stopped.
//!
//! It never asks anybody anything. [`step`](Machine::step) takes an [`Input`] and the [`Ambient`] world, and answers
//! with [`Effect`]s: at most one read or write is under way at any time. *How* it decides is in [`rules`], one named
//! function per decision; the stages only ask them in the right order. The same code runs in the simulation and under
//! the real driver.

mod ask;
mod attempts;
mod denied;
mod effect;
mod holding;
mod input;
mod keeping;
mod leaving;
mod lost;
mod observer;
mod outlived;
pub mod rules;
mod seeking;
mod sightings;
mod standing;
mod writes;

use std::sync::Arc;

use tenure_store::{Expect, Version};

pub use ask::{Ask, Handle, Heed, Patience, Way};
pub use attempts::{Attempt, Attempts};
pub use denied::Denied;
pub use effect::{Effect, Event, Left, Purpose, Write};
pub use input::{Ambient, Content, Fault, Input, Look, Outcome, Sighting};
pub use lost::Lost;
pub use observer::{Glance, Observer};
pub use rules::{Rules, Standard};
pub use seeking::why_not_ours;
pub use sightings::{Recalled, Seen, Sightings};
pub use standing::{Remaining, Standing};

use crate::record::{Nonce, Record, Ttl, Witness};
use crate::{Instant, Token};
use holding::Holding;
use keeping::Keeping;
use leaving::Leaving;
use outlived::Outlived;
use rules::Mine;
use seeking::Seeking;

/// One lease, from wanting it to having left it.
#[derive(Debug)]
pub struct Machine {
    rules: &'static dyn Rules,
    ask: Ask,
    stage: Stage,
    flight: Option<Flight>,
    attempts: Attempts,
    asleep_until: Option<Instant>,
    /// The reason why the work under the term cannot be stopped, once its holder has said so.
    unstoppable: Option<Arc<str>>,
    /// The record that was last seen to run out by its ttl.
    outlived: Option<Outlived>,
    /// True if a look at a witness is under way.
    looking: bool,
}

#[derive(Debug)]
enum Stage {
    Seeking(Seeking),
    Holding(Holding),
    /// Belief is over, and the work goes on.
    Keeping(Keeping),
    Leaving(Leaving),
    /// The record has run out, and the work under this term may still go on.
    Lapsed(Nonce),
    Ended(Left),
}

/// The one call that is under way, with the greatest token that had been seen when it was sent.
#[derive(Debug)]
enum Flight {
    Read { sent: Instant, highest: Token },
    Write(Flown),
}

/// A write that is under way.
#[derive(Debug)]
struct Flown {
    attempt: Attempt,
    record: Arc<Record>,
    expect: Expect,
    highest: Token,
}

/// What one step may use.
struct Step<'a> {
    ambient: &'a Ambient,
    sightings: &'a mut Sightings,
    effects: &'a mut Vec<Effect>,
}

impl Machine {
    /// A machine that wants what `ask` says. It does nothing before [`Input::Start`].
    pub fn new(ask: Ask) -> Self {
        Self::with_rules(ask, &Standard)
    }

    /// A machine under other rules, for the simulation.
    pub fn with_rules(ask: Ask, rules: &'static dyn Rules) -> Self {
        let stage = Stage::Seeking(Seeking::default());
        Self {
            rules,
            ask,
            stage,
            flight: None,
            attempts: Attempts::default(),
            asleep_until: None,
            unstoppable: None,
            outlived: None,
            looking: false,
        }
    }

    /// Names the witness of this holder, which takes a moment to make. Only before the answer to its first read, or
    /// before [`Input::Start`].
    pub fn name_witness(&mut self, witness: Arc<Witness>) {
        self.ask.witness = Some(witness);
    }

    /// Takes an input and appends what shall be done.
    ///
    /// `sightings` is what this process has seen of the key; all its machines for the key share it.
    pub fn step(
        &mut self,
        ambient: &Ambient,
        sightings: &mut Sightings,
        input: Input,
        effects: &mut Vec<Effect>,
    ) {
        let step = &mut Step { ambient, sightings, effects };
        match input {
            Input::Start => self.start(step),
            Input::Read(answer) => self.read_answered(step, answer),
            Input::Written(outcome) => self.write_answered(step, outcome),
            Input::Wake => {
                self.asleep_until = None;
                self.woken(step);
            }
            Input::Changed => self.hinted(step),
            Input::Doubted => self.doubted(step),
            Input::Witness { nonce, sighting } => self.witnessed(step, nonce, sighting),
            Input::Renew => self.renew_asked(step),
            Input::Release => self.released(step),
            Input::Drained => self.drained(step),
            Input::Latched => self.latched(step),
            Input::CannotStop(because) => self.cannot_stop(step, because),
        }
        self.sleep(step);
    }

    /// Whether it has ended: it wants nothing any more and nothing of it can land.
    pub fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_) | Stage::Lapsed(_))
    }

    /// True if it has ended by letting its record run out while work under the term may still go on. Then
    /// [`Input::CannotStop`] makes it go on.
    pub fn has_lapsed_under_work(&self) -> bool {
        matches!(self.stage, Stage::Lapsed(_))
    }

    /// What it left behind, once it has ended.
    pub fn left(&self) -> Option<Left> {
        match self.stage {
            Stage::Ended(left) => Some(left),
            Stage::Lapsed(_) => Some(Left::Lapsing),
            _ => None,
        }
    }

    /// Whether it wants the lease and a hint that the key changed would make it look.
    pub fn is_waiting(&self) -> bool {
        matches!(&self.stage, Stage::Seeking(seeking) if self.flight.is_none() && seeking.next.is_some())
    }

    /// Whether it wants the lease and does not have it yet.
    pub fn is_seeking(&self) -> bool {
        matches!(self.stage, Stage::Seeking(_))
    }

    /// True while the term is held.
    pub fn is_holding(&self) -> bool {
        matches!(self.stage, Stage::Holding(_))
    }

    /// What is needed to go on with the term after a restart, while it is held.
    pub fn handle(&self) -> Option<Handle> {
        match &self.stage {
            Stage::Holding(holding) => Some(holding.handle()),
            _ => None,
        }
    }

    /// The record as this lease wrote it last, while it is held.
    pub fn record(&self) -> Option<&Arc<Record>> {
        match &self.stage {
            Stage::Holding(holding) => Some(&holding.record),
            _ => None,
        }
    }

    // ── inputs ────────────────────────────────────────────────────────────────────────────────────────────────────

    fn start(&mut self, step: &mut Step<'_>) {
        match &self.ask.way {
            Way::Leave(handle) => self.leave_by(step, handle.clone()),
            Way::Wait | Way::Revoke(_) | Way::TakeNow(_) | Way::Resume(_) => self.seek(step),
        }
    }

    fn read_answered(&mut self, step: &mut Step<'_>, answer: Result<Look, Fault>) {
        let Some(Flight::Read { sent, highest }) = self.flight.take() else {
            unreachable!("an answer to a read that was not sent");
        };
        if let Ok(look) = &answer {
            self.note_look(step, sent, highest, look);
        }
        let answer = answer.map(|look| look.content);
        match &self.stage {
            Stage::Seeking(_) => self.seeking_read(step, answer),
            Stage::Holding(_) => self.holding_read(step, answer),
            Stage::Keeping(_) => self.keeping_read(step, answer),
            Stage::Leaving(_) => self.leaving_read(step, answer),
            Stage::Lapsed(_) | Stage::Ended(_) => {}
        }
    }

    fn write_answered(&mut self, step: &mut Step<'_>, outcome: Outcome) {
        let Some(Flight::Write(flown)) = self.flight.take() else {
            unreachable!("an answer to a write that was not sent");
        };
        if let Outcome::Applied { version, time } = &outcome {
            self.note_write(step, &flown, version, *time);
        }
        if !self.rules.stays_outstanding(&outcome) {
            self.attempts.settle(flown.attempt.nonce);
        }
        match &self.stage {
            Stage::Seeking(_) => self.seeking_written(step, flown, outcome),
            Stage::Holding(_) => self.holding_written(step, flown, outcome),
            Stage::Keeping(_) => self.keeping_written(step, flown, outcome),
            Stage::Leaving(_) => self.leaving_written(step, flown, outcome),
            Stage::Lapsed(_) | Stage::Ended(_) => {}
        }
    }

    fn woken(&mut self, step: &mut Step<'_>) {
        match &self.stage {
            Stage::Seeking(_) => self.seeking_woken(step),
            Stage::Holding(_) => self.holding_woken(step),
            Stage::Keeping(_) => self.keeping_woken(step),
            Stage::Leaving(_) => self.leaving_woken(step),
            Stage::Lapsed(_) | Stage::Ended(_) => {}
        }
    }

    fn released(&mut self, step: &mut Step<'_>) {
        match &mut self.stage {
            Stage::Seeking(_) => self.deny(step, Denied::Cancelled),
            Stage::Holding(_) => self.lose(step, Lost::Released),
            Stage::Leaving(leaving) => {
                if std::mem::take(&mut leaving.seek_again) {
                    self.tell(step, Event::Denied(Denied::Cancelled));
                }
            }
            Stage::Keeping(_) | Stage::Lapsed(_) | Stage::Ended(_) => {}
        }
    }

    // ── effects ───────────────────────────────────────────────────────────────────────────────────────────────────

    fn read(&mut self, step: &mut Step<'_>) {
        assert!(self.flight.is_none(), "one call at a time");
        if let Stage::Seeking(seeking) = &mut self.stage {
            seeking.overtaken = false;
        }
        self.flight = Some(Flight::Read { sent: step.ambient.now, highest: step.sightings.highest() });
        step.effects.push(Effect::Read);
    }

    /// Sends a write. Those that expect a version stay ours to account for until they are settled.
    fn write(&mut self, step: &mut Step<'_>, purpose: Purpose, expect: Expect, record: Record) {
        assert!(self.flight.is_none(), "one call at a time");
        let attempt = Attempt { nonce: record.nonce, sent: step.ambient.now, purpose };
        if let (Expect::Version(version), true) = (&expect, purpose.is_of_a_term()) {
            self.attempts.add(attempt, version);
        }
        let record = Arc::new(record);
        let write = Write { purpose, expect: expect.clone(), record: Arc::clone(&record) };
        let highest = step.sightings.highest();
        self.flight = Some(Flight::Write(Flown { attempt, record, expect, highest }));
        step.effects.push(Effect::Write(write));
    }

    fn tell(&self, step: &mut Step<'_>, event: Event) {
        step.effects.push(Effect::Tell(event));
    }

    /// Asks to be woken when the stage next has something to do by itself.
    fn sleep(&mut self, step: &mut Step<'_>) {
        let idle = self.flight.is_none();
        let wake = match &self.stage {
            Stage::Seeking(seeking) => earliest(self.limit(), seeking.next.filter(|_| idle)),
            Stage::Holding(holding) => earliest(Some(holding.deadline), holding.next.filter(|_| idle)),
            Stage::Leaving(leaving) => {
                // While a call is under way there is nothing to do at the end but wait for its answer.
                let limit = self.limit().filter(|_| leaving.seek_again);
                earliest(limit, earliest(Some(leaving.until), leaving.next).filter(|_| idle))
            }
            Stage::Keeping(keeping) => keeping.next.filter(|_| idle),
            Stage::Lapsed(_) | Stage::Ended(_) => None,
        };
        if let Some(at) = wake
            && self.asleep_until != wake
        {
            self.asleep_until = wake;
            step.effects.push(Effect::SleepUntil(at));
        }
    }

    // ── what was seen ─────────────────────────────────────────────────────────────────────────────────────────────

    fn note_look(&self, step: &mut Step<'_>, sent: Instant, highest: Token, look: &Look) {
        let returned = step.ambient.now;
        let mut from = self.rules.observed_from(sent, returned);
        if let Some(aged) =
            sightings::aged_from(self.rules, look, self.ask.store_clock, returned, step.ambient.wall)
        {
            from = from.min(aged);
        }
        let content = look.content.clone();
        let seen = Seen { content, from, sent, returned, time: look.time, went_back: None };
        step.sightings.note(self.rules, highest, seen);
        if let Some(Seen { went_back: Some(highest), .. }) = step.sightings.latest() {
            let shown = step.sightings.latest().and_then(Seen::token);
            self.tell(step, Event::WentBack { seen: *highest, shown });
        }
    }

    fn note_write(
        &self,
        step: &mut Step<'_>,
        flown: &Flown,
        version: &Version,
        time: Option<tenure_store::StoreTime>,
    ) {
        let returned = step.ambient.now;
        let before = step.sightings.latest().and_then(|seen| seen.time);
        let seen = Seen {
            content: Content::Record(Arc::clone(&flown.record), version.clone()),
            from: returned,
            sent: flown.attempt.sent,
            returned,
            time: self.rules.time_of_write(before, time),
            went_back: None,
        };
        step.sightings.note(self.rules, flown.highest, seen);
    }

    // ── small questions ───────────────────────────────────────────────────────────────────────────────────────────

    fn mine(&self) -> Mine<'_> {
        let term = match (&self.stage, &self.ask.way) {
            (Stage::Holding(holding), _) => Some(holding.record.term),
            (Stage::Keeping(keeping), _) => Some(keeping.term),
            (Stage::Leaving(leaving), _) => leaving.term,
            (_, Way::Resume(handle)) => Some(handle.term),
            _ => None,
        };
        Mine { term, attempts: &self.attempts, holder: self.ask.holder.id() }
    }

    /// The write of ours that left this record. Only a wrong rule calls a record ours that none of them left.
    fn attempt_behind(&self, step: &Step<'_>, record: &Record) -> Attempt {
        let unknown = Attempt { nonce: record.nonce, sent: step.ambient.now, purpose: Purpose::Grant };
        self.attempts.find(record.holders_nonce()).copied().unwrap_or(unknown)
    }

    fn nonce(&self, step: &Step<'_>, previous: &Record) -> crate::record::Nonce {
        self.rules.nonce(step.ambient.nonce, previous.nonce)
    }

    fn limit(&self) -> Option<Instant> {
        match self.ask.patience {
            Patience::Until(limit) => Some(limit),
            Patience::Once | Patience::Forever => None,
        }
    }

    fn own_ttl(&self) -> Ttl {
        self.ask.timing.ttl()
    }
}

impl Purpose {
    /// Whether it makes or ends a term, so that we must account for it until it is settled.
    fn is_of_a_term(self) -> bool {
        match self {
            Self::Grant | Self::Resume | Self::Renew | Self::Vacate => true,
            Self::Plant | Self::Revoke => false,
        }
    }
}

fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
