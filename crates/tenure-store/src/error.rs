use std::time::Duration;

/// What went wrong underneath, for people and logs.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A call without a definite answer, or one that the store would not take.
///
/// The three kinds lead to three different actions, so they are three types. Exhaustive: a call had no effect, may have one,
/// or comes later, and a caller that forgets one of them guesses.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Certainly no effect, now or later.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It may have happened, or may happen yet.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The store asks for patience. Something in between may still have sent the request on.
    #[error(transparent)]
    Throttled(#[from] Throttled),
}

/// The call certainly had no effect, and never will have.
#[derive(Debug, thiserror::Error)]
#[error("{reason}: {source}")]
#[non_exhaustive]
pub struct Refused {
    /// What the caller can do about it.
    pub reason: Reason,
    /// What the store, or the way to it, said.
    pub source: BoxError,
}

/// Why a call was refused, as an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It could not even be sent. Try again later.
    Unreachable,
    /// The credentials are missing, wrong, or not allowed to do this. Fix them.
    Denied,
    /// The store cannot do what was asked. Use another store, or another way of setting it up.
    Unsupported,
    /// The call itself is wrong, for example a value that is too large. Fix the call.
    Invalid,
    /// What is stored under the key is damaged, or not of this store's making. Look at it; it is never overwritten.
    Damaged,
    /// The store that was opened is no longer where its address leads: it was removed, moved or replaced. A program that
    /// opens the address now sees another store, so what is held on this one excludes no other holder. Stop, and open it
    /// anew.
    ///
    /// A store says this only if it knows it. One that cannot be reached is [`Unreachable`](Self::Unreachable).
    Gone,
}

/// The outcome is not known: a timeout, a cut connection, a server error. It may have happened, or may happen yet.
#[derive(Debug, thiserror::Error)]
#[error("the outcome is not known: {source}")]
#[non_exhaustive]
pub struct Unknown {
    /// What the store, or the way to it, said last.
    pub source: BoxError,
}

/// The store asks the caller to come back later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("the store asks for fewer calls")]
#[non_exhaustive]
pub struct Throttled {
    /// How long the store asks to be left alone, where it says so.
    pub after: Option<Duration>,
}

impl StoreError {
    /// A call that certainly had no effect.
    pub fn refused(reason: Reason, source: impl Into<BoxError>) -> Self {
        Self::Refused(Refused { reason, source: source.into() })
    }

    /// A call that may have happened, or may happen yet.
    pub fn unknown(source: impl Into<BoxError>) -> Self {
        Self::Unknown(Unknown { source: source.into() })
    }

    /// A call that the store wants later.
    pub fn throttled(after: Option<Duration>) -> Self {
        Self::Throttled(Throttled { after })
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "the store could not be reached",
            Self::Denied => "the store denied access",
            Self::Unsupported => "the store does not support this",
            Self::Invalid => "the store refused the call",
            Self::Damaged => "what is stored is damaged",
            Self::Gone => "the store is no longer there",
        })
    }
}
