use super::context::Context;
use super::holding::Holding;
use super::keeping::Keeping;
use super::leaving::Leaving;
use super::seeking::Seeking;
use super::{Denied, Input, Left, Lost};
use crate::Instant;
use crate::record::Nonce;

/// Stages of a lease, from wanting it to having left it.
#[derive(Debug)]
pub(super) enum Stage {
    Seeking(Box<Seeking>),
    Holding(Holding),
    /// The belief has ended, and the work still runs.
    Keeping(Keeping),
    Leaving(Leaving),
    /// The record has run out, and the work under this term may still run.
    Lapsed(Nonce),
    Ended(Left),
}

/// The next stage, or [`STAY`].
pub(super) type Next = Option<Stage>;

/// The stage stays.
pub(super) const STAY: Next = None;

impl Stage {
    /// The reaction of each stage to each input. An input that is not listed with a stage has no effect there.
    pub(super) fn step(&mut self, ctx: &mut Context<'_>, input: Input) -> Next {
        match (input, self) {
            (Input::Start, Self::Seeking(seeking)) => seeking.started(ctx),
            (Input::Read(answer), stage) => {
                let answer = ctx.read_answered(answer);
                match stage {
                    Self::Seeking(seeking) => seeking.read_answered(ctx, answer),
                    Self::Holding(holding) => holding.read_answered(ctx, answer),
                    Self::Keeping(keeping) => keeping.read_answered(ctx, answer),
                    Self::Leaving(leaving) => leaving.read_answered(ctx, answer),
                    Self::Lapsed(_) | Self::Ended(_) => STAY,
                }
            }
            (Input::Written(outcome), stage) => {
                let answered = (ctx.write_answered(&outcome), outcome);
                match stage {
                    Self::Seeking(seeking) => seeking.write_answered(ctx, answered),
                    Self::Holding(holding) => holding.write_answered(ctx, answered),
                    Self::Keeping(keeping) => keeping.write_answered(ctx, answered),
                    Self::Leaving(leaving) => leaving.write_answered(ctx, answered),
                    Self::Lapsed(_) | Self::Ended(_) => STAY,
                }
            }
            (Input::Wake, Self::Seeking(seeking)) => seeking.woken(ctx),
            (Input::Wake, Self::Holding(holding)) => holding.woken(ctx),
            (Input::Wake, Self::Keeping(keeping)) => keeping.woken(ctx),
            (Input::Wake, Self::Leaving(leaving)) => leaving.woken(ctx),
            (Input::Changed, Self::Seeking(seeking)) => seeking.hinted(ctx),
            (Input::Doubted, Self::Holding(holding)) => holding.doubted(ctx),
            (Input::Witness { nonce, sighting }, stage) => {
                let asked = *ctx.looking_at_witness;
                let freed = ctx.outlived_seen(nonce, sighting);
                let Self::Seeking(seeking) = stage else { return STAY };
                seeking.witnessed(ctx, (nonce, sighting), asked, freed)
            }
            (Input::Renew, Self::Holding(holding)) => holding.renew_asked(ctx),
            (Input::Release, Self::Seeking(seeking)) => seeking.deny(ctx, Denied::Cancelled),
            (Input::Release, Self::Holding(holding)) => holding.lose(ctx, Lost::Released),
            (Input::Release, Self::Leaving(leaving)) => leaving.released(ctx),
            (Input::Drained, Self::Keeping(keeping)) => keeping.drained(ctx),
            (Input::Drained, Self::Leaving(leaving)) => leaving.drained(ctx),
            (Input::Drained, Self::Lapsed(term)) => Leaving::after_lapse(ctx, *term).enter(ctx),
            (Input::Latched, Self::Holding(holding)) => holding.lose(ctx, Lost::Expired),
            // A contender that steals reads it in the record, so it must be there soon.
            (Input::CannotStop(_), Self::Holding(holding)) => holding.renew_asked(ctx),
            (Input::CannotStop(_), Self::Leaving(leaving)) => leaving.cannot_stop(ctx),
            (Input::CannotStop(_), Self::Lapsed(term)) if ctx.keeps() => Keeping::begin(ctx, *term, None),
            (
                Input::Start
                | Input::Wake
                | Input::Changed
                | Input::Doubted
                | Input::Renew
                | Input::Release
                | Input::Drained
                | Input::Latched
                | Input::Succeeded
                | Input::CannotStop(_),
                _,
            ) => STAY,
        }
    }

    /// The time at which the stage next acts by itself.
    pub(super) fn wakes_at(&self, ctx: &Context<'_>) -> Option<Instant> {
        match self {
            Self::Seeking(seeking) => seeking.wakes_at(ctx),
            Self::Holding(holding) => holding.wakes_at(ctx),
            Self::Keeping(keeping) => keeping.wakes_at(ctx),
            Self::Leaving(leaving) => leaving.wakes_at(ctx),
            Self::Lapsed(_) | Self::Ended(_) => None,
        }
    }
}

/// The earlier of two instants, or the only one.
pub(super) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
