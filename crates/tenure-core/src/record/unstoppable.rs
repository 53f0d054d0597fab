use std::sync::Arc;

use super::Nonce;
use crate::Holder;

/// Says that the work of a term cannot be stopped by its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unstoppable {
    /// The term that says so. Programs that do not know this field copy it into the records of later terms, where it means
    /// nothing.
    pub term: Nonce,
    /// The reason.
    pub because: Arc<str>,
}

impl Unstoppable {
    /// The work of this term cannot be stopped, for this reason.
    pub fn new(term: Nonce, because: impl Into<Arc<str>>) -> Self {
        Self { term, because: because.into() }
    }

    /// Makes a reason fit for a record: on one line, and no longer than a record takes.
    pub fn reason(because: &str) -> Arc<str> {
        let end = (0..=Holder::TEXT_MAX.min(because.len()))
            .rfind(|end| because.is_char_boundary(*end))
            .unwrap_or(0);
        because[..end].replace(char::is_control, " ").into()
    }
}
