use crate::{Conflict, Key, StoreFuture, Version};

/// Operations of an operator on a store, outside the contract. Leases neither depend on them nor use them.
///
/// # Duties
///
/// * **Tokens must keep growing after a removal.** The entry carried the token. Once it is removed, the next token can
///   start only from the store's time. So a store offers this only if its clock gives floors
///   ([`StoreClock::Floors`](crate::StoreClock::Floors) or better). After a removal it never reports an earlier time
///   than before, whatever happens to the machine in between.
/// * **No version of a removed entry comes back.** A delayed write may still arrive, and must not match an entry that
///   was created since. It would end a lease under its holder, with a token that is too small. A store that counts the
///   versions of each key from one cannot offer this.
/// * All the duties of [`Store`](crate::Store): requests are sent once, never block, and answer
///   [`Unknown`](crate::Unknown) when in doubt.
pub trait Administration: Send + Sync {
    /// Removes the entry if and only if it has exactly this version. A missing entry is a conflict.
    ///
    /// Exactly one of a removal and any number of racing replaces of the same version is applied.
    fn remove<'a>(&'a self, key: &'a Key, version: &'a Version) -> StoreFuture<'a, Removal>;
}

/// The definite answers to a removal. An answer that is not definite is a [`StoreError`](crate::StoreError).
///
/// Exhaustive: the removal happened or it did not, and the caller acts on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "without its answer, a removal may or may not have happened"]
pub enum Removal {
    /// The entry was removed.
    Removed,
    /// Nothing happened: the entry has another version, or there is none.
    Conflict(Conflict),
}
