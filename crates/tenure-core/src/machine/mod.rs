//! The complete protocol as a state machine without I/O, clock or randomness: inputs in, effects out.
//!
//! A [`Machine`] is one lease, from the request to the end:
//!
//! ```text
//!            Start                 granted                 lost, released
//!   ─────────────────▶  Seeking  ──────────▶  Holding  ────────────────────▶  Leaving  ──▶  Ended
//!                       (seeking/)            (holding.rs)                    (leaving.rs)
//!                          │  denied, cancelled: what may still land is vacated  ▲
//!                          └─────────────────────────────────────────────────────┘
//! ```
//!
//! Between Holding and Leaving there may be Keeping (keeping.rs): the belief has ended, and the work cannot be stopped.
//!
//! The machine performs no I/O. [`step`](Machine::step) takes an [`Input`] and the [`Ambient`] world, and answers with
//! [`Effect`]s: at most one read or write is pending at any time. The decisions are in [`Rules`], one named function
//! each; the stages only call them in the right order. The same code runs in the simulation and under the real driver.

mod acquire_params;
mod attempts;
mod context;
pub(crate) mod denied;
mod effect;
mod held_by;
mod holding;
pub(crate) mod in_flight;
mod input;
mod keeping;
mod leaving;
mod lost;
mod observer;
mod outlived;
mod own_writes;
pub(crate) mod rules;
mod seeking;
mod sightings;
mod stage;
mod standing;
pub(crate) mod tick_reads;
pub(crate) mod writes;

use std::sync::Arc;

use tenure_store::{StoreClock, StoreTime};

pub use acquire_params::{AcquireMode, AcquireParams, Heed, Patience, TermRef};
pub use attempts::{Attempt, Attempts};
pub use denied::Denied;
pub use effect::{Effect, Event, Left, Purpose, Write};
pub use held_by::HeldBy;
pub use input::{Ambient, Content, Fault, Input, Look, Outcome, Sighting};
pub use lost::Lost;
pub use observer::{ObservedRead, Observer};
pub use rules::{
    Doubt, Due, Floor, Mine, Proof, RENEWAL_CALLS, RenewalRoom, Rules, Standard, Walls, YEAR_2020,
    is_plausible,
};
pub use sightings::{Recalled, Seen, Sightings};
pub use standing::{Remaining, Standing};

use crate::Instant;
use crate::record::{Record, Witness};
use context::Context;
use holding::Holding;
use in_flight::InFlight;
use outlived::Outlived;
use stage::Stage;

/// One lease, from the request to the end.
#[derive(Debug)]
pub struct Machine {
    rules: &'static dyn Rules,
    params: AcquireParams,
    stage: Stage,
    in_flight: Option<InFlight>,
    attempts: Attempts,
    asleep_until: Option<Instant>,
    unstoppable: Option<Arc<str>>,
    began: Option<StoreTime>,
    succeeded: bool,
    outlived: Option<Outlived>,
    looking_at_witness: bool,
}

impl Machine {
    /// A machine for a lease with these parameters. It does nothing before [`Input::Start`].
    pub fn new(params: AcquireParams) -> Self {
        Self::with_rules(params, &Standard)
    }

    /// A machine under other rules, for the simulation.
    pub fn with_rules(params: AcquireParams, rules: &'static dyn Rules) -> Self {
        // The process that was granted the term of a handle based its token on the store's time.
        let began = match &params.mode {
            AcquireMode::Resume(handle) if params.store_clock >= StoreClock::Floors => {
                Some(StoreTime::from_micros(handle.token.get())).filter(|time| is_plausible(*time))
            }
            _ => None,
        };
        Self {
            rules,
            params,
            stage: Stage::Seeking(Box::default()),
            in_flight: None,
            attempts: Attempts::default(),
            asleep_until: None,
            unstoppable: None,
            began,
            succeeded: false,
            outlived: None,
            looking_at_witness: false,
        }
    }

    /// Sets the witness of this holder, whose file takes a moment to create. Call it before the answer to the first
    /// read, or before [`Input::Start`].
    pub fn name_witness(&mut self, witness: Arc<Witness>) {
        self.params.witness = Some(witness);
    }

    /// Handles an input and appends the resulting effects.
    ///
    /// `sightings` are what this process has seen of the key; all its machines for the key share them.
    pub fn step(
        &mut self,
        ambient: &Ambient,
        sightings: &mut Sightings,
        input: Input,
        effects: &mut Vec<Effect>,
    ) {
        match &input {
            Input::Wake => self.asleep_until = None,
            Input::CannotStop(because) if self.unstoppable.is_none() => {
                self.unstoppable = Some(Arc::clone(because));
            }
            Input::CannotStop(_) => return,
            // Only a holder knows it: after a loss, another holder may work already.
            Input::Succeeded => {
                self.succeeded |= self.is_holding();
                return;
            }
            _ => {}
        }
        let ctx = &mut Context {
            rules: self.rules,
            params: &self.params,
            attempts: &mut self.attempts,
            in_flight: &mut self.in_flight,
            unstoppable: self.unstoppable.as_ref(),
            began: &mut self.began,
            succeeded: self.succeeded,
            outlived: &mut self.outlived,
            looking_at_witness: &mut self.looking_at_witness,
            ambient,
            sightings,
            effects,
        };
        if let Some(next) = self.stage.step(ctx, input) {
            self.stage = next;
        }
        let wake = self.stage.wakes_at(ctx);
        if let Some(at) = wake
            && self.asleep_until != wake
        {
            self.asleep_until = wake;
            effects.push(Effect::SleepUntil(at));
        }
    }

    /// True if the machine has ended: it requests nothing, and none of its writes can still land.
    pub fn is_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_) | Stage::Lapsed(_))
    }

    /// True if it ended by letting its record run out while work under the term may still run. Then
    /// [`Input::CannotStop`] makes it continue.
    pub fn has_lapsed_under_work(&self) -> bool {
        matches!(self.stage, Stage::Lapsed(_))
    }

    /// State in which it left the key, once it has ended.
    pub fn left(&self) -> Option<Left> {
        match self.stage {
            Stage::Ended(left) => Some(left),
            Stage::Lapsed(_) => Some(Left::Lapsing),
            _ => None,
        }
    }

    /// True if the holder has reported a success, and the release can record it.
    pub fn records_success(&self) -> bool {
        self.succeeded && self.began.is_some()
    }

    /// True if it waits for the lease and would read on a hint that the key changed.
    pub fn is_waiting(&self) -> bool {
        matches!(&self.stage, Stage::Seeking(seeking) if self.in_flight.is_none() && seeking.is_waiting())
    }

    /// True if it wants the lease and does not hold it yet.
    pub fn is_seeking(&self) -> bool {
        matches!(self.stage, Stage::Seeking(_))
    }

    /// True while the term is held.
    pub fn is_holding(&self) -> bool {
        self.holding().is_some()
    }

    /// The data to continue the term after a restart, while it is held.
    pub fn term_ref(&self) -> Option<TermRef> {
        self.holding().map(Holding::term_ref)
    }

    /// The record as this lease last wrote it, while it is held.
    pub fn record(&self) -> Option<&Arc<Record>> {
        self.holding().map(Holding::record)
    }

    fn holding(&self) -> Option<&Holding> {
        match &self.stage {
            Stage::Holding(holding) => Some(holding),
            _ => None,
        }
    }
}
