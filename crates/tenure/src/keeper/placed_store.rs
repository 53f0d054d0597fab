use std::fmt;
use std::sync::Arc;

use tenure_store::{
    Administration, BoxStream, Guarantees, Identity, Key, Listed, Prefix, Put, Reading, Reason, Scratch,
    Store, StoreError, StoreFuture, Write,
};

use super::places::{CallPlace, Places};
use super::urgency::Urgency;

/// The store of observers, plain keys and fenced values. Its reads and writes wait for a place, as polls do.
///
/// A listing takes no place: its pages come one after the other, and its reader may call the store between two of them,
/// which would never return if the listing had the last place. Removals are rare acts of an administrator.
#[derive(Debug)]
pub(crate) struct PlacedStore {
    store: Arc<dyn Store>,
    places: Places,
}

impl PlacedStore {
    pub(crate) fn new(store: Arc<dyn Store>, places: Places) -> Self {
        Self { store, places }
    }

    async fn place(&self) -> Result<CallPlace, StoreError> {
        let place = self.places.take(Urgency::Poll).await;
        place.ok_or_else(|| StoreError::refused(Reason::Unreachable, "the call was not sent"))
    }
}

impl fmt::Display for PlacedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl Store for PlacedStore {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(async move {
            let _place = self.place().await?;
            self.store.get(key).await
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(async move {
            let _place = self.place().await?;
            self.store.write(key, write).await
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.store.list(prefix)
    }

    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        self.store.list_stamped(prefix)
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        self.store.watch(prefix)
    }

    fn watch_held(&self, key: &Key) -> Option<BoxStream<'static, ()>> {
        self.store.watch_held(key)
    }

    fn administration(&self) -> Option<&dyn Administration> {
        self.store.administration()
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        self.store.scratch()
    }

    fn identity(&self) -> Identity {
        self.store.identity()
    }
}
