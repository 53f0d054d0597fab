use std::fmt;

use futures_util::{StreamExt, future, stream};
use tenure_store::{
    Administration, BoxStream, Guarantees, Identity, Key, Listed, Prefix, Put, Reading, Reason, Removal,
    Scratch, Store, StoreError, StoreFuture, Version, Write,
};

use crate::host::simulation::{Duty, does};
use crate::store::caught::{Caught, Panicked, caught};

/// A store whose panics become answers. All calls of the keeper and the observers go through it.
///
/// A call that panics has an unknown outcome, since it may have been sent. Hints end. A panic in `guarantees` yields no
/// guarantees, so that no lease relies on it.
///
/// Calls at connect may panic unguarded: no lease is kept yet, and only that connection fails.
#[derive(Debug)]
pub(crate) struct Guarded<S> {
    store: S,
    name: String,
}

impl<S: Store> Guarded<S> {
    pub(crate) fn new(store: S) -> Self {
        Self { name: store.to_string(), store }
    }
}

impl<S> fmt::Display for Guarded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl<S: Store> Store for Guarded<S> {
    fn guarantees(&self) -> Guarantees {
        caught(|| self.store.guarantees()).unwrap_or_default()
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        guarded(move || self.store.get(key))
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        guarded(move || self.store.write(key, write))
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        match caught(|| self.store.list(prefix)) {
            Ok(listing) => guarded_listing(listing),
            Err(panicked) => Box::pin(stream::once(future::ready(Err(unknown(&panicked))))),
        }
    }

    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        caught(|| self.store.list_stamped(prefix)).ok().flatten().map(guarded_listing)
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        guarded_hints(|| self.store.watch(prefix))
    }

    fn watch_held(&self, key: &Key) -> Option<BoxStream<'static, ()>> {
        guarded_hints(|| self.store.watch_held(key))
    }

    fn administration(&self) -> Option<&dyn Administration> {
        caught(|| self.store.administration().is_some()).is_ok_and(|offered| offered).then_some(self)
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        caught(|| self.store.scratch().is_some()).is_ok_and(|offered| offered).then_some(self)
    }

    fn identity(&self) -> Identity {
        self.store.identity()
    }
}

impl<S: Store> Administration for Guarded<S> {
    fn remove<'a>(&'a self, key: &'a Key, version: &'a Version) -> StoreFuture<'a, Removal> {
        guarded(move || match self.store.administration() {
            Some(administration) => administration.remove(key, version),
            None => Box::pin(future::ready(Err(StoreError::unknown("the store offers no removal any more")))),
        })
    }
}

impl<S: Store> Scratch for Guarded<S> {
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()> {
        guarded(move || match self.store.scratch() {
            Some(scratch) => scratch.sweep(key),
            None => Box::pin(future::ready(Err(StoreError::unknown("the store removes nothing any more")))),
        })
    }
}

/// A call on a store. A panic in creating or polling its future is an unknown outcome.
fn guarded<'a, T: 'a>(call: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a) -> StoreFuture<'a, T> {
    Box::pin(async move {
        let called = match caught(call) {
            Ok(future) => Caught::new(future).await,
            Err(panicked) => Err(panicked),
        };
        called.unwrap_or_else(|panicked| Err(unknown(&panicked)))
    })
}

/// A listing of a store. A panic in it is an error.
fn guarded_listing<'a, T: Send + 'a>(
    listing: BoxStream<'a, Result<T, StoreError>>,
) -> BoxStream<'a, Result<T, StoreError>> {
    Box::pin(Caught::new(listing).map(|next| next.unwrap_or_else(|why| Err(unknown(&why)))))
}

/// Hints of a store. They end at a panic.
fn guarded_hints(ask: impl FnOnce() -> Option<BoxStream<'static, ()>>) -> Option<BoxStream<'static, ()>> {
    let hints = caught(ask).ok().flatten()?;
    Some(Box::pin(Caught::new(hints).filter_map(|next| future::ready(next.ok()))))
}

fn unknown(panicked: &Panicked) -> StoreError {
    let sentence = format!("the store's code {panicked}");
    if does(Duty::PanicIsUnknown) {
        StoreError::unknown(sentence)
    } else {
        StoreError::refused(Reason::Unreachable, sentence)
    }
}
