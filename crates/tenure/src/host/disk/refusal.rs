use std::path::Path;

use super::io_error::IoError;
use crate::{Error, ErrorKind};

/// Reason why a directory is not used.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// An error of the kernel.
    IoError(IoError),
    /// Another user could change its content.
    Unsafe {
        /// The way in which that is possible.
        why: String,
        /// Possible remedies.
        steps: Vec<String>,
        /// Words for accepting the risk by name.
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

    /// The refusal of a directory of another user, with the step by which the two can share it.
    pub(crate) fn or_share(mut self, step: String) -> Self {
        if let Self::Unsafe { why, steps, .. } = &mut self {
            why.push_str(", and two users cannot share it as it is");
            steps.push(step);
        }
        self
    }

    /// Error for a directory of leases: some risks can be accepted.
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

    /// Sentence for any other directory.
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

/// Capitalises a sentence.
fn begin_large(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}
