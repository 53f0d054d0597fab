use std::process::ExitCode;
use std::time::Duration;

use tenure_core::election::TermEnd;

use crate::exit::Failure;

/// Outcome of one run.
#[derive(Debug)]
pub(crate) enum RunOutcome {
    /// A signal ended the wait, and this is its exit code.
    GaveUp(ExitCode),
    /// The command was not started, because its watchdog was killed or could not be used. The next run has another one.
    NotStarted(Failure),
    /// The lease was granted, and its term is over.
    Term(TermOutcome),
}

/// Outcome of one term.
#[derive(Debug)]
pub(crate) struct TermOutcome {
    /// The exit of a command that ran once.
    pub(crate) exit: Result<ExitCode, Failure>,
    pub(crate) end: TermEnd,
    /// The end in words, without a next step.
    pub(crate) sentence: String,
    /// Time from the grant to the end.
    pub(crate) lasted: Duration,
    /// True if a signal asked this process to end.
    pub(crate) asked_to_end: bool,
}

impl RunOutcome {
    /// The exit of a command that ran once.
    pub(crate) fn exit(self) -> Result<ExitCode, Failure> {
        match self {
            Self::GaveUp(code) => Ok(code),
            Self::NotStarted(failure) => Err(failure),
            Self::Term(term) => term.exit,
        }
    }
}
