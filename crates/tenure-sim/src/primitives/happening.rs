/// Identifies a caller of the store. Its number is unique in the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) process: u16,
    pub(super) caller: u32,
}

/// An event: a delivered message, a timer, an act of a user, or a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// The sleep of a caller is over.
    Wake(Port),
    /// The sleep of an actor is over.
    Alarm { process: u16, actor: u16 },
    /// A request arrives at the store; `copy` distinguishes the copies of one request.
    Request { message: u32, copy: u8 },
    /// An answer arrives.
    Answer { port: Port, call: u32, answer: u32 },
    /// A call timed out, or its connection broke.
    Unanswered { port: Port, call: u32 },
    /// The user of a lease releases it, or no longer wants it.
    Release(Port),
    /// The work under a lease has stopped.
    Drained(Port),
    /// An actor begins, or begins again.
    Start { process: u16, actor: u16, incarnation: u32 },
    /// The user of a set releases it.
    ReleaseSet { process: u16, actor: u16 },
    /// The work under a set checks it.
    CheckSet { process: u16, actor: u16 },
    /// The holder of a slot reads the size of its group.
    LookAtSize { process: u16, actor: u16 },
    /// The time limit of a freed slot is reached.
    FreedSlotBy { freed: u32 },
    /// A hint that a key changed.
    Hint { process: u16, key: u16 },
    /// A watcher reads its key.
    Watch { watcher: u16 },
    /// The answer of a watcher arrives.
    Watched { watcher: u16, answer: u32, sent: u64 },
    /// The nemesis strikes.
    Strike,
    /// A paused process continues.
    Resume { process: u16, pause: u32 },
    /// A dead process restarts.
    Restart { process: u16, incarnation: u32 },
    /// A process is connected again.
    Reconnect { process: u16, cut: u32 },
    /// All faults end.
    Heal,
    /// From now on the calls of waiting contenders are counted.
    Count,
    /// The time limit after healing is reached.
    Settled,
    /// Contention ends.
    Quiet,
    /// The end of the seed.
    End,
}

impl Happening {
    /// The process that must run for this event to be handled.
    pub(super) fn needs(&self) -> Option<u16> {
        match self {
            Self::Wake(port)
            | Self::Answer { port, .. }
            | Self::Unanswered { port, .. }
            | Self::Release(port)
            | Self::Drained(port) => Some(port.process),
            Self::Alarm { process, .. }
            | Self::Start { process, .. }
            | Self::ReleaseSet { process, .. }
            | Self::CheckSet { process, .. }
            | Self::LookAtSize { process, .. }
            | Self::Hint { process, .. } => Some(*process),
            _ => None,
        }
    }

    /// A number for the trace.
    pub(super) fn code(&self) -> u64 {
        match self {
            Self::Wake(port) => 1 << 32 | u64::from(port.caller),
            Self::Alarm { actor, .. } => 2 << 32 | u64::from(*actor),
            Self::Request { message, copy } => 3 << 32 | u64::from(*message) << 1 | u64::from(*copy),
            Self::Answer { port, call, .. } => 4 << 32 | u64::from(port.caller ^ call),
            Self::Unanswered { port, call } => 5 << 32 | u64::from(port.caller ^ call),
            Self::Release(port) => 6 << 32 | u64::from(port.caller),
            Self::Drained(port) => 7 << 32 | u64::from(port.caller),
            Self::Start { actor, .. } => 8 << 32 | u64::from(*actor),
            Self::Hint { process, key } => 9 << 32 | u64::from(*process) << 16 | u64::from(*key),
            Self::Watch { watcher } => 10 << 32 | u64::from(*watcher),
            Self::Watched { watcher, .. } => 11 << 32 | u64::from(*watcher),
            Self::Strike => 12 << 32,
            Self::Resume { process, .. } => 13 << 32 | u64::from(*process),
            Self::Restart { process, .. } => 14 << 32 | u64::from(*process),
            Self::Reconnect { process, .. } => 15 << 32 | u64::from(*process),
            Self::Heal => 16 << 32,
            Self::Settled => 17 << 32,
            Self::Quiet => 18 << 32,
            Self::End => 19 << 32,
            Self::Count => 24 << 32,
            Self::LookAtSize { actor, .. } => 22 << 32 | u64::from(*actor),
            Self::FreedSlotBy { freed } => 23 << 32 | u64::from(*freed),
            Self::ReleaseSet { actor, .. } => 20 << 32 | u64::from(*actor),
            Self::CheckSet { actor, .. } => 21 << 32 | u64::from(*actor),
        }
    }
}
