use std::sync::Arc;

use super::GroupSize;
use crate::Instant;
use crate::record::Record;

/// An action that a [`SlotMachine`](super::SlotMachine) requests from its driver.
#[derive(Clone, Debug)]
pub enum SlotEffect {
    /// Read the size of the group, and answer with [`Size`](super::SlotInput::Size).
    ReadSize,
    /// Create the size of the group if it has none, and answer with [`Size`](super::SlotInput::Size): the size that the
    /// group has now.
    CreateSize(GroupSize),
    /// Try to acquire this slot once.
    Try(u16),
    /// Read this slot. Several reads may be pending.
    Read(u16),
    /// List the group with stamps, and answer with [`Listed`](super::SlotInput::Listed) or
    /// [`NotListed`](super::SlotInput::NotListed).
    List,
    /// Wait for this slot as for any lease, until this instant.
    Wait {
        /// The slot.
        index: u16,
        /// End of the wait.
        until: Instant,
    },
    /// Listen for hints on all slots of the group from now on, and pass them on as
    /// [`Hinted`](super::SlotInput::Hinted). Reads that follow are sent after the driver listens.
    Listen,
    /// Release this slot, which was granted.
    Release(u16),
    /// Come back at this instant with [`Wake`](super::SlotInput::Wake). Replaces the previous request.
    SleepUntil(Instant),
    /// Report an event to the caller.
    Tell(SlotEvent),
}

/// An event that the driver reports to the caller.
#[derive(Clone, Debug)]
pub enum SlotEvent {
    /// The slot is held, and the group still has its size.
    Believe {
        /// The slot.
        index: u16,
    },
    /// Every slot is held by another holder, or unusable.
    Full {
        /// The holders, by index.
        holders: Vec<SlotHolder>,
    },
    /// The group has another size. A slot that was granted is released.
    Refused {
        /// The size that the caller expects.
        own: GroupSize,
        /// The size that the group has.
        stored: GroupSize,
        /// True if the group was resized while the caller waited.
        resized: bool,
    },
    /// The store did not answer in time.
    Unavailable,
}

/// The holder of one slot.
#[derive(Clone, Debug)]
pub struct SlotHolder {
    /// The slot.
    pub index: u16,
    /// Its record.
    pub record: Arc<Record>,
    /// Instant at which the version has run out, unless the holder renews it.
    pub due: Instant,
}
