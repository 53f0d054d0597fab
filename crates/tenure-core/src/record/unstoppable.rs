use std::sync::Arc;

use super::Nonce;
use crate::{Holder, text};

/// Statement of a holder that it cannot stop the work of its term.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unstoppable {
    /// The term of the statement. Programs that do not know this field copy it into the records of later terms, where
    /// it has no meaning.
    pub term: Nonce,
    /// The reason.
    pub because: Arc<str>,
}

impl Unstoppable {
    /// A statement that the work of this term cannot be stopped, for this reason.
    pub fn new(term: Nonce, because: impl Into<Arc<str>>) -> Self {
        Self { term, because: because.into() }
    }

    /// Makes a reason valid for a record: on one line, and within the limit of its length.
    pub fn reason(because: &str) -> Arc<str> {
        text::on_one_line(text::beginning(because, Holder::TEXT_MAX)).into()
    }
}
