//! Exit codes are a contract: scripts depend on them.

use std::fmt;
use std::process::ExitCode;

use serde::Serialize;
use tenure::fence::FenceError;
use tenure::{Error, ErrorKind, Token};

use crate::output;

/// The lease is free, there is no leader, a plain key has no entry, or a fenced target no content. Only `status`, `leader`,
/// `resign`, `kv get` and `fence get` exit with it.
pub(crate) const FREE: u8 = 1;
/// The demo did not show what it promises.
pub(crate) const NOT_SHOWN: u8 = 1;
/// The command line is invalid.
pub(crate) const USAGE: u8 = 64;
/// The record is foreign.
pub(crate) const NOT_OURS: u8 = 65;
/// The store or the credentials are not available.
pub(crate) const UNAVAILABLE: u8 = 69;
/// Another holder has the lease.
pub(crate) const HELD: u8 = 75;
/// The lease was lost and the child stopped, or a token or handle is stale.
pub(crate) const LOST: u8 = 76;
/// The store fails the safety check: a guarantee is missing, or was seen broken.
pub(crate) const REFUSED: u8 = 77;
/// A configuration is invalid, cannot be safe, or names a store that does not exist.
pub(crate) const UNSAFE: u8 = 78;

/// A failure of the command: its exit code and its sentence.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    sentence: String,
    stale: Option<StaleWrite>,
}

/// The tokens of a write that a fence refused as stale.
#[derive(Debug, Serialize)]
struct StaleWrite {
    /// The name of the lease.
    name: String,
    /// The token of the write.
    offered: Token,
    /// The greatest token that the target has admitted.
    token: Token,
}

/// A failure as JSON. The fields and their names are a contract: `docs/reference/messages.md`.
#[derive(Serialize)]
struct FailureView<'a> {
    exit: u8,
    message: &'a str,
    #[serde(flatten)]
    stale: Option<&'a StaleWrite>,
}

impl Failure {
    pub(crate) fn new(code: u8, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), stale: None }
    }

    /// The command line is invalid.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self::new(USAGE, sentence)
    }

    /// The store, or another resource that the command needs, is not available.
    pub(crate) fn unavailable(sentence: impl Into<String>) -> Self {
        Self::new(UNAVAILABLE, sentence)
    }

    /// A configuration is invalid, cannot be safe, or names a store that does not exist.
    pub(crate) fn misconfigured(sentence: impl Into<String>) -> Self {
        Self::new(UNSAFE, sentence)
    }

    /// A failure that only the exit code reports.
    pub(crate) fn silent(code: u8) -> Self {
        Self::new(code, "")
    }

    /// True if this is its exit code.
    pub(crate) fn is(&self, code: u8) -> bool {
        self.code == code
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// Its exit code as a number.
    pub(crate) fn number(&self) -> u8 {
        self.code
    }

    /// Prints it on standard error, as text or as JSON.
    pub(crate) fn report(&self, json: bool) {
        if self.sentence.is_empty() {
            return;
        }
        // An error message may quote a handle that was passed in place of a name.
        let sentence = output::without_handles(&self.sentence);
        if json {
            let error = FailureView { exit: self.code, message: &sentence, stale: self.stale.as_ref() };
            output::say(&serde_json::json!({ "error": error }).to_string());
        } else {
            output::say(&format!("tenure: {}", output::plain(&sentence)));
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Held => HELD,
            ErrorKind::Lost | ErrorKind::Fenced => LOST,
            ErrorKind::Unsupported => REFUSED,
            ErrorKind::Misconfigured => UNSAFE,
            ErrorKind::Invalid => USAGE,
            ErrorKind::Corrupt => NOT_OURS,
            _ => UNAVAILABLE,
        };
        let stale = std::error::Error::source(&error).and_then(StaleWrite::of);
        let mut sentence = error.to_string();
        // Most sentences include their cause already.
        if let Some(source) = std::error::Error::source(&error).map(ToString::to_string)
            && !sentence.contains(&source)
        {
            sentence = format!("{sentence} ({source})");
        }
        Self { stale, ..Self::new(code, sentence) }
    }
}

impl StaleWrite {
    fn of(source: &(dyn std::error::Error + 'static)) -> Option<Self> {
        match source.downcast_ref()? {
            FenceError::Stale { offered, highest, .. } => {
                Some(Self { name: offered.name().to_string(), offered: offered.token(), token: *highest })
            }
            _ => None,
        }
    }
}

impl From<tenure::KeyError> for Failure {
    fn from(error: tenure::KeyError) -> Self {
        Self::from(Error::from(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
