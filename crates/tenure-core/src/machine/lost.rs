use std::fmt;
use std::sync::Arc;

use super::TermRef;
use crate::Token;
use crate::record::{End, Past, Record, State};

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
        /// Who: whoever took it on purpose, or else whoever the record names.
        by: Option<Arc<str>>,
        /// The token of that grant, or of what is there by now.
        token: Token,
        /// Why it was taken, if that was on purpose and without waiting, as far as the record remembers it.
        because: Option<Arc<str>>,
    },
    /// Somebody takes it on purpose, and waits until it is let go.
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
    /// The store was removed, moved or replaced under its holders: others who open it now see another one.
    StoreGone,
    /// A renewal failed, and the lease is strict.
    RenewalFailed,
    /// Somebody else went on with the term, by a copy of its handle.
    Resumed,
    /// The thread that keeps the lease has ended.
    KeeperGone,
    /// This is a forked copy of the process that holds the lease.
    Forked,
}

impl Lost {
    /// Somebody else's record is there instead of one of the term with this token.
    pub(super) fn to(record: &Record, token: Token) -> Self {
        let taken = record.history.iter().rev().find_map(|past| match &past.end {
            End::Revoked { by, because } if past.token == token => Some((by, because)),
            _ => None,
        });
        let (by, because) = match taken {
            Some((by, because)) => (Some(by), Some(Arc::clone(because))),
            None => (record.holder.as_ref().map(|holder| holder.id()), None),
        };
        Self::Superseded { by: by.cloned(), token: record.token, because }
    }

    pub(super) fn revoked(by: &Arc<str>, because: &Arc<str>) -> Self {
        Self::Revoked { by: Arc::clone(by), because: Arc::clone(because) }
    }

    /// Why a handle of an earlier process is not good for this record any more.
    pub fn of_handle(record: &Record, handle: &TermRef) -> Self {
        match &record.state {
            _ if record.term != handle.term => Self::to(record, handle.token),
            State::Revoked(revocation) => Self::revoked(&revocation.by, &revocation.because),
            State::Held => Self::Resumed,
            State::Vacant | State::Reserved(_) | State::Closed(_) => match record.history.last() {
                Some(Past { end: End::Revoked { by, because }, .. }) => Self::revoked(by, because),
                _ => Self::Released,
            },
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("it was released"),
            Self::Expired => f.write_str("no renewal was confirmed before the deadline"),
            Self::Superseded { by: Some(by), because: Some(because), .. } | Self::Revoked { by, because } => {
                write!(f, "{by} took it on purpose: {because}")
            }
            Self::Superseded { by: Some(by), token, .. } => {
                write!(f, "{by} was granted it with token {token}")
            }
            Self::Superseded { by: None, token, .. } => {
                write!(f, "it was vacated from elsewhere at token {token}")
            }
            Self::Deleted => f.write_str("its record was deleted from outside"),
            Self::Replaced { what } => write!(f, "its record was replaced from outside: {what}"),
            Self::StoreGone => f.write_str("its store was removed, moved or replaced"),
            Self::RenewalFailed => f.write_str("a renewal failed and the lease is strict"),
            Self::Resumed => {
                f.write_str("its handle was renewed since, and only the handle which that gave is good")
            }
            Self::KeeperGone => f.write_str("the thread that keeps it has ended"),
            Self::Forked => f.write_str("this is a forked copy of the process that holds it"),
        }
    }
}
