use crate::machine::Patience;

/// An action that a [`SetMachine`](super::SetMachine) requests from its driver. `member` is the position of a lease in
/// the order of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetEffect {
    /// Acquire the lease and keep it, and answer with [`SetInput::Granted`](super::SetInput::Granted) or
    /// [`SetInput::Denied`](super::SetInput::Denied).
    Acquire {
        /// The lease.
        member: usize,
        /// Longest wait.
        patience: Patience,
    },
    /// Release the lease, or cancel its request, and answer with [`SetInput::Left`](super::SetInput::Left).
    Release {
        /// The lease.
        member: usize,
    },
    /// Report an event to the caller.
    Tell(SetEvent),
}

/// An event that the holder of a set must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetEvent {
    /// All leases are held.
    Granted,
    /// The set was not granted, and will not be. Everything that was granted has been released.
    Denied(SetDenied),
    /// The set is no longer held, because this lease is not. Stop acting.
    Lost {
        /// The lease.
        member: usize,
    },
    /// The machine has ended after the set was held: all leases are released or lost.
    Left,
}

/// The reason why a set was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetDenied {
    /// This lease was denied.
    Member(usize),
    /// This lease was lost while another was being acquired, and there was no time to begin again.
    MemberLost(usize),
    /// The request was cancelled.
    Cancelled,
}
