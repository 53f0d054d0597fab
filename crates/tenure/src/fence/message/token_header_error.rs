use crate::fence::FencingTokenError;

/// The reason why a message or a request has no usable token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenHeaderError {
    /// The header is missing.
    #[error(
        "there is no header Fencing-Token: send the name of the lease and its token, as in billing/nightly=7"
    )]
    Missing,
    /// There is more than one value.
    #[error("there are several values of the header Fencing-Token: send one")]
    Several,
    /// The value has spaces, or bytes that are not printable ASCII.
    #[error("the header Fencing-Token has the value {0:?}: percent-encode everything but printable ASCII")]
    NotPrintable(String),
    /// The value is not a token.
    #[error("the header Fencing-Token is not usable: {0}")]
    NoToken(#[from] FencingTokenError),
}
