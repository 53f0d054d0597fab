use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::machine::Sightings;
use tenure_store::Key;

use crate::clock::Instant;
use crate::keeper::HostState;
use crate::trust::Trust;

/// Memory of the plain keys that a coordinator has seen: a change of an entry that was seen a moment ago is one write.
pub(crate) struct KeyMemory {
    keys: Mutex<HashMap<Key, KnownKey>>,
    /// Local state that the keeper shares.
    pub(super) host: HostState,
}

/// Knowledge of a coordinator about one plain key.
#[derive(Debug, Default)]
pub(super) struct KnownKey {
    pub(super) sightings: Sightings,
    /// Earliest time of the next write, by the store's write interval.
    pub(super) next_write_at: Option<Instant>,
    /// Number of pending operations.
    pub(super) in_use: u32,
}

impl KeyMemory {
    pub(crate) fn new(host: HostState) -> Self {
        Self { keys: Mutex::default(), host }
    }

    /// Trust in the store, which the keeper shares.
    pub(crate) fn trust(&self) -> Arc<Trust> {
        Arc::clone(&self.host.trust)
    }

    /// Uses the state of one key. The lock is held during the call, which never waits.
    pub(super) fn with<T>(&self, key: &Key, act: impl FnOnce(&mut KnownKey) -> T) -> T {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= KEYS_MAX && !keys.contains_key(key) {
            // Their next change costs one more read.
            keys.retain(|_, known| known.in_use > 0);
        }
        act(keys.entry(key.clone()).or_default())
    }
}

impl fmt::Debug for KeyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("KeyMemory").field("keys", &keys).finish_non_exhaustive()
    }
}

/// Maximum number of keys that a coordinator remembers. Beyond it, all that are not in use are forgotten.
const KEYS_MAX: usize = 10_000;
