use std::sync::Arc;

use super::Nonce;
use crate::ProcessInfo;

/// Statement of a holder about the process of its term. Informational: no decision depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TermProcess {
    /// The term of the statement. Programs that do not know this field copy it into the records of later terms, where
    /// it has no meaning.
    pub term: Nonce,
    /// The process.
    pub info: Arc<ProcessInfo>,
    /// Time between two renewals, in milliseconds; absent if the term is renewed on request only.
    pub renews_ms: Option<u64>,
}

impl TermProcess {
    /// A statement that this process acts under the term.
    pub fn new(term: Nonce, info: Arc<ProcessInfo>) -> Self {
        Self { term, info, renews_ms: None }
    }

    /// Adds the time between two renewals.
    pub fn renewed_every(mut self, millis: u64) -> Self {
        self.renews_ms = Some(millis);
        self
    }
}
