/// Things that a seed of the driver reached. One that is never reached proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reached {
    /// A request arrived at the store.
    Call,
    /// A coordinator connected.
    Connected,
    /// A lease was granted.
    Grant,
    /// A lease was renewed.
    Renewal,
    /// A handle was granted.
    Handle,
    /// A campaign got a term.
    Term,
    /// A holder was asked to release.
    Steal,
    /// A lease was released from inside its work.
    ReleasedInside,
    /// A fenced value accepted a write.
    Fenced,
    /// An observer saw a record.
    Observed,
    /// A watch reported a change.
    Watched,
    /// A coordinator was shut down.
    ShutDown,
    /// A thread was preempted in the middle of its code.
    Preempted,
    /// A process was paused.
    Paused,
    /// A machine was suspended, and its clock went on.
    Suspended,
    /// The thread of a keeper did not run for a while.
    KeeperStalled,
    /// The executor of the user did not run for a while.
    UserStalled,
    /// A keeper died, and its process did not.
    KeeperDied,
    /// A process was killed.
    Killed,
    /// The store was down.
    Outage,
    /// A request arrived while the store was down.
    StoreDown,
    /// The credentials of a process were rotated.
    Rotated,
    /// The store denied a call.
    Denied,
    /// A patient contender was granted its lease although the store had denied its calls.
    OutlastedDenials,
    /// A patient contender reported that the store denies its calls.
    ReportedDenial,
    /// Code of the store panicked.
    StorePanicked,
    /// Code of the user panicked.
    UserPanicked,
    /// A hint was lost.
    HintLost,
    /// The disk of the witnesses failed.
    DiskFailed,
    /// The disk of the witnesses was slow.
    DiskSlow,
    /// No thread could be started.
    NoThread,
}

impl Reached {
    /// All of them, in the order of the report.
    pub const ALL: &[Self] = &[
        Self::Call,
        Self::Connected,
        Self::Grant,
        Self::Renewal,
        Self::Handle,
        Self::Term,
        Self::Steal,
        Self::ReleasedInside,
        Self::Fenced,
        Self::Observed,
        Self::Watched,
        Self::ShutDown,
        Self::Preempted,
        Self::Paused,
        Self::Suspended,
        Self::KeeperStalled,
        Self::UserStalled,
        Self::KeeperDied,
        Self::Killed,
        Self::Outage,
        Self::StoreDown,
        Self::Rotated,
        Self::Denied,
        Self::OutlastedDenials,
        Self::ReportedDenial,
        Self::StorePanicked,
        Self::UserPanicked,
        Self::HintLost,
        Self::DiskFailed,
        Self::DiskSlow,
        Self::NoThread,
    ];

    /// The thing that was reached, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Call => "requests that arrived at the store",
            Self::Connected => "coordinators connected",
            Self::Grant => "leases granted",
            Self::Renewal => "renewals",
            Self::Handle => "handles granted",
            Self::Term => "terms of campaigns",
            Self::Steal => "holders asked to release",
            Self::ReleasedInside => "leases released from inside their work",
            Self::Fenced => "fenced writes accepted",
            Self::Observed => "observations",
            Self::Watched => "changes reported by a watch",
            Self::ShutDown => "coordinators shut down",
            Self::Preempted => "threads preempted in the middle of their code",
            Self::Paused => "processes paused",
            Self::Suspended => "machines suspended, the clock went on",
            Self::KeeperStalled => "keepers stalled",
            Self::UserStalled => "executors of users stalled",
            Self::KeeperDied => "keepers died, their process did not",
            Self::Killed => "processes killed",
            Self::Outage => "outages of the store",
            Self::StoreDown => "requests during an outage",
            Self::Rotated => "rotations of credentials",
            Self::Denied => "calls denied",
            Self::OutlastedDenials => "acquires that outlasted a rotation",
            Self::ReportedDenial => "acquires that reported a denial",
            Self::StorePanicked => "panics in the code of the store",
            Self::UserPanicked => "panics in the code of users",
            Self::HintLost => "hints lost",
            Self::DiskFailed => "failures of the disk of witnesses",
            Self::DiskSlow => "slow answers of that disk",
            Self::NoThread => "threads that could not be started",
        }
    }
}
