use std::path::Path;

use super::io_error::IoError;
use crate::{Error, ErrorKind};

/// Why a folder is not used.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The kernel says no.
    IoError(IoError),
    /// Somebody else could change what lies in it.
    Unsafe {
        /// How.
        why: String,
        /// What can be done about it, one or the other.
        steps: Vec<String>,
        /// How a store accepts it by name.
        accept: &'static str,
    },
}

impl Refusal {
    pub(super) fn unsafe_because<const N: usize>(
        why: String,
        steps: [String; N],
        accept: &'static str,
    ) -> Self {
        Self::Unsafe { why, steps: steps.into(), accept }
    }

    /// Of a folder for leases: some of it can be accepted.
    pub(crate) fn of_leases(self, path: &Path) -> Error {
        match self {
            Self::IoError(io_error) => io_error.at_opening(),
            Self::Unsafe { why, steps, accept } => {
                let (path, steps) = (path.display(), begin_large(&steps.join(", ")));
                let sentence =
                    format!("{path} is not safe for leases: {why}. {steps}, or accept it by name ({accept})");
                Error::new(ErrorKind::Unsupported, sentence)
            }
        }
    }

    /// Of any other folder.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Self::IoError(io_error) => io_error.to_string(),
            Self::Unsafe { why, steps, .. } => format!("{why}. {}", begin_large(&steps.join(", or "))),
        }
    }
}

impl From<IoError> for Refusal {
    fn from(io_error: IoError) -> Self {
        Self::IoError(io_error)
    }
}

/// As sentences begin.
fn begin_large(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}
