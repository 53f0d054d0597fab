use std::fmt;
use std::sync::Arc;

use super::TermRef;
use crate::Token;
use crate::record::{End, Past, Record, State};

/// Cause of a loss. Whatever it is: stop acting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lost {
    /// The holder released it.
    Released,
    /// No renewal was confirmed before the deadline.
    Expired,
    /// Another holder was granted.
    Superseded {
        /// The contender that took over, or else the holder that the record names.
        by: Option<Arc<str>>,
        /// The token of that grant, or of the current record.
        token: Token,
        /// The reason of a takeover without waiting, as far as the record keeps it.
        because: Option<Arc<str>>,
    },
    /// A contender takes over, and waits for the release.
    Revoked {
        /// The contender.
        by: Arc<str>,
        /// The reason.
        because: Arc<str>,
    },
    /// The record was deleted from outside.
    Deleted,
    /// The record was replaced by a value that is not a Tenure record.
    Replaced {
        /// The value, in words.
        what: Arc<str>,
    },
    /// The store was removed, moved or replaced under its holders: processes that open it now see another one.
    StoreGone,
    /// A renewal failed, and the lease is strict.
    RenewalFailed,
    /// Another process continued the term with a copy of its handle.
    Resumed,
    /// The thread that keeps the lease has ended.
    KeeperGone,
    /// This is a forked copy of the process that holds the lease.
    Forked,
}

impl Lost {
    /// Another record is in the place of one of the term with this token.
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

    /// Reason why a handle of an earlier process is not valid for this record any more.
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
                write!(f, "{by} takes it over: {because}")
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
            Self::Resumed => f.write_str("its handle was renewed since, and only the new handle is valid"),
            Self::KeeperGone => f.write_str("the thread that keeps it has ended"),
            Self::Forked => f.write_str("this is a forked copy of the process that holds it"),
        }
    }
}
