/// Error of a text that is not the URL of a store. The message shows a valid one.
///
/// It never repeats the part after the scheme of a URL that may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(String);

impl UrlError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}
