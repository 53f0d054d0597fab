use std::path::Path;

use tenure_store::{Reason, StoreError};

use super::envelope::Flaw;

/// A file in the place of an entry that is not an entry. It is never overwritten.
///
/// It is the source of the [`Refused`](tenure_store::Refused) that answers a read or a write of such a key.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} is not a Tenure entry, and was not overwritten: {flaw}. Inspect it, and move it away to start over"
)]
pub(super) struct Damaged {
    path: String,
    flaw: String,
}

impl Damaged {
    pub(super) fn entry(path: &Path, flaw: Flaw) -> StoreError {
        Self::because(path, flaw.to_string())
    }

    pub(super) fn because(path: &Path, flaw: impl Into<String>) -> StoreError {
        let damaged = Self { path: path.display().to_string(), flaw: flaw.into() };
        StoreError::refused(Reason::Damaged, damaged)
    }
}
