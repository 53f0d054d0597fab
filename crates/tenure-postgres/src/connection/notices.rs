use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Messages of the server on one connection that belong to no call.
#[derive(Debug, Default)]
pub(crate) struct ServerNotices {
    unreplicated: AtomicU64,
    end: Mutex<Option<String>>,
}

impl ServerNotices {
    pub(super) fn count_unreplicated(&self) {
        self.unreplicated.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of commits that did not wait for their standbys.
    pub(super) fn unreplicated(&self) -> u64 {
        self.unreplicated.load(Ordering::Relaxed)
    }

    pub(super) fn set_end(&self, error: String) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The error that ended the connection.
    pub(crate) fn end(&self) -> Option<String> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
