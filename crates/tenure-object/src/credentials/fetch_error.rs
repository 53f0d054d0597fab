use std::error::Error;

use tenure_store::{Reason, StoreError};

/// Error of a fetch that returned no credentials. It never repeats a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are no credentials to sign with: {sentence}")]
pub(crate) struct FetchError {
    reason: Reason,
    sentence: String,
}

impl FetchError {
    pub(crate) fn new(reason: Reason, sentence: impl Into<String>) -> Self {
        Self { reason, sentence: sentence.into() }
    }

    /// The next fetch may succeed.
    pub(crate) fn unreachable(sentence: impl Into<String>) -> Self {
        Self::new(Reason::Unreachable, sentence)
    }

    /// The next fetch fails too, unless an operator changes a setting.
    pub(crate) fn denied(sentence: impl Into<String>) -> Self {
        Self::new(Reason::Denied, sentence)
    }

    /// The error of a fetch among the causes of an error of the client; `None` if credentials were not the problem.
    pub(crate) fn within(error: &object_store::Error) -> Option<&Self> {
        let causes =
            std::iter::successors(Some(error as &(dyn Error + 'static)), |error: &&(dyn Error + 'static)| {
                (*error).source()
            });
        causes.filter_map(|cause| cause.downcast_ref()).next()
    }
}

impl From<FetchError> for object_store::Error {
    fn from(error: FetchError) -> Self {
        Self::Generic { store: "credentials", source: Box::new(error) }
    }
}

impl From<&FetchError> for StoreError {
    fn from(error: &FetchError) -> Self {
        Self::refused(error.reason, error.to_string())
    }
}
