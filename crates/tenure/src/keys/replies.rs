use super::KeyEntry;

/// Answer of [`Keys::create_if_absent`](super::Keys::create_if_absent).
///
/// Exhaustive: the entry is new, or was there.
#[derive(Clone, Debug, PartialEq)]
pub enum Creation {
    /// There was no entry, and now there is this one.
    Created(KeyEntry),
    /// This entry is there, and nothing was changed. Its `remaining` says for how long at most, unless its owner renews.
    Exists(KeyEntry),
}

/// Answer of [`Keys::compare_and_set`](super::Keys::compare_and_set).
///
/// Exhaustive: the entry is new, replaced another one, or was not written.
#[derive(Clone, Debug, PartialEq)]
pub enum Replacement {
    /// There was no entry, as expected, and now there is this one.
    Created(KeyEntry),
    /// The expected entry was replaced by this one, which has a greater revision.
    Updated(KeyEntry),
    /// Nothing was changed: this entry is there, with another revision. `None` if there is no entry, or it has run out.
    Conflict(Option<KeyEntry>),
}
