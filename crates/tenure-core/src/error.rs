use std::fmt;

use tenure_store::{BoxError, KeyError, Reason, StoreError};

use crate::HolderError;

/// What went wrong, as a sentence for people and a [`ErrorKind`] for programs.
///
/// The sentence names the key, and the holder, the token and the store where they are known, and says what to do. It
/// is not part of the API; the kind is.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
}

/// The kind of an error is an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Somebody else has it. Wait, or do something else.
    Held,
    /// The lease is not held any more. Stop acting.
    Lost,
    /// The store cannot be reached or does not answer. Try again later.
    Unavailable,
    /// The store cannot do, or does not do, what is needed. Fix the deployment.
    Unsupported,
    /// The call is wrong. Fix it.
    Invalid,
    /// The stored record is not one of ours, or went back in time. Look at it; nothing was overwritten.
    Corrupt,
}

impl From<Reason> for ErrorKind {
    /// What to do about a call that was refused.
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Unreachable | Reason::Denied | Reason::Gone => Self::Unavailable,
            Reason::Invalid => Self::Invalid,
            Reason::Damaged => Self::Corrupt,
            // A reason that this version does not know is none to try again.
            _ => Self::Unsupported,
        }
    }
}

impl From<&StoreError> for ErrorKind {
    /// What to do about an error of the store.
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Refused(refused) => refused.reason.into(),
            StoreError::Unknown(_) | StoreError::Throttled(_) => Self::Unavailable,
        }
    }
}

impl Error {
    /// An error of this kind with this sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same error with what caused it.
    pub fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Debug for Error {
    /// The kind, the sentence and its causes, as a program that ends by this error prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)?;
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            write!(f, "; because {error}")?;
            cause = error.source();
        }
        Ok(())
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

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Self::new(ErrorKind::Invalid, error.to_string())
    }
}

/// A store that could not be opened, or a call that was made without a lease.
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::new(ErrorKind::from(&error), error.to_string()).because(error)
    }
}

impl From<HolderError> for Error {
    fn from(error: HolderError) -> Self {
        Self::new(ErrorKind::Invalid, error.to_string())
    }
}
