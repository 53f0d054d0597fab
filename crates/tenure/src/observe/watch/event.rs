use std::sync::Arc;

use tenure_core::Token;
use tenure_core::record::End;
use tenure_store::Key;

use crate::Error;
use crate::clock::WallTime;
use crate::observe::Observation;

/// Report of a [`Watch`](super::Watch).
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchEvent {
    /// Standing of a key. Reported first for each key that exists when the watch begins, and again when a key becomes
    /// readable without a change.
    Stands(Observation),
    /// A change of a key. A key that appears after the watch began counts as vacant until then.
    Changed(Change),
    /// This key cannot be read, though others can: it is damaged, or went back in time. The watch continues,
    /// and reports a cause that lasts again after a minute, and then after growing pauses. Inspect the key.
    Problem {
        /// The key.
        key: Key,
        /// The error.
        error: Error,
        /// Time of the observation, by this machine's wall clock.
        seen_at: WallTime,
    },
    /// The store cannot be read. Reported once; the watch keeps trying. Do nothing: [`Available`](Self::Available)
    /// follows, with all changes in between.
    Unavailable {
        /// The error.
        error: Error,
        /// Time of the observation, by this machine's wall clock.
        seen_at: WallTime,
    },
    /// The store can be read again.
    Available {
        /// Start of the unavailability, by this machine's wall clock.
        since: WallTime,
        /// Time of the observation, by this machine's wall clock.
        seen_at: WallTime,
    },
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The key.
    pub key: Key,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// The token of the term, or of the latest term before it; `None` if there was none.
    pub token: Option<Token>,
    /// The id of the term's holder, if the change belongs to a term.
    pub holder: Option<Arc<str>>,
    /// Time of the write, by the writer's wall clock; `None` if no write caused the change. Informational.
    pub written_at: Option<WallTime>,
    /// Time of the observation, by this machine's wall clock. Informational.
    pub seen_at: WallTime,
}

/// Kind of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// A holder was granted the lease. Its term may already be over.
    Granted,
    /// The holder renewed. Reported on request, and always for a term that had seemed to be over.
    Renewed,
    /// The holder was asked to release. It may still act.
    Revoked {
        /// The contender that asks.
        by: Arc<str>,
        /// The reason.
        because: Arc<str>,
    },
    /// The term is over. A term that ran out, or whose holder died, is over as soon as a contender would be granted. A
    /// reservation that ran out has no holder.
    Ended(End),
    /// The lease is vacant and reserved for one successor.
    Reserved {
        /// The successor.
        successor: Arc<str>,
    },
    /// The lease is closed.
    Closed {
        /// The operator who closed it.
        by: Arc<str>,
        /// The reason.
        because: Arc<str>,
    },
    /// A record appeared, without a newer term.
    Appeared,
    /// The record was deleted.
    Gone,
    /// The key is a plain key, which is no lease. Its later changes are not reported.
    PlainKey,
    /// The key holds a value that is not a Tenure record, described in words.
    Foreign(Arc<str>),
    /// There may have been more terms than are reported: the record keeps only the last ones.
    Missed,
}
