use tenure_store::{Reason, StoreError};

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
    pub(crate) fn invalid(sentence: impl Into<String>) -> Self {
        Self { reason: Reason::Invalid, sentence: sentence.into() }
    }

    pub(crate) fn denied(sentence: impl Into<String>) -> Self {
        Self { reason: Reason::Denied, sentence: sentence.into() }
    }

    pub(crate) fn unreachable(sentence: impl Into<String>) -> Self {
        Self { reason: Reason::Unreachable, sentence: sentence.into() }
    }

    pub(crate) fn unsupported(sentence: impl Into<String>) -> Self {
        Self { reason: Reason::Unsupported, sentence: sentence.into() }
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
