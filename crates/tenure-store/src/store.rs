use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;

use crate::{
    Administration, Expect, Guarantees, Identity, Key, Listed, Prefix, Put, Reading, Scratch, StoreError,
    Write,
};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The future of a call on a store: the definite answer, or the reason why there is none.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A stream that a store returns.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

/// A store: a read and an atomic conditional write on one key.
///
/// # Duties
///
/// * A future may be dropped at any time. A write whose future was dropped may have happened or may still happen;
///   nothing else may change.
/// * Conditional writes are sent **once**: the store turns off every transparent retry in its client library. The
///   answer to a retried write that had already been applied is a conflict, and would report a win as a loss.
/// * A future never blocks its thread: the keeper of all leases polls it, and while it blocks, the keeper neither
///   renews a lease nor reports a loss. A store that must wait for the kernel uses a thread of its own.
/// * When in doubt, the answer is [`Unknown`](crate::Unknown).
/// * `Display` names the store in messages, without credentials.
pub trait Store: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The guarantees of this store, as configured.
    fn guarantees(&self) -> Guarantees;

    /// The identity of this store.
    fn identity(&self) -> Identity;

    /// Reads the entry, if there is one, and the store's own time if it has a clock.
    ///
    /// A failed read has no effect, so every error means "unknown".
    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading>;

    /// Writes `write.value` if and only if the entry is as `write.expect` says.
    ///
    /// Replacing a version of a missing entry is a conflict.
    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put>;

    /// Writes `value` if and only if the entry is as `expect` says, with the purpose
    /// [`Change`](crate::Purpose::Change).
    ///
    /// Do not implement it: a wrapper that forwards only [`write`](Self::write) forwards every write.
    fn put<'a>(&'a self, key: &'a Key, value: Bytes, expect: Expect) -> StoreFuture<'a, Put> {
        self.write(key, Write::new(value, expect))
    }

    /// The keys covered by `prefix`, in any order, each once.
    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>>;

    /// The entries covered by `prefix`, each once and with a stamp, at about the cost of [`list`](Self::list); `None` if
    /// the store has no such listing, or only one that reads every value.
    ///
    /// A key has another stamp after each write of other bytes, and the same stamp as long as nothing writes it. (Every
    /// write of Tenure has other bytes.) Stamps can be compared only with stamps of other listings of the same store, for
    /// equality. A listing may be late: it may show an earlier stamp for a while after a write. Like [hints](Self::watch), stamps only say which entry to read: neither safety
    /// nor the judgement that a lease has run out depends on them.
    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        let _ = prefix;
        None
    }

    /// Hints that something covered by `prefix` changed after this call; `None` if the store has no hints. Hints may be
    /// late, merged, spurious or missing: safety never depends on them.
    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        let _ = prefix;
        None
    }

    /// Hints that the lease held under this key may be lost: its entry, or the store itself, is gone. `None` if the
    /// store has no such hints; then the next renewal finds the loss.
    ///
    /// The keeper renews a held lease at once on such a hint. So a store sends one only if it has itself checked and
    /// found the entry or the store missing, even if that was so before the call. Like other hints, it may be late,
    /// spurious or missing.
    fn watch_held(&self, key: &Key) -> Option<BoxStream<'static, ()>> {
        let _ = key;
        None
    }

    /// The operations of an operator; `None` if the store offers none. A store whose clock gives no floor for tokens
    /// must offer none.
    fn administration(&self) -> Option<&dyn Administration> {
        None
    }

    /// The removal of Tenure's own keys; `None` if nothing can be removed.
    fn scratch(&self) -> Option<&dyn Scratch> {
        None
    }
}

/// A shared store is a store, of any type: code that opens stores by their address cannot name the type.
///
/// Forwards every method, also those with a default: the default would hide abilities of the store. Only `put` is
/// always the default.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn guarantees(&self) -> Guarantees {
        (**self).guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        (**self).get(key)
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        (**self).write(key, write)
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        (**self).list(prefix)
    }

    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        (**self).list_stamped(prefix)
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        (**self).watch(prefix)
    }

    fn watch_held(&self, key: &Key) -> Option<BoxStream<'static, ()>> {
        (**self).watch_held(key)
    }

    fn identity(&self) -> Identity {
        (**self).identity()
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        (**self).scratch()
    }

    fn administration(&self) -> Option<&dyn Administration> {
        (**self).administration()
    }
}
