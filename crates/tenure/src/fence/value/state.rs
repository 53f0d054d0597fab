use std::sync::{Arc, Mutex, PoisonError};

use tenure_fence::FenceError;
use tenure_store::{Guarantees, Key, Reason};

use super::Header;
use super::memory::ValueMemory;

/// What all clones of a handle share.
#[derive(Debug)]
pub(super) struct ValueState {
    /// The key of the entry in the store.
    pub(super) key: Key,
    /// Name of the value and its store, for messages.
    pub(super) resource: Arc<str>,
    pub(super) guarantees: Guarantees,
    memory: Mutex<ValueMemory>,
    /// Held during a write.
    pub(super) turn: tokio::sync::Mutex<()>,
}

impl ValueState {
    pub(super) fn new(key: Key, store: &str, guarantees: Guarantees) -> Self {
        let name = key.fenced_name();
        let resource = format!("fenced value {} on {store}", name.as_ref().unwrap_or(&key)).into();
        let (memory, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { key, resource, guarantees, memory, turn }
    }

    /// Uses the memory. The lock is held during the call, which never waits.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut ValueMemory) -> T) -> T {
        act(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Maximum length of the content, in bytes.
    pub(super) fn content_max(&self) -> usize {
        self.guarantees.value_max.saturating_sub(Header::MAX_BYTES)
    }

    /// Fails for a store on which a stale write could be admitted.
    pub(super) fn check_store(&self) -> Result<(), FenceError> {
        let Guarantees { atomic_create, atomic_replace, linearizable_reads, .. } = self.guarantees;
        let needed = [
            (atomic_create, "atomic create"),
            (atomic_replace, "atomic replace"),
            (linearizable_reads, "linearizable reads"),
        ];
        let missing: Vec<_> = needed.iter().filter(|(has, _)| !has).map(|(_, name)| *name).collect();
        if !missing.is_empty() {
            let why = format!("the store does not guarantee {}. Use another store", missing.join(", "));
            return Err(self.refused(Reason::Unsupported, why));
        }
        if !self.guarantees.allows_plain_keys() {
            let why = "the store may lose acknowledged writes when its server restarts, and with them the token of the \
                       fence. Use another store, or add accept=restart to its URL if a stale write after a restart does \
                       no harm";
            return Err(self.refused(Reason::Unsupported, why));
        }
        Ok(())
    }

    /// Fails for content that the store cannot hold.
    pub(super) fn check_length(&self, length: usize) -> Result<(), FenceError> {
        let max = self.content_max();
        if length <= max {
            return Ok(());
        }
        let why = format!("its content has at most {max} bytes there, and this one has {length}");
        Err(self.refused(Reason::Invalid, why))
    }

    pub(super) fn refused(&self, reason: Reason, why: impl Into<String>) -> FenceError {
        FenceError::refused(&*self.resource, reason, why.into())
    }
}
