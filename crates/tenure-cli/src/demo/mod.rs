//! `tenure demo`: the accident that a fencing token prevents, with two processes and a ledger.
//!
//! The command starts itself twice as a *worker*. Both workers want one lease, and append the payments of a batch to a
//! ledger. Worker A is stopped between its check of the lease and its write. The demo plays this once without a fence and
//! once with it.

mod batch;
mod event;
mod ledger;
mod outcome;
mod output;
mod plan;
mod round;
mod scratch;
mod step;
mod tally;
mod timeline;
mod worker;
mod worker_process;

use std::process::ExitCode;

use crate::args;
use crate::exit::{self, Failure};
use crate::signals::{self, Blocked};
use crate::store;
use crate::watch::reader_exited;
use output::DemoOutput;
use plan::DemoPlan;
use round::Round;
use scratch::Scratch;
pub(crate) use worker::worker_if_asked;

/// Shows the accident, without and with the fence, and removes everything at the end.
pub(crate) fn demo(demo: &args::Demo) -> Result<ExitCode, Failure> {
    let plan = DemoPlan::of(demo)?;
    // Before the first thread, which inherits the mask.
    let blocked = Blocked::now().map_err(signals::no_signals)?;
    let scratch = Scratch::new()?;
    let shown = store::block_on(async {
        let signals = blocked.take().map_err(signals::no_signals)?;
        tokio::select! {
            shown = show(&plan, &scratch, demo) => shown,
            // The workers are killed when the future is dropped.
            signal = signals.ended() => Err(Failure::silent(128 + signal as u8)),
            () = reader_exited() => Ok(()),
        }
    });
    scratch.remove(demo.json);
    shown.map(|()| ExitCode::SUCCESS)
}

async fn show(plan: &DemoPlan, scratch: &Scratch, demo: &args::Demo) -> Result<(), Failure> {
    let output = DemoOutput::new(demo.json);
    output.introduce(plan)?;
    let rounds = if demo.no_fence { &[false][..] } else { &[false, true] };
    let mut missed = None;
    for &fenced in rounds {
        let outcome = Round::start(*plan, fenced, scratch.path(), &output)?.play().await?;
        output.summary(&outcome)?;
        missed = missed.or(outcome.verdict().err());
    }
    match missed {
        Some(sentence) => Err(Failure::new(exit::NOT_SHOWN, sentence)),
        None => output.conclude(demo.no_fence),
    }
}
