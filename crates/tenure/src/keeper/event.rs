use std::sync::Arc;

use tenure_core::Token;
use tenure_core::machine::{self, Denied, Fault, Left, Lost, Sighting};
use tenure_core::record::{Nonce, Record};

use crate::clock::Instant;

/// An event of a lease, as a [`Recorder`](crate::Recorder) receives it.
///
/// The keeper handles every event of the machine. Recorders need not know all of them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The lease is held, until the deadline.
    Granted {
        /// The term.
        term: Nonce,
        /// The token to send with every write.
        token: Token,
        /// The deadline, on the coordinator's clock.
        deadline: Instant,
    },
    /// The lease was renewed.
    Renewed {
        /// The new deadline, on the coordinator's clock.
        deadline: Instant,
    },
    /// A renewal failed. The lease is still held, until its deadline.
    AtRisk(Fault),
    /// The lease is lost.
    Lost(Lost),
    /// The lease is lost and the work under the term cannot be stopped: the record is renewed until that work has ended.
    Keeping {
        /// The reason why it cannot be stopped.
        because: Arc<str>,
    },
    /// The keeper has nothing more to do for the lease.
    Left(Left),
    /// The lease was not granted, and will not be.
    Denied(Denied),
    /// The record of another holder has run out by its ttl, and its witness is still locked: a process of the former term
    /// is alive.
    Outlived {
        /// That record.
        record: Arc<Record>,
        /// The sighting of its witness.
        sighting: Sighting,
        /// True if the contender takes over anyway; false if it waits.
        taken: bool,
    },
    /// The key showed a smaller token than before: it was restored or tampered with.
    WentBack {
        /// The greatest token seen before.
        seen: Token,
        /// The token now; `None` if there is no record.
        shown: Option<Token>,
    },
    /// A fenced resource refused a write of this holder, because a newer one has been there.
    Fenced {
        /// The resource.
        resource: Arc<str>,
        /// The greatest token that the resource has seen.
        highest: Token,
    },
}

impl From<machine::Event> for Event {
    fn from(event: machine::Event) -> Self {
        match event {
            machine::Event::Granted { term, token, deadline } => Self::Granted { term, token, deadline },
            machine::Event::Renewed { deadline } => Self::Renewed { deadline },
            machine::Event::AtRisk(fault) => Self::AtRisk(fault),
            machine::Event::Lost(why) => Self::Lost(why),
            machine::Event::Keeping { because } => Self::Keeping { because },
            machine::Event::Left(left) => Self::Left(left),
            machine::Event::Denied(denied) => Self::Denied(denied),
            machine::Event::Outlived { record, sighting, taken } => {
                Self::Outlived { record, sighting, taken }
            }
            machine::Event::WentBack { seen, shown } => Self::WentBack { seen, shown },
        }
    }
}
