use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::Token;

/// What became of a lease that was to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// Its record was removed. Its value and its history are gone with it; its token is not, because the store's time is
    /// beyond it already.
    Removed {
        /// The token of its latest grant; zero if it was never granted.
        token: Token,
        /// For how long it had been vacant, as far as wall clocks can tell.
        vacant_for: Duration,
    },
    /// There was no record.
    Absent,
    /// Its record was kept.
    Kept(WhyKept),
}

/// Why a record was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyKept {
    /// Somebody holds it.
    Held,
    /// Somebody holds it, and was asked to let go.
    Revoked,
    /// It is reserved for a successor.
    Reserved,
    /// Nobody holds it any more, and its holder never let go: it is free for whoever wants it, and not vacant.
    NotLetGo,
    /// It is closed, and its record is what says so.
    Closed,
    /// It is not a record that this version understands completely, in words.
    Foreign(Arc<str>),
    /// It has not been vacant for long enough.
    TooYoung {
        /// For how long it has been, as far as wall clocks can tell.
        vacant_for: Duration,
    },
    /// The store's time is not beyond its token, so the next one could be less.
    AheadOfClock {
        /// Its token.
        token: Token,
    },
    /// Somebody else wrote to it, or removed it, at the same moment.
    Changed,
}

impl fmt::Display for WhyKept {
    /// To be read after "kept, because".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("somebody holds it"),
            Self::Revoked => f.write_str("somebody holds it and was asked to let go"),
            Self::Reserved => f.write_str("it is reserved for a successor"),
            Self::NotLetGo => f.write_str("its holder is gone and never let go"),
            Self::Closed => f.write_str("it is closed"),
            Self::Foreign(what) => write!(f, "it is not ours to touch: {what}"),
            Self::TooYoung { vacant_for } => write!(f, "it has been vacant for {vacant_for:?} only"),
            Self::AheadOfClock { token } => write!(f, "the store's clock is behind its token {token}"),
            Self::Changed => f.write_str("somebody else wrote to it at the same moment"),
        }
    }
}
