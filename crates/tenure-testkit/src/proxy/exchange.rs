//! What became of one request.

use std::time::Duration;

use super::Fault;

/// One request as the proxy saw it, and what became of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exchange {
    /// When it had arrived, since the proxy was started.
    pub at: Duration,
    /// Which connection it came on, counted from one.
    pub connection: u64,
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The condition `If-Match`.
    pub if_match: Option<String>,
    /// The condition `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The fault that a rule chose for it.
    pub fault: Option<Fault>,
    /// What the server answered, each time that it got the request.
    pub served: Vec<u16>,
    /// The status that the client was sent, be it with the whole answer or not.
    pub answered: Option<u16>,
}

impl Exchange {
    /// Whether the server answered it with success, at least once.
    pub fn was_applied(&self) -> bool {
        self.served.iter().any(|status| (200..300).contains(status))
    }
}
