use std::sync::Arc;

use tenure_store::Expect;

use super::{Denied, Fault, Lost, Sighting};
use crate::record::{Nonce, Record, Witness};
use crate::{Instant, Token};

/// What the machine wants done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Read the key, and answer with [`Input::Read`](super::Input::Read) within the request timeout.
    Read,
    /// Write the record, and answer with [`Input::Written`](super::Input::Written) within the request timeout. The
    /// witness lists the record's nonce first.
    Write(Write),
    /// Come back at this instant with [`Input::Wake`](super::Input::Wake). Replaces the one asked for before.
    SleepUntil(Instant),
    /// Look at a witness, and answer with [`Input::Witness`](super::Input::Witness).
    LookAtWitness {
        /// The witness that the record names.
        witness: Arc<Witness>,
        /// The nonce that it must list.
        nonce: Nonce,
    },
    /// Tell whoever asked.
    Tell(Event),
}

/// One conditional write.
#[derive(Clone, Debug)]
pub struct Write {
    /// What it is for.
    pub purpose: Purpose,
    /// What must be there.
    pub expect: Expect,
    /// What shall be there.
    pub record: Arc<Record>,
}

/// What a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// To create the vacant record of a key that has none.
    Plant,
    /// To become the holder.
    Grant,
    /// To go on with an earlier term.
    Resume,
    /// To stay the holder.
    Renew,
    /// To ask the holder to let go.
    Revoke,
    /// To let go.
    Vacate,
}

impl Purpose {
    /// Whether it makes or ends a term, so that we must account for it until it is settled.
    pub(super) fn is_of_a_term(self) -> bool {
        match self {
            Self::Grant | Self::Resume | Self::Renew | Self::Vacate => true,
            Self::Plant | Self::Revoke => false,
        }
    }

    /// Whether it leaves a record that somebody may be acting under, by which others look for its nonce.
    pub fn is_of_a_holder(self) -> bool {
        match self {
            Self::Grant | Self::Resume | Self::Renew => true,
            Self::Plant | Self::Revoke | Self::Vacate => false,
        }
    }
}

/// What happened, as the holder must know it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The lease is held, until the deadline.
    Granted {
        /// The term.
        term: Nonce,
        /// The token to send with every write.
        token: Token,
        /// Until when to believe it.
        deadline: Instant,
    },
    /// The lease is held for longer.
    Renewed {
        /// Until when to believe it.
        deadline: Instant,
    },
    /// A renewal failed. The lease is still held, until the deadline it had.
    AtRisk(Fault),
    /// The lease is not held any more. Answer with [`Input::Drained`](super::Input::Drained) once nobody acts.
    Lost(Lost),
    /// Belief is over and the work under the term cannot be stopped: the record is renewed until that work has ended.
    Keeping {
        /// The reason why it cannot be stopped.
        because: Arc<str>,
    },
    /// The machine has ended after a term, or after wanting one in vain.
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
        /// True if the lease is taken all the same; otherwise it is waited for.
        taken: bool,
    },
    /// The key showed a smaller token than before: it was restored or tampered with.
    WentBack {
        /// The greatest token seen before.
        seen: Token,
        /// What is there now; `None` if there is no record.
        shown: Option<Token>,
    },
}

/// What a machine left behind when it ended.
///
/// Exhaustive: the next one is granted at once, or perhaps after one ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A vacant record: the next one is granted at once.
    Vacated,
    /// Nothing of its own.
    Nothing,
    /// Perhaps a record that nobody renews: it runs out after one ttl.
    Lapsing,
}
