use std::fmt;
use std::sync::Arc;

use crate::record::Token;

/// Why a lease is not held any more. Whatever it says: stop acting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// The holder let go itself.
    Released,
    /// No renewal was confirmed before the deadline.
    Expired,
    /// Somebody else was granted.
    Superseded {
        /// Who, if the record names a holder.
        by: Option<Arc<str>>,
        /// The token of that grant, or of the vacant record that is there.
        token: Token,
    },
    /// Somebody took it on purpose.
    Revoked {
        /// Who.
        by: Arc<str>,
        /// Why.
        because: Arc<str>,
    },
    /// The record was deleted from outside.
    Deleted,
    /// The record was replaced by something that is not a record of ours.
    Replaced {
        /// What is there, in words.
        what: Arc<str>,
    },
    /// A renewal failed, and the lease is strict.
    RenewalFailed,
    /// Somebody else went on with the term, by a copy of its handle.
    Resumed,
    /// The thread that keeps the lease has ended.
    KeeperGone,
    /// This is a forked copy of the process that holds the lease.
    Forked,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("it was released"),
            Self::Expired => f.write_str("no renewal was confirmed before the deadline"),
            Self::Superseded { by: Some(by), token } => write!(f, "{by} was granted it with token {token}"),
            Self::Superseded { by: None, token } => {
                write!(f, "it was vacated from elsewhere at token {token}")
            }
            Self::Revoked { by, because } => write!(f, "{by} took it on purpose: {because}"),
            Self::Deleted => f.write_str("its record was deleted from outside"),
            Self::Replaced { what } => write!(f, "its record was replaced from outside: {what}"),
            Self::RenewalFailed => f.write_str("a renewal failed and the lease is strict"),
            Self::Resumed => {
                f.write_str("its handle was renewed since, and only the handle which that gave is good")
            }
            Self::KeeperGone => f.write_str("the thread that keeps it has ended"),
            Self::Forked => f.write_str("this is a forked copy of the process that holds it"),
        }
    }
}
