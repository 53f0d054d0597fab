//! One request and its outcome.

use std::time::Duration;

use super::Fault;

/// One request as the proxy saw it, and its outcome.
///
/// The request of a database is a command. The method is its name, the target its text, and the status 200, or 400 for an
/// error.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Exchange {
    /// Time of arrival, since the start of the proxy.
    pub at: Duration,
    /// Number of its connection, counted from one.
    pub connection: u64,
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The condition `If-Match`.
    pub if_match: Option<String>,
    /// The condition `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The condition `x-goog-if-generation-match` of Google.
    pub if_generation_match: Option<String>,
    /// The fault that a rule chose for it.
    pub fault: Option<Fault>,
    /// Status of the server's answer, for each time that the server got the request.
    pub served: Vec<u16>,
    /// The status that the proxy sent to the client, with the complete answer or a part of it.
    pub answered: Option<u16>,
}

impl Exchange {
    /// True if the server answered it with success, at least once.
    pub fn was_applied(&self) -> bool {
        self.served.iter().any(|status| (200..300).contains(status))
    }
}
