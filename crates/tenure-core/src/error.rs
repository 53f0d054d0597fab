use std::fmt;

use tenure_fence::FenceError;
use tenure_store::{BoxError, KeyError, Reason, StoreError};

use crate::HolderError;
use crate::machine::{Denied, HeldBy};

/// An error of Tenure: a human-readable message, and an [`ErrorKind`] for programs.
///
/// The message names the key, and the holder, the token and the store where they are known, and says what to do. It is
/// not part of the API; the kind is.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
    denied: Option<Box<Denied>>,
}

/// Kind of an error, which says what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Another holder has the lease, or the store holds back grants for some time. Wait, or do something else.
    Held,
    /// The lease is no longer held. Stop acting.
    Lost,
    /// The resource refused a write, because a newer holder has been there. Stop for good.
    Fenced,
    /// The store is unreachable or does not answer. Try again later.
    Unavailable,
    /// The store cannot do, or does not do, what leases need. Fix the deployment.
    Unsupported,
    /// The store does not exist where the settings say: no such bucket, container or database, or no tables and no right
    /// to create them. Create it, or correct the settings; a retry alone does not help.
    Misconfigured,
    /// The call is wrong. Fix it.
    Invalid,
    /// The stored value is not a Tenure record, or the record went back in time. Inspect it; nothing was overwritten.
    Corrupt,
}

impl From<Reason> for ErrorKind {
    /// The kind of a refused call.
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Unreachable | Reason::Denied | Reason::Gone => Self::Unavailable,
            Reason::Missing => Self::Misconfigured,
            Reason::Invalid => Self::Invalid,
            Reason::Damaged => Self::Corrupt,
            // A retry does not help with a reason that this version does not know.
            _ => Self::Unsupported,
        }
    }
}

impl From<&StoreError> for ErrorKind {
    /// The kind of an error of the store.
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Refused(refused) => refused.reason.into(),
            StoreError::Unknown(_) | StoreError::Throttled(_) => Self::Unavailable,
        }
    }
}

impl Error {
    /// An error of this kind with this message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None, denied: None }
    }

    /// Adds the cause of the error.
    pub fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds the reason why a lease was not granted.
    pub(crate) fn of_denial(mut self, denied: &Denied) -> Self {
        self.denied = Some(Box::new(denied.clone()));
        self
    }

    /// The reason why a lease was not granted, with the record of its holder if it has one, or why the store refused a
    /// call for a plain key; `None` for every other error.
    pub fn denied(&self) -> Option<&Denied> {
        self.denied.as_deref()
    }

    /// The holder that is in the way, with its token and the time left; `None` if the error is not that a holder has the
    /// lease. It is as the contender saw it: no further read is necessary.
    ///
    /// An error of kind [`Held`](ErrorKind::Held) has it, unless the store holds back grants or the lease is not due:
    /// then [`denied`](Self::denied) has the time left. The error of a full group of slots names its holders itself.
    pub fn held(&self) -> Option<HeldBy> {
        self.denied()?.held()
    }

    /// Kind of the error: what to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Debug for Error {
    /// Prints the kind, the message and its causes: a program whose `main` returns this error shows all of them.
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

/// The error of a store that could not be opened, or of a call without a lease.
impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::new(ErrorKind::from(&error), error.to_string()).because(error)
    }
}

/// The error of a fence. Its source is the [`FenceError`].
impl From<FenceError> for Error {
    fn from(error: FenceError) -> Self {
        let kind = match &error {
            FenceError::Stale { .. } => ErrorKind::Fenced,
            FenceError::OtherLease { .. } | FenceError::NotGranted { .. } => ErrorKind::Invalid,
            FenceError::WentBack { .. } | FenceError::Foreign { .. } => ErrorKind::Corrupt,
            FenceError::Refused { reason, .. } => (*reason).into(),
            _ => ErrorKind::Unavailable,
        };
        Self::new(kind, error.to_string()).because(error)
    }
}

impl From<HolderError> for Error {
    fn from(error: HolderError) -> Self {
        Self::new(ErrorKind::Invalid, error.to_string())
    }
}
