use std::sync::Arc;

use super::{GroupListing, GroupSize};
use crate::Instant;
use crate::record::Record;

/// An input of a [`SlotMachine`](super::SlotMachine).
#[derive(Clone, Debug)]
pub enum SlotInput {
    /// Begin.
    Start,
    /// The answer to [`ReadSize`](super::SlotEffect::ReadSize) or [`CreateSize`](super::SlotEffect::CreateSize).
    ///
    /// A machine that holds a slot accepts it at any time.
    Size {
        /// Time at which the request was sent.
        sent: Instant,
        /// The size of the group.
        answer: SizeAnswer,
    },
    /// The slot was granted. Answers [`Try`](super::SlotEffect::Try) and [`Wait`](super::SlotEffect::Wait).
    Granted {
        /// The slot.
        index: u16,
    },
    /// The slot was not granted, and its record is not known. Answers [`Try`](super::SlotEffect::Try) and
    /// [`Wait`](super::SlotEffect::Wait).
    Denied {
        /// The slot.
        index: u16,
    },
    /// The state of a slot. Answers [`Read`](super::SlotEffect::Read); also [`Try`](super::SlotEffect::Try) and
    /// [`Wait`](super::SlotEffect::Wait) if the slot was not granted and its record is known.
    Seen {
        /// The slot.
        index: u16,
        /// Its state.
        sight: SlotSight,
    },
    /// The stamps of the group. Answers [`List`](super::SlotEffect::List).
    Listed {
        /// Time at which the request was sent.
        sent: Instant,
        /// The stamps.
        listing: GroupListing,
    },
    /// The store did not list the group. Answers [`List`](super::SlotEffect::List).
    NotListed,
    /// The store did not answer a read, a try or a wait.
    Failed {
        /// The slot.
        index: u16,
    },
    /// The granted slot was lost before the size was known.
    Lost,
    /// A hint that a slot changed.
    Hinted {
        /// The slot.
        index: u16,
    },
    /// The instant of the latest [`SleepUntil`](super::SlotEffect::SleepUntil) has come.
    Wake,
    /// Release the slot, or stop wanting one.
    Release,
}

/// The size of a group, as the store answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeAnswer {
    /// The group has none yet.
    Absent,
    /// This size.
    Is(GroupSize),
    /// The store did not answer.
    Unknown,
}

/// State of a slot, as a contender read it.
#[derive(Clone, Debug)]
pub enum SlotSight {
    /// A contender that tries it is granted.
    Free,
    /// Another holder has it.
    Held {
        /// Its record.
        record: Arc<Record>,
        /// Instant at which the version has run out, unless the holder renews it.
        due: Instant,
    },
    /// It is never granted: it was retired, or its value is not a Tenure record.
    Unusable,
}
