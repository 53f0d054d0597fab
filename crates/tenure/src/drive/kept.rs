use std::fmt;
use std::sync::Arc;

use tenure_store::Key;
use tokio::sync::oneshot;

use super::witnesses::Then;
use crate::Error;
use crate::clock::Instant;
use crate::lease::Wanted;
use crate::lease::shared::Shared;
use tenure_core::machine::{Ask, Input, Lost, Machine};
use tenure_core::Timing;
use tenure_core::record::Witness;
use tenure_core::{Holder, Token};
use crate::witness::Lock;

/// How far the witness of a lease is. No write is sent before it is there: the record names it.
#[derive(Debug, Default)]
pub(super) enum Making {
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
pub(super) struct Kept {
    pub(super) key: Key,
    pub(super) holder: Arc<Holder>,
    pub(super) timing: Timing,
    pub(super) machine: Machine,
    /// When it wants to be woken.
    pub(super) wake: Option<Instant>,
    /// Answers that are given once the machine has come to rest.
    pub(super) answers: Vec<Then>,
    /// Whoever waits for the answer.
    pub(super) wanted: Option<Wanted>,
    /// The token of the term of another process that it goes on with, or ends.
    pub(super) resumes: Option<Token>,
    /// Whether the term is left to whoever has its handle: nobody keeps it here any more.
    pub(super) detached: bool,
    /// Whether what was seen must be in the logbook before those answers are given.
    pub(super) noted: bool,
    /// Whoever waits for a renewal.
    pub(super) renewed: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Whoever waits until it is left.
    pub(super) left: Vec<oneshot::Sender<Result<(), Error>>>,
    /// The lease, once there is one.
    pub(super) shared: Option<Arc<Shared>>,
    /// Shows others that it is alive, where that can be seen.
    pub(super) witness: Option<Arc<Lock>>,
    pub(super) making: Making,
    /// A witness that proved its holder dead: no record names it once this lease is granted.
    pub(super) dead: Option<Arc<Witness>>,
    /// What the store said when a call failed last.
    pub(super) trouble: Option<Arc<str>>,
}

impl Kept {
    pub(super) fn new(key: Key, ask: Ask, wanted: Wanted) -> Self {
        Self {
            key,
            holder: Arc::clone(&ask.holder),
            timing: ask.timing,
            resumes: None,
            machine: Machine::new(ask),
            wake: None,
            answers: Vec::new(),
            wanted: Some(wanted),
            detached: false,
            noted: false,
            renewed: Vec::new(),
            left: Vec::new(),
            shared: None,
            witness: None,
            making: Making::Done,
            dead: None,
            trouble: None,
        }
    }

    /// Whoever waits for the answer waits in vain.
    pub(super) fn answer_denied(&mut self, error: Error) {
        match self.wanted.take() {
            Some(Wanted::Lease(reply)) => self.answers.push(Box::new(move || drop(reply.send(Err(error))))),
            Some(Wanted::Handle(reply)) => self.answers.push(Box::new(move || drop(reply.send(Err(error))))),
            Some(Wanted::End(reply)) => self.answers.push(Box::new(move || drop(reply.send(Err(error))))),
            None => {}
        }
    }

    pub(super) fn token(&self) -> Option<Token> {
        self.shared.as_ref().map(|shared| shared.token).or(self.resumes)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("key", &self.key).field("machine", &self.machine).finish_non_exhaustive()
    }
}

impl Drop for Kept {
    /// Whatever ends the keeper, a panic included: a lease that nobody keeps is lost.
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.latch(Lost::KeeperGone);
        }
    }
}
