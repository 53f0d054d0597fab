use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Reason, StoreTime, Version};

use crate::record::{Nonce, Record};
use crate::{Instant, WallTime};

/// What the machine is told. It asks nobody: what it needs of the world comes along in [`Ambient`].
#[derive(Clone, Debug)]
pub enum Input {
    /// Begin.
    Start,
    /// The one read that is under way was answered.
    Read(Result<Look, Fault>),
    /// The one write that is under way was answered.
    Written(Outcome),
    /// The instant of the latest [`Effect::SleepUntil`](super::Effect::SleepUntil) has come.
    Wake,
    /// A hint that the key changed.
    Changed,
    /// A hint that what is held may be lost.
    Doubted,
    /// What the witness of the record that carries `nonce` looked like.
    Witness {
        /// The nonce that was looked for.
        nonce: Nonce,
        /// What was there.
        sighting: Sighting,
    },
    /// Renew now.
    Renew,
    /// Let go, or give up wanting it.
    Release,
    /// Nobody acts under the term any more: every piece of work has been dropped.
    Drained,
    /// Somebody saw the deadline pass and latched the belief as lost before it could be extended.
    Latched,
    /// The holder cannot stop the work under its term, for this reason. From now on the record says so, and when belief is
    /// over it is kept until [`Drained`](Self::Drained).
    CannotStop(Arc<str>),
}

/// The world at the moment of an input.
#[derive(Clone, Copy, Debug)]
pub struct Ambient {
    /// The clock that leases are counted on.
    pub now: Instant,
    /// For people.
    pub wall: WallTime,
    /// A fresh random number from the kernel, for the one write that a step may send.
    pub nonce: Nonce,
    /// A uniform random number, to spread calls over time.
    pub jitter: u32,
}

/// What a read showed.
#[derive(Clone, Debug)]
pub struct Look {
    /// The content of the key.
    pub content: Content,
    /// How old the version is by the store's own clock, where that clock does not jump.
    pub age: Option<Duration>,
    /// The store's time when it answered.
    pub time: Option<StoreTime>,
}

/// The content of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// There is no entry.
    Absent,
    /// A record.
    Record(Arc<Record>, Version),
    /// Something that is not a record this version understands, in words. It is never overwritten.
    Foreign {
        /// What is there.
        what: Arc<str>,
        /// Its version.
        version: Version,
    },
}

/// The answer to a write.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It happened.
    Applied {
        /// The version it left behind.
        version: Version,
        /// The store's time when it answered.
        time: Option<StoreTime>,
    },
    /// The key is not what was expected.
    Conflict,
    /// There was no definite answer.
    Fault(Fault),
}

impl Outcome {
    /// Why there was no definite answer, if there was none.
    pub(super) fn fault(&self) -> Option<Fault> {
        match self {
            Self::Fault(fault) => Some(*fault),
            Self::Applied { .. } | Self::Conflict => None,
        }
    }
}

/// A call without a definite answer, or one that the store would not take.
///
/// Exhaustive, as [`StoreError`](tenure_store::StoreError) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It may have happened, or may happen yet.
    Unknown,
    /// The store wants it later.
    Throttled(Option<Duration>),
    /// It certainly had no effect.
    Refused(Reason),
}

impl Fault {
    /// The store that this lease is on is not the one that others open now.
    pub(super) const STORE_GONE: Self = Self::Refused(Reason::Gone);

    /// How long a throttling store asks to be left alone, as far as we listen to it.
    pub(super) fn asked_pause(self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(60);
        match self {
            Self::Throttled(Some(after)) => after.min(LONGEST),
            Self::Throttled(None) | Self::Unknown | Self::Refused(_) => Duration::ZERO,
        }
    }
}

/// What a contender saw when it looked for the witness that a record names.
///
/// Exhaustive: who looks says of every part what it saw, because a lock that nobody looked at is not free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// A file of that name is there.
    pub found: bool,
    /// It is the very file that the record names: same inode, same boot.
    pub same_file: bool,
    /// A process that keeps the lease, or guards the work under it, has locked its part.
    pub guards_locked: bool,
    /// A process that does the work under the lease, or ends only after it, has locked its part.
    pub tree_locked: bool,
    /// Its ring lists the nonce of the holder's last write.
    pub lists_nonce: bool,
}

impl Sighting {
    /// True if any part is locked: a process acts under the record, or guards the work under it.
    pub fn is_locked(&self) -> bool {
        self.guards_locked || self.tree_locked
    }
}
