use std::sync::{Arc, Mutex, PoisonError};

use super::ServerAnswer;

/// One call, and what was seen of it. It travels with the request through the client library to the hook.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call(Arc<Mutex<CallState>>);

/// What was seen of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallState {
    /// Nothing was sent: it ended before that, while the request was signed or its credentials were fetched.
    #[default]
    NotSent,
    /// Nothing was sent: there was no connection to send it over.
    NotConnected(String),
    /// It was sent, or part of it, and there was no answer.
    Cut(String),
    /// It was answered. What came after the status may be missing.
    Answered(Box<ServerAnswer>),
}

impl Call {
    pub(crate) fn extensions(&self) -> http::Extensions {
        let mut extensions = http::Extensions::new();
        extensions.insert(self.clone());
        extensions
    }

    pub(crate) fn note(&self, seen: CallState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    pub(crate) fn seen(&self) -> CallState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
