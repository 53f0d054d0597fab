use std::sync::Arc;

use crate::{Token, WallTime};

/// An ended term in the history of a record. Informational.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Past {
    /// The token of its grant.
    pub token: Token,
    /// The id of its holder.
    pub holder: Arc<str>,
    /// Time of the grant, by the holder's wall clock.
    pub granted_at: WallTime,
    /// Time at which the end was written, by the writer's wall clock.
    pub ended_at: WallTime,
    /// The way in which it ended.
    pub end: End,
}

impl Past {
    /// A term of this holder with this token, from its grant to its recorded end.
    pub fn new(
        token: Token,
        holder: impl Into<Arc<str>>,
        granted_at: WallTime,
        ended_at: WallTime,
        end: End,
    ) -> Self {
        Self { token, holder: holder.into(), granted_at, ended_at, end }
    }
}

/// The way in which a term ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Its holder released it.
    Released,
    /// Its holder did not renew it in time, and another holder was granted.
    RanOut,
    /// Its witness showed that no process acts under it any more.
    Died,
    /// Another holder took it over (steal).
    Revoked {
        /// The holder that took it over.
        by: Arc<str>,
        /// The stated reason.
        because: Arc<str>,
    },
    /// An end that only a later version knows. The word is kept, for information.
    Other(Arc<str>),
}
