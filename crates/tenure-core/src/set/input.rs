use crate::Instant;

/// An input of a [`SetMachine`](super::SetMachine). `member` is the position of a lease in the order of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetInput {
    /// Begin.
    Start,
    /// The lease was granted.
    Granted {
        /// The lease.
        member: usize,
    },
    /// The lease was denied, and leaves nothing behind.
    Denied {
        /// The lease.
        member: usize,
    },
    /// A lease that was granted is no longer held.
    Lost {
        /// The lease.
        member: usize,
    },
    /// The release of a lease, or the cancellation of its request, has ended.
    Left {
        /// The lease.
        member: usize,
    },
    /// Release all, or stop waiting for them.
    Release,
}

/// The world at the moment of an input.
#[derive(Clone, Copy, Debug)]
pub struct SetAmbient<'a> {
    /// The clock that leases are counted on.
    pub now: Instant,
    /// For each lease, in the order of the keys: true if it is held at this instant, by the clock.
    pub held: &'a [bool],
}
