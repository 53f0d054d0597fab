/// Why a text is not the URL of a store, as a sentence that shows a right one.
///
/// It never repeats what comes after the scheme of a URL that may carry a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(String);

impl UrlError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}
