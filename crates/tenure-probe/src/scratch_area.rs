use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, future, stream};
use tenure_store::{
    Administration, BoxStream, Guarantees, Identity, Key, Listed, Prefix, Put, Reading, Reason, Removal,
    Store, StoreError, StoreFuture, Version, Write,
};

use crate::ledger::{Ledger, Loss};

/// A connection to a scratch area of a store. Its key `a` is the store's key `.tenure/probe/<run>/a`, so the probe
/// never touches a user's entry, and human-readable listings do not show the area.
#[derive(Debug)]
pub(crate) struct ScratchArea {
    pub(crate) store: Arc<dyn Store>,
    scratch_name: ScratchName,
    ledger: Arc<Ledger>,
}

/// Name of a scratch area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScratchName(String);

impl ScratchName {
    /// Prefix of the names of all areas.
    pub(crate) const ALL_AREAS: &str = ".tenure/probe";

    /// The area of the probe that began at this second. The number distinguishes probes that began in the same second.
    pub(crate) fn new(second: u64, run: u128) -> Self {
        Self(format!("{}/{second}-{:08x}", Self::ALL_AREAS, run as u32))
    }

    /// The area that a stored key belongs to, and the second at which its probe began.
    pub(crate) fn of(key: &Key) -> Option<(Self, u64)> {
        let name = key.as_str().strip_prefix(Self::ALL_AREAS)?.strip_prefix('/')?.split('/').next()?;
        let (second, run) = name.split_once('-')?;
        let run = u32::from_str_radix(run, 16).ok()?;
        let second = second.parse().ok()?;
        let scratch_name = Self::new(second, run.into());
        (scratch_name.0.ends_with(name)).then_some((scratch_name, second))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Maximum length of a key in this area.
    pub(crate) fn longest_key(&self) -> usize {
        Key::MAX_BYTES - self.0.len() - 1
    }

    /// Prefix of every key in this area.
    pub(crate) fn prefix(&self) -> Prefix {
        Prefix::parse(&self.0).expect("it is made of good names")
    }

    fn stored_key(&self, key: &Key) -> Result<Key, StoreError> {
        Key::from_stored(&format!("{}/{key}", self.0))
            .map_err(|error| StoreError::refused(Reason::Invalid, error))
    }

    fn stored_prefix(&self, prefix: &Prefix) -> Result<Prefix, StoreError> {
        match prefix.as_str() {
            "" => Ok(self.prefix()),
            name => Prefix::parse(&format!("{}/{name}", self.0))
                .map_err(|error| StoreError::refused(Reason::Invalid, error)),
        }
    }

    fn own_key(&self, key: &Key) -> Option<Key> {
        Key::from_stored(key.as_str().strip_prefix(&self.0)?.strip_prefix('/')?).ok()
    }
}

impl ScratchArea {
    pub(crate) fn new(store: Arc<dyn Store>, scratch_name: ScratchName, ledger: Arc<Ledger>) -> Self {
        Self { store, scratch_name, ledger }
    }

    /// Deletes the entry, as an administrator would.
    pub(crate) async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        self.sweep_stored(&self.scratch_name.stored_key(key)?).await
    }

    /// Deletes the entry with this name in the store.
    pub(crate) async fn sweep_stored(&self, key: &Key) -> Result<(), StoreError> {
        self.ledger.count(|calls| &mut calls.removals);
        match self.store.scratch() {
            Some(scratch) => scratch.sweep(key).await,
            None => Err(StoreError::refused(Reason::Unsupported, "this store removes nothing")),
        }
    }

    /// The stored keys of all areas.
    pub(crate) async fn list_stored(&self) -> Result<Vec<Key>, StoreError> {
        self.ledger.count(|calls| &mut calls.lists);
        let prefix = Prefix::parse(ScratchName::ALL_AREAS).expect("it is made of good names");
        let listed: Vec<_> = self.store.list(&prefix).collect().await;
        listed.into_iter().collect()
    }
}

impl Store for ScratchArea {
    /// Declares a shorter write interval for a store that tolerates many writes per second, to load it harder than
    /// leases would.
    fn guarantees(&self) -> Guarantees {
        let mut guarantees = self.store.guarantees();
        if guarantees.write_interval <= PRESSED_MAX {
            guarantees.write_interval = Duration::ZERO;
        }
        guarantees
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(async move {
            let key = self.scratch_name.stored_key(key)?;
            self.ledger.count(|calls| &mut calls.reads);
            let answer = self.store.get(&key).await;
            self.ledger.note_answer(&key, &answer);
            answer
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(async move {
            let key = self.scratch_name.stored_key(key)?;
            let loss = self.ledger.take_loss();
            if loss == Some(Loss::Request) {
                return Err(StoreError::unknown("the request was lost deliberately"));
            }
            self.ledger.count(|calls| &mut calls.writes);
            self.ledger.writes(&key);
            let answer = self.store.write(&key, write).await;
            self.ledger.note_answer(&key, &answer);
            if loss == Some(Loss::Answer) {
                return Err(StoreError::unknown("the answer was lost deliberately"));
            }
            answer
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        let listing = async move {
            self.ledger.count(|calls| &mut calls.lists);
            match self.scratch_name.stored_prefix(prefix) {
                Ok(outside) => self.store.list(&outside).collect().await,
                Err(error) => vec![Err(error)],
            }
        };
        let keys = stream::once(listing).flat_map(stream::iter);
        keys.filter_map(async |key| key.map(|key| self.scratch_name.own_key(&key)).transpose()).boxed()
    }

    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        let outside = self.scratch_name.stored_prefix(prefix).ok()?;
        let has_stamps = self.store.list_stamped(&outside).is_some();
        let listing = async move {
            self.ledger.count(|calls| &mut calls.lists);
            match self.store.list_stamped(&outside) {
                Some(listing) => listing.collect().await,
                None => vec![],
            }
        };
        let own = |listed: Listed| Some(Listed::new(self.scratch_name.own_key(&listed.key)?, listed.stamp));
        let entries = stream::once(listing).flat_map(stream::iter::<Vec<_>>);
        let entries = entries.filter_map(move |listed| future::ready(listed.map(own).transpose()));
        has_stamps.then(|| entries.boxed())
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        self.store.watch(&self.scratch_name.stored_prefix(prefix).ok()?)
    }

    fn administration(&self) -> Option<&dyn Administration> {
        self.store.administration().is_some().then_some(self)
    }

    fn identity(&self) -> Identity {
        self.store.identity()
    }
}

impl Administration for ScratchArea {
    fn remove<'a>(&'a self, key: &'a Key, version: &'a Version) -> StoreFuture<'a, Removal> {
        Box::pin(async move {
            let key = self.scratch_name.stored_key(key)?;
            let Some(administration) = self.store.administration() else {
                return Err(StoreError::refused(Reason::Unsupported, "this store removes nothing"));
            };
            self.ledger.count(|calls| &mut calls.removals);
            administration.remove(&key, version).await
        })
    }
}

impl fmt::Display for ScratchArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// The default write interval of object stores.
const PRESSED_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::from_stored(name).unwrap()
    }

    #[test]
    fn a_scratch_area_is_recognized_by_its_name_and_other_names_are_not() {
        let scratch_name = ScratchName::new(1_794_735_088, 0xabcd_ef01_2345_6789);
        assert_eq!(scratch_name.as_str(), ".tenure/probe/1794735088-23456789");
        assert_eq!(
            ScratchName::of(&key(".tenure/probe/1794735088-23456789/a/b")),
            Some((scratch_name, 1_794_735_088))
        );
        for other in
            [".tenure/scratch", "a/b", ".tenure/probe/x-1/a", ".tenure/probe/12/a", ".tenure/probe/12-1/a"]
        {
            assert_eq!(ScratchName::of(&key(other)), None, "{other}");
        }
    }

    #[test]
    fn the_longest_key_of_a_scratch_area_is_a_longest_key_of_the_store() {
        let scratch_name = ScratchName::new(1_794_735_088, 7);
        let longest = key(&"x".repeat(scratch_name.longest_key()));
        let outside = scratch_name.stored_key(&longest).unwrap();
        assert_eq!(outside.as_str().len(), Key::MAX_BYTES);
        assert_eq!(scratch_name.own_key(&outside), Some(longest));
        assert!(scratch_name.stored_key(&key(&"x".repeat(scratch_name.longest_key() + 1))).is_err());
        assert_eq!(scratch_name.own_key(&key("x")), None);
        assert!(outside.may_be_swept());
    }
}
