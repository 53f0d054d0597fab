use std::sync::Arc;
use std::time::Duration;

/// The underlying error, for messages and logs.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A call without a definite answer, or one that the store refused.
///
/// The three kinds lead to three different actions, so they are three types. Exhaustive: a call had no effect, may have
/// one, or should be repeated later, and a caller that forgets one of them guesses.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Certainly no effect, now or later.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It may have happened, or may still happen.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The store asks for fewer requests. A proxy may still have forwarded this one, unless [`Throttled::cause`] says that
    /// it was not sent.
    #[error(transparent)]
    Throttled(#[from] Throttled),
}

/// The call certainly had no effect, and never will have.
#[derive(Debug, thiserror::Error)]
#[error("{reason}: {source}")]
#[non_exhaustive]
pub struct Refused {
    /// The action that the caller can take.
    pub reason: Reason,
    /// The error of the store, or of the connection to it.
    pub source: BoxError,
}

/// Reason of a refused call, which says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The call could not be sent. Try again later.
    Unreachable,
    /// The credentials are missing, wrong, or not allowed to do this. Fix them.
    Denied,
    /// The store cannot do this. Use another store, or configure it differently.
    Unsupported,
    /// The call itself is wrong, for example a value that is too large. Fix the call.
    Invalid,
    /// The place that the settings name does not exist: no such bucket, container or database, or no tables and no right to
    /// create them. Create it, or correct the settings.
    ///
    /// A store returns this only if the server says so. A server that cannot be reached is
    /// [`Unreachable`](Self::Unreachable).
    Missing,
    /// The stored value is damaged, or this store did not write it. Inspect it; it is never overwritten.
    Damaged,
    /// The open store is no longer at its address: it was removed, moved or replaced. A program that opens the address
    /// now sees another store, so a lease on this one excludes no other holder. Stop, and open the store again.
    ///
    /// A store returns this only if it knows it. A store that cannot be reached is [`Unreachable`](Self::Unreachable).
    Gone,
}

/// The outcome is unknown: a timeout, a cut connection, a server error. It may have happened, or may still happen.
#[derive(Debug, thiserror::Error)]
#[error("the outcome is not known: {source}")]
#[non_exhaustive]
pub struct Unknown {
    /// The last error of the store, or of the connection to it.
    pub source: BoxError,
}

/// The store asks the caller to come back later.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.cause.as_deref().unwrap_or("the store asks for fewer calls"))]
#[non_exhaustive]
pub struct Throttled {
    /// The pause that the store asks for, if it names one.
    pub after: Option<Duration>,
    /// The reason, in a sentence, if this store held back the call itself. Such a call was not sent: it certainly has no
    /// effect, now or later.
    pub cause: Option<Arc<str>>,
}

impl StoreError {
    /// A call that certainly had no effect.
    pub fn refused(reason: Reason, source: impl Into<BoxError>) -> Self {
        Self::Refused(Refused { reason, source: source.into() })
    }

    /// A call that may have happened, or may still happen.
    pub fn unknown(source: impl Into<BoxError>) -> Self {
        Self::Unknown(Unknown { source: source.into() })
    }

    /// A call that the store asks to repeat later.
    pub fn throttled(after: Option<Duration>) -> Self {
        Self::Throttled(Throttled { after, cause: None })
    }

    /// A call that this store did not send, and that the caller may repeat after a pause. `cause` says why.
    pub fn withheld(after: Duration, cause: impl Into<Arc<str>>) -> Self {
        Self::Throttled(Throttled { after: Some(after), cause: Some(cause.into()) })
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "the store could not be reached",
            Self::Denied => "the store denied access",
            Self::Unsupported => "the store does not support this",
            Self::Invalid => "the store refused the call",
            Self::Missing => "the store does not exist",
            Self::Damaged => "the stored data is damaged",
            Self::Gone => "the store is gone",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_throttled_call_says_why_if_the_store_knows_it() {
        assert_eq!(StoreError::throttled(None).to_string(), "the store asks for fewer calls");
        let cause =
            "the server started 12s ago and may have forgotten leases: nothing is granted for 49s more";
        let after = Duration::from_secs(49);
        let withheld = StoreError::withheld(after, cause);
        assert_eq!(withheld.to_string(), cause);
        assert!(matches!(withheld, StoreError::Throttled(Throttled { after: Some(a), .. }) if a == after));
    }
}
