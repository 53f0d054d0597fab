use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream::BoxStream;
use tenure_store::{
    Guarantees, Identity, Key, Prefix, Put, Reading, Reason, Store, StoreClock, StoreError, StoreFuture,
    Write,
};

/// A store through which a holder can die: writes of its key no longer arrive.
#[derive(Debug)]
pub(super) struct Mortal {
    store: Arc<dyn Store>,
    /// True if it claims to know ages, and reports none. Its contenders then judge as others do, and read at random phases,
    /// because the time of a read would not matter if ages were known.
    claims_ages: bool,
    dead: Mutex<BTreeSet<String>>,
    reads: AtomicU64,
}

impl Mortal {
    pub(super) fn new(store: Arc<dyn Store>, claims_ages: bool) -> Arc<Self> {
        Arc::new(Self { store, claims_ages, dead: Mutex::default(), reads: AtomicU64::new(0) })
    }

    /// The holder of this key dies.
    pub(super) fn kill(&self, key: &str) {
        self.dead.lock().unwrap().insert(key.to_owned());
    }

    /// Number of reads so far.
    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Mortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl Store for Mortal {
    fn guarantees(&self) -> Guarantees {
        let mut guarantees = self.store.guarantees();
        if self.claims_ages {
            guarantees.clock = StoreClock::Ages;
        }
        guarantees
    }

    fn identity(&self) -> Identity {
        self.store.identity()
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.get(key)
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        if self.dead.lock().unwrap().contains(key.as_str()) {
            return Box::pin(async { Err(StoreError::refused(Reason::Unreachable, "the holder is dead")) });
        }
        self.store.write(key, write)
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.store.list(prefix)
    }
}
