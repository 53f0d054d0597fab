use std::time::Duration;

use serde::Serialize;
use tenure::Token;

use super::batch::money;
use super::step::{Step, WorkerName};

/// An event of the demo: a step of a worker, or what the demo did to it.
#[derive(Clone, Debug)]
pub(super) struct DemoEvent<'a> {
    /// Time since the start of the round.
    pub(super) at: Duration,
    pub(super) fenced: bool,
    pub(super) worker: WorkerName,
    pub(super) process: u32,
    /// The token of the worker, once it was granted one.
    pub(super) token: Option<Token>,
    pub(super) what: Happening<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Happening<'a> {
    /// The worker reported a step.
    Step(&'a Step),
    /// The worker wrote a row that was in the ledger already.
    WrittenAgain { row: u32, cents: u64 },
    /// The demo stopped the worker, which is about to write this row.
    Stopped { row: u32 },
    /// The demo continued the worker.
    Continued { row: u32, after: Duration },
}

/// The importance of a line for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// The worker is stopped or continued.
    Pause,
    /// The accident.
    Bad,
    /// The accident was prevented.
    Good,
}

/// The fields of an event in JSON are a contract: `docs/reference/command/demo.md`.
#[derive(Debug, Default, Serialize)]
struct Fields<'a> {
    event: &'static str,
    fence: bool,
    at_ms: u64,
    process: Option<WorkerName>,
    pid: u32,
    token: Option<u64>,
    row: Option<u32>,
    cents: Option<u64>,
    highest: Option<u64>,
    message: Option<&'a str>,
}

impl DemoEvent<'_> {
    /// The event as fields for JSON.
    pub(super) fn fields(&self) -> impl Serialize {
        let fields = Fields {
            fence: self.fenced,
            at_ms: self.at.as_millis() as u64,
            process: Some(self.worker),
            pid: self.process,
            token: self.token.map(Token::get),
            ..Fields::default()
        };
        match self.what {
            Happening::Stopped { row } => Fields { event: "stopped", row: Some(row), ..fields },
            Happening::Continued { row, .. } => Fields { event: "continued", row: Some(row), ..fields },
            Happening::WrittenAgain { row, cents } => {
                Fields { event: "written-again", row: Some(row), cents: Some(cents), ..fields }
            }
            Happening::Step(step) => match step {
                Step::Waiting => Fields { event: "waiting", ..fields },
                Step::Granted { .. } => Fields { event: "granted", ..fields },
                Step::Sealed => Fields { event: "sealed", ..fields },
                Step::Read { next } => Fields { event: "read", row: *next, ..fields },
                Step::Checked { row } => Fields { event: "checked", row: Some(*row), ..fields },
                Step::Written { row, cents } => {
                    Fields { event: "written", row: Some(*row), cents: Some(*cents), ..fields }
                }
                Step::Refused { row, highest, message } => {
                    let highest = Some(highest.get());
                    Fields { event: "refused", row: Some(*row), highest, message: Some(message), ..fields }
                }
                Step::Lost { message } => Fields { event: "lost", message: Some(message), ..fields },
                Step::Finished => Fields { event: "finished", ..fields },
                Step::Released => Fields { event: "released", ..fields },
                Step::Failed { message, .. } => Fields { event: "failed", message: Some(message), ..fields },
            },
        }
    }

    /// The event in words; `None` if a reader can do without it.
    pub(super) fn words(&self) -> Option<(String, Tone)> {
        let plain = |text: String| Some((text, Tone::Plain));
        match self.what {
            Happening::Stopped { .. } => Some(("stopped by SIGSTOP".to_owned(), Tone::Pause)),
            Happening::Continued { after, .. } => {
                Some((format!("continued by SIGCONT, after {:.1}s", after.as_secs_f64()), Tone::Pause))
            }
            Happening::WrittenAgain { row, cents } => {
                Some((format!("row {row} written TWICE, {}", money(cents)), Tone::Bad))
            }
            Happening::Step(step) => match step {
                Step::Waiting if self.worker == WorkerName::A => None,
                Step::Waiting => plain("waits for the lease".to_owned()),
                Step::Granted { token } => plain(format!("granted, token {token}")),
                Step::Sealed => plain("seals the ledger with its token".to_owned()),
                Step::Read { next: Some(1) } | Step::Checked { .. } | Step::Failed { .. } => None,
                Step::Read { next: Some(row) } => plain(format!("reads the ledger: row {row} is next")),
                Step::Read { next: None } => plain("reads the ledger: no row is left".to_owned()),
                Step::Written { row, cents } => plain(format!("row {row} written, {}", money(*cents))),
                Step::Refused { row, highest, .. } => {
                    let offered = self.token.unwrap_or(Token::ZERO);
                    Some((format!("row {row} REFUSED: token {offered} is older than {highest}"), Tone::Good))
                }
                Step::Lost { .. } => plain("checks its lease: lost. Stops".to_owned()),
                Step::Finished => plain("the batch is complete".to_owned()),
                Step::Released => plain("releases the lease".to_owned()),
            },
        }
    }
}
