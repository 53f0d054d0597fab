use std::fmt;
use std::sync::Arc;

use tenure_core::machine::{AcquireParams, Input, Lost, Machine};
use tenure_core::record::Witness;
use tenure_core::{Holder, Timing, Token};
use tenure_store::Key;
use tokio::sync::oneshot;

use super::ReplyTo;
use super::background::Reply;
use super::held_lease::HeldLease;
use crate::Error;
use crate::clock::Instant;
use crate::host::witness::Lock;

/// How far the witness of a lease is. No write is sent before it is there: the record names it.
#[derive(Debug, Default)]
pub(crate) enum WitnessSetup {
    /// It is there, or will not be.
    #[default]
    Done,
    /// Nothing else is done meanwhile.
    First,
    /// The first read is made meanwhile, and its answer, if it comes first, is kept until then.
    ///
    /// So the machine takes it for an answer that came later. That is never less safe: waiting for a version counts from
    /// when its answer came, and how fresh the answer is, from when it was asked for.
    Beside(Option<Input>),
}

/// One lease as the keeper keeps it.
pub(crate) struct LeaseEntry {
    pub(crate) key: Key,
    pub(crate) holder: Arc<Holder>,
    pub(crate) timing: Timing,
    pub(crate) machine: Machine,
    /// When it wants to be woken.
    pub(crate) wake: Option<Instant>,
    /// Answers that are given once the machine has come to rest.
    pub(crate) replies: Vec<Reply>,
    /// Whoever waits for the answer.
    pub(crate) reply_to: Option<ReplyTo>,
    /// The token of the term of another process that it goes on with, or ends.
    pub(crate) resumes: Option<Token>,
    /// Whether the term is left to whoever has its handle: nobody keeps it here any more.
    pub(crate) detached: bool,
    /// Whether what was seen must be in the logbook before those answers are given.
    pub(crate) logbook_pending: bool,
    /// Whoever waits for a renewal.
    pub(crate) renewal_replies: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Whoever waits until it is left.
    pub(crate) release_replies: Vec<oneshot::Sender<Result<(), Error>>>,
    /// The lease, once there is one.
    pub(crate) held_lease: Option<Arc<HeldLease>>,
    /// Shows others that it is alive, where that can be seen.
    pub(crate) witness: Option<Arc<Lock>>,
    pub(crate) witness_setup: WitnessSetup,
    /// A witness that proved its holder dead: no record names it once this lease is granted.
    pub(crate) dead_witness: Option<Arc<Witness>>,
    /// What the store said when a call failed last.
    pub(crate) last_error: Option<Arc<str>>,
}

impl LeaseEntry {
    pub(crate) fn new(key: Key, params: AcquireParams, reply_to: ReplyTo) -> Self {
        Self {
            key,
            holder: Arc::clone(&params.holder),
            timing: params.timing,
            resumes: None,
            machine: Machine::new(params),
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
            last_error: None,
        }
    }

    /// Whoever waits for the answer waits in vain.
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
    /// Whatever ends the keeper, a panic included: a lease that nobody keeps is lost.
    fn drop(&mut self) {
        if let Some(held) = &self.held_lease {
            held.latch(Lost::KeeperGone);
        }
    }
}
