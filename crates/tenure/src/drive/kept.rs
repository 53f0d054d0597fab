use std::sync::Arc;

use tenure_store::Key;
use tokio::sync::oneshot;

use crate::Error;
use crate::clock::Instant;
use crate::lease::shared::Shared;
use crate::machine::{Ask, Lost, Machine, Timing};
use crate::record::{Holder, Token};

/// One lease as the keeper keeps it.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) key: Key,
    pub(super) holder: Arc<Holder>,
    pub(super) timing: Timing,
    pub(super) machine: Machine,
    /// When it wants to be woken.
    pub(super) wake: Option<Instant>,
    /// Whoever waits for the grant.
    pub(super) granted: Option<oneshot::Sender<Result<Arc<Shared>, Error>>>,
    /// Whoever waits for a renewal.
    pub(super) renewed: Vec<oneshot::Sender<Result<(), Error>>>,
    /// Whoever waits until it is left.
    pub(super) left: Vec<oneshot::Sender<Result<(), Error>>>,
    /// The lease, once there is one.
    pub(super) shared: Option<Arc<Shared>>,
    /// What the store said when a call failed last.
    pub(super) trouble: Option<Arc<str>>,
}

impl Kept {
    pub(super) fn new(key: Key, ask: Ask, granted: oneshot::Sender<Result<Arc<Shared>, Error>>) -> Self {
        Self {
            key,
            holder: Arc::clone(&ask.holder),
            timing: ask.timing,
            machine: Machine::new(ask),
            wake: None,
            granted: Some(granted),
            renewed: Vec::new(),
            left: Vec::new(),
            shared: None,
            trouble: None,
        }
    }

    pub(super) fn token(&self) -> Option<Token> {
        self.shared.as_ref().map(|shared| shared.token)
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
