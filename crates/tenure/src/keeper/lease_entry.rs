use std::fmt;
use std::sync::Arc;

use tenure_core::machine::{AcquireParams, Input, Lost, Machine, Standard};
use tenure_core::record::Witness;
use tenure_core::{Holder, Timing, Token};
use tenure_store::Key;
use tokio::sync::oneshot;

use super::background::Reply;
use super::held_lease::HeldLease;
use super::{LastError, ReplyTo};
use crate::Error;
use crate::clock::Instant;
use crate::host::simulation::{Duty, does, simulated};
use crate::host::witness::Lock;

/// Progress of a lease's witness. The keeper sends no write before the witness exists, because the record names it.
#[derive(Debug, Default)]
pub(crate) enum WitnessSetup {
    /// It exists, or the lease has none.
    #[default]
    Done,
    /// The machine has not started yet.
    First,
    /// The first read runs at the same time. If its answer arrives first, it is stored here.
    ///
    /// The machine then sees the answer later than it arrived. That is safe: the wait for a version counts from the
    /// arrival, and freshness from the time of sending.
    Beside(Option<Input>),
}

/// The keeper's state of one lease.
pub(crate) struct LeaseEntry {
    pub(crate) key: Key,
    pub(crate) holder: Arc<Holder>,
    pub(crate) timing: Timing,
    pub(crate) machine: Machine,
    /// Time of its timer.
    pub(crate) wake: Option<Instant>,
    /// Replies to send once the machine has processed its input.
    pub(crate) replies: Vec<Reply>,
    /// Reply channel of the pending request.
    pub(crate) reply_to: Option<ReplyTo>,
    /// Token of the term of another process that this request resumes or ends.
    pub(crate) resumes: Option<Token>,
    /// True if the term belongs to the owner of its handle, and the keeper no longer renews it.
    pub(crate) detached: bool,
    /// True if the logbook must be written before the replies are sent.
    pub(crate) logbook_pending: bool,
    /// Callers that wait for a renewal.
    pub(crate) renewal_replies: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Callers that wait for the release.
    pub(crate) release_replies: Vec<oneshot::Sender<Result<(), Error>>>,
    /// State that it shares with the user's lease, once granted.
    pub(crate) held_lease: Option<Arc<HeldLease>>,
    /// Lock that shows other processes that the holder is alive.
    pub(crate) witness: Option<Arc<Lock>>,
    pub(crate) witness_setup: WitnessSetup,
    /// A witness that proved its holder dead. No record names it once this lease is granted.
    pub(crate) dead_witness: Option<Arc<Witness>>,
    /// Receives the error of each failed call.
    pub(crate) failures: Option<Arc<LastError>>,
    /// Error of the last failed call.
    pub(crate) last_error: Option<Arc<str>>,
}

impl LeaseEntry {
    pub(crate) fn new(key: Key, params: AcquireParams, reply_to: ReplyTo) -> Self {
        Self {
            key,
            holder: Arc::clone(&params.holder),
            timing: params.timing,
            resumes: None,
            machine: Machine::with_rules(params, simulated(|host| host.rules()).unwrap_or(&Standard)),
            wake: None,
            replies: Vec::new(),
            reply_to: Some(reply_to),
            detached: false,
            logbook_pending: false,
            renewal_replies: Vec::new(),
            release_replies: Vec::new(),
            held_lease: None,
            witness: None,
            witness_setup: WitnessSetup::Done,
            dead_witness: None,
            failures: None,
            last_error: None,
        }
    }

    /// Sets the witness that its records name; `None` if none could be created.
    pub(crate) fn set_witness(&mut self, witness: Option<Lock>) {
        if let Some(lock) = &witness {
            self.machine.name_witness(Arc::clone(lock.named()));
        }
        self.witness = witness.map(Arc::new);
    }

    /// Queues an error as the reply to the pending request.
    pub(crate) fn deny(&mut self, error: Error) {
        match self.reply_to.take() {
            Some(ReplyTo::Lease(reply)) => self.replies.push(Box::new(move || drop(reply.send(Err(error))))),
            Some(ReplyTo::Handle(reply)) => self.replies.push(Box::new(move || drop(reply.send(Err(error))))),
            Some(ReplyTo::End(reply)) => self.replies.push(Box::new(move || drop(reply.send(Err(error))))),
            None => {}
        }
    }

    pub(crate) fn token(&self) -> Option<Token> {
        self.held_lease.as_ref().map(|held| held.token).or(self.resumes)
    }
}

impl fmt::Debug for LeaseEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseEntry")
            .field("key", &self.key)
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}

impl Drop for LeaseEntry {
    /// A lease without a keeper is lost, also when the keeper panics.
    fn drop(&mut self) {
        if let Some(held) = &self.held_lease
            && does(Duty::LatchWhenKeeperEnds)
        {
            held.latch(Lost::KeeperGone);
        }
    }
}
