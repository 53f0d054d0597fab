use std::sync::{Arc, Mutex, PoisonError};

use super::ServerAnswer;

/// One call and its state. It travels with the request through the client library to the hook.
#[derive(Clone, Debug, Default)]
pub(crate) struct Call(Arc<Mutex<CallState>>);

/// State of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallState {
    /// Nothing was sent: the call ended earlier, while the request was signed or its credentials were fetched.
    #[default]
    NotSent,
    /// Nothing was sent: there was no connection.
    NotConnected(String),
    /// The request was sent, at least in part, and there was no answer.
    Cut(String),
    /// The server answered. The part after the status may be missing.
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
