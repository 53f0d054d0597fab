use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenure_store::{Key, Reason, Refused, StoreError};

/// How many calls a probe has made. On an object store each is a request, and a listing one for each page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// Conditional writes.
    pub writes: u64,
    /// Reads.
    pub reads: u64,
    /// Listings.
    pub lists: u64,
    /// Removals, most of them to clean up.
    pub removals: u64,
}

/// What all connections of a probe have done together.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    state: Mutex<LedgerState>,
}

#[derive(Debug, Default)]
struct LedgerState {
    calls: Calls,
    /// Everything that may be there, under the name that the store knows.
    written: BTreeSet<Key>,
    next_write: Option<Loss>,
    /// How many calls had no answer since the last that had one.
    silent: u32,
    /// The keys that they were about.
    silent_keys: BTreeSet<Key>,
    last_error: String,
}

/// What happens to a write on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    Request,
    Answer,
}

impl Calls {
    /// All of them.
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

    /// A write is about to be sent: from now on it may be there.
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

    /// A read or a write was answered, or not.
    pub(crate) fn note_answer<T>(&self, key: &Key, answer: &Result<T, StoreError>) {
        let mut state = self.state();
        match answer {
            Ok(_) => {
                state.silent = 0;
                state.silent_keys.clear();
            }
            // What it cannot do, it says clearly enough.
            Err(StoreError::Refused(Refused {
                reason: Reason::Unsupported | Reason::Invalid | Reason::Damaged,
                ..
            })) => {}
            Err(error) => {
                state.silent += 1;
                state.silent_keys.insert(key.clone());
                state.last_error = error.to_string();
            }
        }
    }

    /// What it said last, if it has given no answer for long: then whatever failed meanwhile says nothing about it. One key
    /// that is silent is another matter.
    pub(crate) fn lasting_silence(&self) -> Option<String> {
        let state = self.state();
        let everywhere = state.silent_keys.len() > 1;
        (state.silent >= SILENT_MAX && everywhere).then(|| state.last_error.clone())
    }

    fn state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As many as the suite tries before it calls an outcome a failure.
const SILENT_MAX: u32 = 8;
