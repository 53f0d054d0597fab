use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;

use crate::{Administration, Expect, Guarantees, Identity, Key, Prefix, Put, Reading, Scratch, StoreError};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a store returns from a call: the definite answer, or why there is none.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A stream that a store returns.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

/// Anything with a read and an atomic conditional write on one key.
///
/// # Duties
///
/// * A future may be dropped at any time. A write whose future was dropped may have happened or may happen yet;
///   nothing else may change.
/// * Conditional writes are sent **once**: every transparent retry in the client library underneath is turned off. A
///   retried write that had already been applied is answered with a conflict, and a win is reported as a loss.
/// * A future never blocks its thread: the keeper of all leases polls it, and while it blocks nobody is renewed or told
///   of a loss. Whoever has to wait for the kernel does so on a thread of its own.
/// * When in doubt, the answer is [`Unknown`](crate::Unknown).
/// * `Display` names the store for people, as in an error message, without credentials.
pub trait Store: fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// What this store guarantees, as configured.
    fn guarantees(&self) -> Guarantees;

    /// What names this store.
    fn identity(&self) -> Identity;

    /// The entry, if there is one, and the store's own time where it has a clock.
    ///
    /// A failed read has no effect whatever it fails with, so every error simply means "not known".
    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading>;

    /// Writes `value` if and only if the entry is what `expect` says.
    ///
    /// Replacing a version of an entry that has gone is a conflict.
    fn put<'a>(&'a self, key: &'a Key, value: Bytes, expect: Expect) -> StoreFuture<'a, Put>;

    /// The keys covered by `prefix`, in any order, each once.
    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>>;

    /// A hint, after it was called, that something covered by `prefix` changed; `None` where the store has no such
    /// thing. Hints may be late, merged, spurious or missing: nothing relies on them for safety.
    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        let _ = prefix;
        None
    }

    /// A hint that what is held under this key may be lost: its entry has gone, or the store itself. `None` where the store
    /// has no such thing; then the next renewal tells.
    ///
    /// The keeper renews a held lease at once when it gets one. So a store gives it only if it has looked itself and found
    /// the entry or the store missing, also if that was so before the call. As other hints, it may be late, spurious or
    /// missing.
    fn watch_held(&self, key: &Key) -> Option<BoxStream<'static, ()>> {
        let _ = key;
        None
    }

    /// What an operator may do to this store beside the contract; `None` where it offers nothing of the kind, as it must
    /// where its clock gives no floor for tokens.
    fn administration(&self) -> Option<&dyn Administration> {
        None
    }

    /// The removal of Tenure's own keys; `None` where nothing can be removed.
    fn scratch(&self) -> Option<&dyn Scratch> {
        None
    }
}

/// A shared store is a store, whatever is behind it: what opens stores by their address cannot name their types.
///
/// Every method is passed on, those with a default too: the default would hide what the store can do.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn guarantees(&self) -> Guarantees {
        (**self).guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        (**self).get(key)
    }

    fn put<'a>(&'a self, key: &'a Key, value: Bytes, expect: Expect) -> StoreFuture<'a, Put> {
        (**self).put(key, value, expect)
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        (**self).list(prefix)
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
