use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Reason, StoreTime, Version};

use crate::record::{Nonce, Record};
use crate::{Instant, WallTime};

/// An input of the machine. The machine never reads a clock or a store: facts about the world come with [`Ambient`].
#[derive(Clone, Debug)]
pub enum Input {
    /// Begin.
    Start,
    /// The answer to the one pending read.
    Read(Result<Look, Fault>),
    /// The answer to the one pending write.
    Written(Outcome),
    /// The instant of the latest [`Effect::SleepUntil`](super::Effect::SleepUntil) has come.
    Wake,
    /// A hint that the key changed.
    Changed,
    /// A hint that the held lease may be lost.
    Doubted,
    /// The state of the witness of the record that carries `nonce`.
    Witness {
        /// The nonce that the witness must list.
        nonce: Nonce,
        /// The state of the witness.
        sighting: Sighting,
    },
    /// Renew now.
    Renew,
    /// Release, or stop waiting for the lease.
    Release,
    /// No process acts under the term any more: all work has been dropped.
    Drained,
    /// The work of the term is done: the record that the release leaves behind says so.
    Succeeded,
    /// A thread saw the deadline pass, and latched the belief as lost before it could be extended.
    Latched,
    /// The holder cannot stop the work under its term, for this reason. From now on the record says so. When the belief
    /// has ended, the record is kept until [`Drained`](Self::Drained).
    CannotStop(Arc<str>),
}

/// The world at the moment of an input.
#[derive(Clone, Copy, Debug)]
pub struct Ambient {
    /// The clock that leases are counted on.
    pub now: Instant,
    /// The wall clock. Informational, except that [`Rules::due`](super::Rules::due) refuses if it is far from the store's time.
    pub wall: WallTime,
    /// A fresh random number from the kernel, for the one write that a step may send.
    pub nonce: Nonce,
    /// A uniform random number, to spread calls over time.
    pub jitter: u32,
}

/// The answer to a read.
#[derive(Clone, Debug)]
pub struct Look {
    /// The content of the key.
    pub content: Content,
    /// Age of the version by the store's own clock, if that clock does not jump.
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
    /// A value that is not a record this version understands. It is never overwritten.
    Foreign {
        /// Description of the value.
        what: Arc<str>,
        /// Its version.
        version: Version,
    },
}

/// The answer to a write.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The write happened.
    Applied {
        /// The version it left behind.
        version: Version,
        /// The store's time when it answered.
        time: Option<StoreTime>,
    },
    /// The content of the key is not the expected one.
    Conflict,
    /// There was no definite answer.
    Fault(Fault),
}

impl Outcome {
    /// The fault, if there was no definite answer.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self {
            Self::Fault(fault) => Some(*fault),
            Self::Applied { .. } | Self::Conflict => None,
        }
    }
}

/// A call without a definite answer, or one that the store refused.
///
/// Exhaustive, as [`StoreError`](tenure_store::StoreError) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It may have happened, or may still happen.
    Unknown,
    /// The store asks for fewer requests, and perhaps for a pause of this length.
    Throttled(Option<Duration>),
    /// It was not sent, and will not be for this long. It certainly had no effect.
    Withheld(Duration),
    /// It certainly had no effect.
    Refused(Reason),
}

impl Fault {
    /// The lease is on another store than the one that contenders open now.
    pub(crate) const STORE_GONE: Self = Self::Refused(Reason::Gone);

    /// The credentials are missing, wrong, or being rotated.
    pub(crate) const DENIED: Self = Self::Refused(Reason::Denied);

    /// Pause that the store asks for, up to a limit.
    pub(crate) fn asked_pause(self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(60);
        match self {
            Self::Throttled(Some(after)) | Self::Withheld(after) => after.min(LONGEST),
            Self::Throttled(None) | Self::Unknown | Self::Refused(_) => Duration::ZERO,
        }
    }
}

/// State of the witness that a record names, as a contender saw it.
///
/// Exhaustive: a driver reports every part, because a lock that was not inspected is not free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// True if a file of that name exists.
    pub found: bool,
    /// True if it is the file that the record names: same inode, same boot.
    pub same_file: bool,
    /// True if a process that keeps the lease, or guards the work under it, has locked its part.
    pub guards_locked: bool,
    /// True if a process that does the work under the lease, or ends only after that work, has locked its part.
    pub tree_locked: bool,
    /// True if its ring lists the nonce of the holder's last write.
    pub lists_nonce: bool,
}

impl Sighting {
    /// True if any part is locked: a process acts under the record, or guards the work under it.
    pub fn is_locked(&self) -> bool {
        self.guards_locked || self.tree_locked
    }
}
