use std::sync::Arc;

use crate::{Token, WallTime};

/// A term that is over, as the history of a record tells it to people.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Past {
    /// The token of its grant.
    pub token: Token,
    /// The id of its holder.
    pub holder: Arc<str>,
    /// When it was granted, by the holder's wall clock.
    pub granted_at: WallTime,
    /// When its end was written, by the writer's wall clock.
    pub ended_at: WallTime,
    /// How it ended.
    pub end: End,
}

impl Past {
    /// A term of this holder with this token, from its grant to the end that was written.
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

/// How a term ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Its holder let go.
    Released,
    /// Nobody renewed it in time, and somebody else was granted.
    RanOut,
    /// Its witness showed that nobody acts under it any more.
    Died,
    /// Somebody took it on purpose.
    Revoked {
        /// Who.
        by: Arc<str>,
        /// Why.
        because: Arc<str>,
    },
    /// In a way that only a later version knows. The word is kept, for people.
    Other(Arc<str>),
}
