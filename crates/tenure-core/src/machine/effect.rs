use std::sync::Arc;

use tenure_store::Expect;

use super::{Denied, Fault, Lost, Sighting};
use crate::record::{Nonce, Record, Witness};
use crate::{Instant, Token};

/// An action that the machine requests from its driver.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Read the key, and answer with [`Input::Read`](super::Input::Read) within the request timeout.
    Read,
    /// Write the record, and answer with [`Input::Written`](super::Input::Written) within the request timeout. The
    /// driver lists the record's nonce in the witness first.
    Write(Write),
    /// Come back at this instant with [`Input::Wake`](super::Input::Wake). Replaces the previous request.
    SleepUntil(Instant),
    /// Inspect a witness, and answer with [`Input::Witness`](super::Input::Witness).
    LookAtWitness {
        /// The witness that the record names.
        witness: Arc<Witness>,
        /// The nonce that it must list.
        nonce: Nonce,
    },
    /// Report an event to the caller.
    Tell(Event),
}

/// One conditional write.
#[derive(Clone, Debug)]
pub struct Write {
    /// Purpose of the write.
    pub purpose: Purpose,
    /// The content that must be there.
    pub expect: Expect,
    /// The record to write.
    pub record: Arc<Record>,
}

impl Write {
    /// Meaning of the write for the store. A change of a plain key is no grant: it makes no holder.
    pub fn for_store(&self) -> tenure_store::Purpose {
        use tenure_store::Purpose as Meaning;
        match self.purpose {
            Purpose::Grant if !self.record.is_key() => Meaning::Grant { token: self.record.token.get() },
            Purpose::Renew => Meaning::Renewal,
            Purpose::Resume => Meaning::Resumption,
            Purpose::Vacate => Meaning::Release,
            Purpose::Grant | Purpose::Plant | Purpose::Revoke => Meaning::Change,
        }
    }
}

/// Purpose of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// Create the vacant record of a key that has none.
    Plant,
    /// Become the holder.
    Grant,
    /// Continue an earlier term.
    Resume,
    /// Stay the holder.
    Renew,
    /// Ask the holder to release.
    Revoke,
    /// Release.
    Vacate,
}

impl Purpose {
    /// True if the write starts or ends a term: the machine tracks it until it is settled.
    pub(crate) fn is_of_a_term(self) -> bool {
        match self {
            Self::Grant | Self::Resume | Self::Renew | Self::Vacate => true,
            Self::Plant | Self::Revoke => false,
        }
    }

    /// True if the write leaves a record under which a process may act. Contenders look for its nonce in the witness.
    pub fn is_of_a_holder(self) -> bool {
        match self {
            Self::Grant | Self::Resume | Self::Renew => true,
            Self::Plant | Self::Revoke | Self::Vacate => false,
        }
    }
}

/// An event that the holder must know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The lease is held, until the deadline.
    Granted {
        /// The term.
        term: Nonce,
        /// The token to send with every write.
        token: Token,
        /// Deadline of the belief.
        deadline: Instant,
    },
    /// The lease is held for longer.
    Renewed {
        /// The new deadline of the belief.
        deadline: Instant,
    },
    /// A renewal failed. The lease is still held, until the deadline it had.
    AtRisk(Fault),
    /// The lease is no longer held. Answer with [`Input::Drained`](super::Input::Drained) once no process acts.
    Lost(Lost),
    /// The belief has ended and the work under the term cannot be stopped: the record is renewed until that work has
    /// ended.
    Keeping {
        /// The reason why it cannot be stopped.
        because: Arc<str>,
    },
    /// The machine has ended, after a term or without having been granted one.
    Left(Left),
    /// The lease was not granted, and will not be.
    Denied(Denied),
    /// The record of another holder has run out by its ttl, and its witness is still locked: a process of the former
    /// term is alive.
    Outlived {
        /// That record.
        record: Arc<Record>,
        /// The sighting of its witness.
        sighting: Sighting,
        /// True if the contender takes over the lease anyway; otherwise it waits for that process.
        taken: bool,
    },
    /// The key showed a smaller token than before: a record was restored, or changed from outside.
    WentBack {
        /// The greatest token seen before.
        seen: Token,
        /// The token that the key shows now; `None` if there is no record.
        shown: Option<Token>,
    },
}

/// State in which a machine left the key when it ended.
///
/// Exhaustive: the next contender is granted at once, or perhaps after one ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// A vacant record: the next contender is granted at once.
    Vacated,
    /// Nothing of its own.
    Nothing,
    /// Perhaps a record that no holder renews: it runs out after one ttl.
    Lapsing,
}
