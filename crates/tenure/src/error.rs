use std::fmt;

use tenure_store::BoxError;

/// What went wrong, as a sentence for people and a [`Kind`] for programs.
///
/// The sentence names the key, and the holder, the token and the store where they are known, and says what to do. It
/// is not part of the API; the kind is.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    source: Option<BoxError>,
}

/// The kind of an error is an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Somebody else has it. Wait, or do something else.
    Held,
    /// The lease is not held any more. Stop acting.
    Lost,
    /// A newer holder has already written. Stop for good.
    Fenced,
    /// The store cannot be reached or does not answer. Try again later.
    Unavailable,
    /// The store cannot do, or does not do, what is needed. Fix the deployment.
    Unsupported,
    /// The call is wrong. Fix it.
    Invalid,
    /// The stored record is not one of ours, or went back in time. Look at it; nothing was overwritten.
    Corrupt,
}

impl Error {
    /// An error of this kind with this sentence.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same error with what caused it.
    pub(crate) fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What to do about it.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<tenure_store::KeyError> for Error {
    fn from(error: tenure_store::KeyError) -> Self {
        Self::new(Kind::Invalid, error.to_string())
    }
}

/// A store that could not be opened, or a call that was made without a lease.
impl From<tenure_store::StoreError> for Error {
    fn from(error: tenure_store::StoreError) -> Self {
        let sentence = error.to_string();
        Self::new(crate::drive::kind_of(&error), sentence).because(error)
    }
}

impl From<crate::record::HolderError> for Error {
    fn from(error: crate::record::HolderError) -> Self {
        Self::new(Kind::Invalid, error.to_string())
    }
}

impl From<std::convert::Infallible> for Error {
    /// So that a [`Key`](crate::Key) is taken wherever its name is.
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
