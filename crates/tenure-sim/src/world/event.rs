/// Identifies a lease: its process, its slot, and its own number, because slots are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseTarget {
    pub(super) process: u16,
    pub(super) slot: u16,
    pub(super) lease: u32,
}

/// An event: a delivered message, a timer or a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A machine's sleep is over.
    Wake(LeaseTarget),
    /// A request arrives at the store; `copy` distinguishes the copies of one request.
    Request { message: u32, copy: u8 },
    /// An answer arrives.
    Answer { target: LeaseTarget, call: u32, answer: u32 },
    /// A call timed out, or its connection broke.
    Unanswered { target: LeaseTarget, call: u32 },
    /// A witness was inspected.
    Witness { target: LeaseTarget, look: u32 },
    /// The work under a lease acts: it checks the lease, and writes.
    Act(LeaseTarget),
    /// The holder renews manually.
    Renew(LeaseTarget),
    /// The holder releases, or the contender gives up.
    Release(LeaseTarget),
    /// The work under a lease has stopped.
    Drained(LeaseTarget),
    /// The holder finds that it cannot stop the work.
    CannotStop(LeaseTarget),
    /// The keeper is scheduled to extend the belief.
    Extend(LeaseTarget),
    /// The keeper learns that the belief was latched as lost.
    Latched(LeaseTarget),
    /// The deadline of a handle is reached, and its script checks the clock.
    Deadline(LeaseTarget),
    /// A script that has stopped its work releases its handle.
    Leave(LeaseTarget),
    /// A command of a script is killed.
    Kill(LeaseTarget),
    /// A hint that the key changed.
    Hint { process: u16 },
    /// A process wants the lease, for this slot.
    Start { process: u16, slot: u16, incarnation: u32 },
    /// A write arrives at the fenced resource.
    ResourceWrite { token: u64 },
    /// The nemesis strikes.
    Strike,
    /// The store executes nothing for a while.
    Outage,
    /// The server behind the store restarts.
    RestartStore,
    /// A participant that only reads has waited for the quarantine of this run.
    ClearRun { run: u32 },
    /// A paused process continues.
    Resume { process: u16, pause: u32 },
    /// A dead process restarts.
    Restart { process: u16, incarnation: u32 },
    /// A process is connected again.
    Reconnect { process: u16, cut: u32 },
    /// A child of a dead holder exits.
    OrphanEnds { orphan: u32 },
    /// An operator removes foreign bytes.
    Repair,
    /// An observer reads the key.
    Observe { observer: u16 },
    /// An observer's answer arrives.
    Observed { observer: u16, answer: u32 },
    /// All faults end.
    Heal,
    /// The time limit for the key to be held again is reached.
    HeldAgainBy,
    /// The steady phase ends.
    Steady,
    /// Contention ends.
    Quiet,
    /// The end of the seed.
    End,
}

impl Event {
    /// The process that must run for this event to be handled.
    pub(super) fn needs(&self) -> Option<u16> {
        match self {
            Self::Wake(target)
            | Self::Answer { target, .. }
            | Self::Unanswered { target, .. }
            | Self::Witness { target, .. }
            | Self::Act(target)
            | Self::Renew(target)
            | Self::Release(target)
            | Self::Drained(target)
            | Self::CannotStop(target)
            | Self::Extend(target)
            | Self::Latched(target)
            | Self::Deadline(target)
            | Self::Leave(target)
            | Self::Kill(target) => Some(target.process),
            Self::Hint { process } | Self::Start { process, .. } => Some(*process),
            _ => None,
        }
    }

    /// A number for the trace.
    pub(super) fn code(&self) -> u64 {
        match self {
            Self::Wake(target) => 1 << 32 | u64::from(target.lease),
            Self::Request { message, copy } => 2 << 32 | u64::from(*message) << 1 | u64::from(*copy),
            Self::Answer { target, call, .. } => 3 << 32 | u64::from(target.lease ^ call),
            Self::Unanswered { target, call } => 4 << 32 | u64::from(target.lease ^ call),
            Self::Witness { target, .. } => 5 << 32 | u64::from(target.lease),
            Self::Act(target) => 6 << 32 | u64::from(target.lease),
            Self::Renew(target) => 7 << 32 | u64::from(target.lease),
            Self::Release(target) => 8 << 32 | u64::from(target.lease),
            Self::Drained(target) => 9 << 32 | u64::from(target.lease),
            Self::Extend(target) => 10 << 32 | u64::from(target.lease),
            Self::Latched(target) => 11 << 32 | u64::from(target.lease),
            Self::Hint { process } => 12 << 32 | u64::from(*process),
            Self::Start { process, slot, .. } => 13 << 32 | u64::from(*process) << 16 | u64::from(*slot),
            Self::ResourceWrite { token } => 14 << 60 | token,
            Self::Strike => 15 << 32,
            Self::Resume { process, .. } => 16 << 32 | u64::from(*process),
            Self::Restart { process, .. } => 17 << 32 | u64::from(*process),
            Self::Reconnect { process, .. } => 18 << 32 | u64::from(*process),
            Self::OrphanEnds { orphan } => 19 << 32 | u64::from(*orphan),
            Self::Repair => 20 << 32,
            Self::Observe { observer } => 21 << 32 | u64::from(*observer),
            Self::Observed { observer, .. } => 22 << 32 | u64::from(*observer),
            Self::Heal => 23 << 32,
            Self::HeldAgainBy => 24 << 32,
            Self::Steady => 25 << 32,
            Self::Quiet => 26 << 32,
            Self::End => 27 << 32,
            Self::Deadline(target) => 28 << 32 | u64::from(target.lease),
            Self::Leave(target) => 29 << 32 | u64::from(target.lease),
            Self::Kill(target) => 30 << 32 | u64::from(target.lease),
            Self::RestartStore => 32 << 32,
            Self::Outage => 34 << 32,
            Self::ClearRun { run } => 33 << 32 | u64::from(*run),
            Self::CannotStop(target) => 31 << 32 | u64::from(target.lease),
        }
    }
}
