use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::Token;

/// Result of forgetting a lease.
///
/// Exhaustive: the record is removed, was not there, or stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// The record was removed, with its value and history. Its token is not lost, because the store's time is beyond
    /// it.
    Removed {
        /// The token of its latest grant; zero if it was never granted.
        token: Token,
        /// Time for which it had been vacant, by wall clocks.
        vacant_for: Duration,
    },
    /// There was no record.
    Absent,
    /// Its record was kept.
    Kept(WhyKept),
}

/// Reason for which a record was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyKept {
    /// The lease is held.
    Held,
    /// The lease is held, and its holder was asked to release.
    Revoked,
    /// It is reserved for a successor.
    Reserved,
    /// The holder is gone and never released: the lease is free for contenders, but its record is not vacant.
    NotReleased,
    /// It is a plain key with an entry. The entry of a plain key is released, and not forgotten.
    PlainKey,
    /// The lease is closed, which only its record shows.
    Closed,
    /// This version does not fully understand the record, described in words.
    Foreign(Arc<str>),
    /// It has not been vacant for long enough.
    TooYoung {
        /// Time for which it has been vacant, by wall clocks.
        vacant_for: Duration,
    },
    /// The store's time is not beyond its token, so the next token could be smaller.
    AheadOfClock {
        /// Its token.
        token: Token,
    },
    /// Another process wrote or removed it at the same moment.
    Changed,
}

impl fmt::Display for WhyKept {
    /// Continues the words "kept, because".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("it is held"),
            Self::Revoked => f.write_str("it is held, and its holder was asked to release"),
            Self::Reserved => f.write_str("it is reserved for a successor"),
            Self::NotReleased => f.write_str("its holder died and never released it"),
            Self::PlainKey => f.write_str("it is a plain key that was not released"),
            Self::Closed => f.write_str("it is closed"),
            Self::Foreign(what) => write!(f, "it is foreign: {what}"),
            Self::TooYoung { vacant_for } => write!(f, "it has been vacant for {vacant_for:?} only"),
            Self::AheadOfClock { token } => write!(f, "the store's clock is behind its token {token}"),
            Self::Changed => f.write_str("another process wrote to it at the same moment"),
        }
    }
}
