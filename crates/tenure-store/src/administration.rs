use crate::{Conflict, Key, StoreFuture, Version};

/// What an operator may do to a store beside the contract: nothing that leases rest on, and nothing that a lease ever
/// asks for.
///
/// # Duties
///
/// * **Tokens must keep growing afterwards.** The entry carried the token; once it is gone, only the store's time is
///   left to begin the next one from. So a store offers this only if its clock gives floors
///   ([`StoreClock::Floors`](crate::StoreClock::Floors) or better), and after a removal it never tells a time that is
///   earlier than one it told before, whatever becomes of the machine meanwhile.
/// * **No version of what was removed comes back.** A write that was on its way for long may still arrive, and must not take
///   the entry that was created since for the one it expects: it would end a lease under its holder, with a token that is
///   too small. A store that counts the versions of each key from one cannot offer this.
/// * All the duties of [`Store`](crate::Store): sent once, never blocking, and [`Unknown`](crate::Unknown) when in
///   doubt.
pub trait Administration: Send + Sync {
    /// Removes the entry if and only if it has exactly this version. An entry that has gone is a conflict.
    ///
    /// Of a removal and any number of racing replaces of the same version exactly one is applied.
    fn remove<'a>(&'a self, key: &'a Key, version: &'a Version) -> StoreFuture<'a, Removal>;
}

/// The definite answers to a removal. Whatever is not definite is a [`StoreError`](crate::StoreError).
///
/// Exhaustive: it happened or it did not, and who asked acts on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a removal whose answer nobody reads is a guess"]
pub enum Removal {
    /// The entry is gone.
    Removed,
    /// Nothing happened: the entry has another version, or there is none.
    Conflict(Conflict),
}
