use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_store::{Key, Reason, Refused, StoreError};

/// Number of calls that a probe has made. On an object store each call is one request; a listing is one request per
/// page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Conditional writes.
    pub writes: u64,
    /// Reads.
    pub reads: u64,
    /// Listings.
    pub lists: u64,
    /// Removals, most of them during clean-up.
    pub removals: u64,
}

/// Record of the calls of all connections of a probe.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    state: Mutex<LedgerState>,
}

#[derive(Debug, Default)]
struct LedgerState {
    calls: Calls,
    /// Every key that may exist, under its name in the store.
    written: BTreeSet<Key>,
    next_write: Option<Loss>,
    /// Number of calls without an answer since the last answered call.
    silent: u32,
    /// Keys of the unanswered calls.
    silent_keys: BTreeSet<Key>,
    last_error: String,
}

/// Fault that the probe injects into a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    Request,
    Answer,
}

impl Calls {
    /// Sum of all calls.
    pub fn total(&self) -> u64 {
        self.writes + self.reads + self.lists + self.removals
    }
}

impl Ledger {
    /// Counts a call that is about to be made.
    pub(crate) fn count(&self, call: impl FnOnce(&mut Calls) -> &mut u64) {
        *call(&mut self.state().calls) += 1;
    }

    pub(crate) fn calls(&self) -> Calls {
        self.state().calls
    }

    /// Records that a write is about to be sent: from now on the entry may exist.
    pub(crate) fn writes(&self, key: &Key) {
        self.state().written.insert(key.clone());
    }

    pub(crate) fn written(&self) -> BTreeSet<Key> {
        self.state().written.clone()
    }

    pub(crate) fn lose_next(&self, loss: Loss) {
        self.state().next_write = Some(loss);
    }

    pub(crate) fn take_loss(&self) -> Option<Loss> {
        self.state().next_write.take()
    }

    /// Records whether a read or a write was answered.
    pub(crate) fn note_answer<T>(&self, key: &Key, answer: &Result<T, StoreError>) {
        let mut state = self.state();
        match answer {
            Ok(_) => {
                state.silent = 0;
                state.silent_keys.clear();
            }
            // A refusal for one of these reasons is a clear answer, not silence.
            Err(StoreError::Refused(Refused {
                reason: Reason::Unsupported | Reason::Missing | Reason::Invalid | Reason::Damaged,
                ..
            })) => {}
            Err(error) => {
                state.silent += 1;
                state.silent_keys.insert(key.clone());
                state.last_error = error.to_string();
            }
        }
    }

    /// The last error, if the store has not answered for a long time: failures in that period say nothing about the
    /// store. Silence about a single key does not count.
    pub(crate) fn lasting_silence(&self) -> Option<String> {
        let state = self.state();
        let everywhere = state.silent_keys.len() > 1;
        (state.silent >= SILENT_MAX && everywhere).then(|| state.last_error.clone())
    }

    fn state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same number of attempts as the suite makes before it reports a failure.
const SILENT_MAX: u32 = 8;
