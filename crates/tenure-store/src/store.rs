use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;

use crate::{Administration, Expect, Guarantees, Key, Prefix, Put, Reading, Reason, StoreError, Version};

/// A future that a store returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

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

    /// The entry, if there is one, and the store's own time where it has a clock.
    ///
    /// A failed read has no effect whatever it fails with, so every error simply means "not known".
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>>;

    /// Writes `value` if and only if the entry is what `expect` says.
    ///
    /// Replacing a version of an entry that has gone is a conflict.
    fn put<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Put, StoreError>>;

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

    /// A folder of this machine where the witnesses of all users of this store lie; `None` where it has none. For a store
    /// that reaches beyond one process the library then chooses one, and so it does where no lock is seen to hold in the
    /// folder that is named here.
    ///
    /// A witness is a small locked file by which others on the machine see whether its holder is alive. The folder must
    /// lie on a file system whose locks are this kernel's own affair, and all programs on the machine that use the store
    /// must be given the same one. The store itself passes over files that end in `.witness`.
    fn witness_folder(&self) -> Option<PathBuf> {
        None
    }

    /// Names this very store as configured, without credentials, for whoever remembers that it was found sound: two that
    /// could keep their promises differently (another endpoint, bucket or prefix, conditions that are sent in another
    /// form) never have the same. `None`: nothing is remembered of it, and it is checked each time it is connected.
    fn place(&self) -> Option<String> {
        None
    }

    /// What an operator may do to this store beside the contract; `None` where it offers nothing of the kind, as it must
    /// where its clock gives no floor for tokens.
    fn administration(&self) -> Option<&dyn Administration> {
        None
    }

    /// Removes the entry of one of Tenure's own keys, on which no lease rests, whatever it holds. One that has gone already
    /// is no error.
    ///
    /// What tries a store out leaves nothing behind by this. A store refuses every key that
    /// [may not be swept](Key::may_be_swept) as [`Invalid`](crate::Reason::Invalid) before anything is sent; one that cannot
    /// remove anything refuses all of them as [`Unsupported`](crate::Reason::Unsupported), as it does unless it says
    /// otherwise.
    fn sweep<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            key.must_be_sweepable()?;
            Err(StoreError::refused(Reason::Unsupported, "this store removes nothing"))
        })
    }

    /// A well-formed version that no write of this store ever has: a replace of it must always be refused. The check
    /// at connect is made of such writes.
    fn impossible_version(&self) -> Version;
}

/// A shared store is a store, whatever is behind it: what opens stores by their address cannot name their types.
///
/// Every method is passed on, those with a default too: the default would hide what the store can do.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn guarantees(&self) -> Guarantees {
        (**self).guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        (**self).get(key)
    }

    fn put<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Put, StoreError>> {
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

    fn sweep<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<(), StoreError>> {
        (**self).sweep(key)
    }

    fn impossible_version(&self) -> Version {
        (**self).impossible_version()
    }

    fn witness_folder(&self) -> Option<PathBuf> {
        (**self).witness_folder()
    }

    fn place(&self) -> Option<String> {
        (**self).place()
    }

    fn administration(&self) -> Option<&dyn Administration> {
        (**self).administration()
    }
}
