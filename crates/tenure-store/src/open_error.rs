use crate::{Reason, StoreError};

/// Error of a store that could not be opened, before anything was sent. The message says what would be right.
///
/// It never repeats a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct OpenError {
    reason: Reason,
    sentence: String,
}

impl OpenError {
    /// An error of this kind, in a sentence.
    pub fn new(reason: Reason, sentence: impl Into<String>) -> Self {
        Self { reason, sentence: sentence.into() }
    }

    /// The call or the settings are wrong.
    pub fn invalid(sentence: impl Into<String>) -> Self {
        Self::new(Reason::Invalid, sentence)
    }

    /// The credentials are missing, wrong, or cannot be read.
    pub fn denied(sentence: impl Into<String>) -> Self {
        Self::new(Reason::Denied, sentence)
    }

    /// Something that the store needs cannot be reached or read.
    pub fn unreachable(sentence: impl Into<String>) -> Self {
        Self::new(Reason::Unreachable, sentence)
    }

    /// The store cannot do what the settings ask for.
    pub fn unsupported(sentence: impl Into<String>) -> Self {
        Self::new(Reason::Unsupported, sentence)
    }

    /// Kind of the error.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::refused(error.reason, error)
    }
}
