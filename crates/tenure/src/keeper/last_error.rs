use std::sync::{Arc, Mutex, PoisonError};

/// The error of the latest call for a request; `None` if that call succeeded. The keeper sets it, and any thread reads it.
#[derive(Debug, Default)]
pub(crate) struct LastError(Mutex<Option<Arc<str>>>);

impl LastError {
    pub(crate) fn set(&self, error: Option<Arc<str>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    pub(crate) fn get(&self) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
