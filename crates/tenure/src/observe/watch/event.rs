use std::sync::Arc;

use tenure_core::Token;
use tenure_core::record::End;
use tenure_store::Key;

use crate::Error;
use crate::clock::WallTime;
use crate::observe::Observation;

/// What a [`Watch`](super::Watch) tells.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchEvent {
    /// How a key stands: the first that is reported of a key that was there when the watch began, and what is reported when a key
    /// can be read again and nothing has changed.
    Stands(Observation),
    /// Something happened to a key. One that appears after the watch began has stood vacant until then.
    Changed(Change),
    /// This key cannot be shown, though others can: it is damaged, or went back in time. It is reported once, and the watch goes
    /// on. Look at it.
    Problem {
        /// The key.
        key: Key,
        /// What is wrong with it.
        error: Error,
        /// When it was seen, by this machine's wall clock.
        seen_at: WallTime,
    },
    /// The store cannot be read. It is reported once, and the watch goes on trying. Do nothing: [`Available`](Self::Available)
    /// follows, and whatever changed meanwhile.
    Unavailable {
        /// Why.
        error: Error,
        /// When it was seen, by this machine's wall clock.
        seen_at: WallTime,
    },
    /// The store can be read again.
    Available {
        /// When it was seen to be unavailable, by this machine's wall clock.
        since: WallTime,
        /// When it was seen, by this machine's wall clock.
        seen_at: WallTime,
    },
}

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The key.
    pub key: Key,
    /// What happened.
    pub kind: ChangeKind,
    /// The token of the term that it is about, or of the latest before it; `None` if there was none.
    pub token: Option<Token>,
    /// The id of the holder of that term, where it is about one.
    pub holder: Option<Arc<str>>,
    /// When it was written, by the writer's wall clock; `None` where nobody wrote anything. For people.
    pub written_at: Option<WallTime>,
    /// When it was seen, by this machine's wall clock. For people.
    pub seen_at: WallTime,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Somebody holds it now, or did for a while.
    Granted,
    /// The holder renewed it. It is reported on request, and always of a term that had seemed to be over.
    Renewed,
    /// The holder was asked to let go. It may still act.
    Revoked {
        /// Who asks.
        by: Arc<str>,
        /// Why.
        because: Arc<str>,
    },
    /// The term is over. One that ran out, or whose holder died, is over as soon as a contender would be granted; a
    /// reservation that ran out has no holder.
    Ended(End),
    /// Nobody holds it, and meanwhile only this successor is granted.
    Reserved {
        /// For whom.
        successor: Arc<str>,
    },
    /// It is retired on purpose.
    Closed {
        /// Who did it.
        by: Arc<str>,
        /// Why.
        because: Arc<str>,
    },
    /// There is a record where there was none, and it tells of no newer term.
    Appeared,
    /// The record is gone: somebody deleted it.
    Gone,
    /// Something lies there that is not a record of ours, in words.
    Foreign(Arc<str>),
    /// There may have been more terms than are reported: the record remembers only the last of them.
    Missed,
}
