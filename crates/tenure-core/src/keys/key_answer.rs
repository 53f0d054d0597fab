use super::{KeyDenied, SeenEntry};

/// Answer of one operation on a plain key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyAnswer {
    /// The entry that a [`Get`](super::KeyOperation::Get) found; `None` if there is none, or it has run out.
    Found(Option<SeenEntry>),
    /// There was no entry, and now there is this one.
    Created(SeenEntry),
    /// The expected entry was replaced by this one.
    Updated(SeenEntry),
    /// The present entry does not have the expected revision, and nothing was changed. `None` if there is none, or it
    /// has run out.
    Conflict(Option<SeenEntry>),
    /// The owner's entry lasts for another ttl.
    Renewed(SeenEntry),
    /// The owner's entry is removed.
    Released,
    /// The operation failed.
    Denied {
        /// The reason.
        why: KeyDenied,
        /// True if a write of this operation may have been applied, or may still be.
        in_doubt: bool,
    },
}
