use std::fmt;

use tenure::Coordinator;
use tenure::store::File;
use tenure_store::{
    BoxStream, Guarantees, Identity, Key, Prefix, Put, Reading, Store, StoreError, StoreFuture, Write,
};
use tenure_testkit::{block_on, sleep_ms};

use super::{Done, text};

/// A store that panics when a key named `bad` is written.
#[derive(Debug)]
struct Panicking(File);

impl fmt::Display for Panicking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Store for Panicking {
    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        self.0.get(key)
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        if key.as_str() == "bad" {
            return Box::pin(async { panic!("this store panics deliberately") });
        }
        self.0.write(key, write)
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.0.list(prefix)
    }

    fn identity(&self) -> Identity {
        self.0.identity()
    }
}

/// Holds one lease while a write of another one panics inside the store. Fails if this loses the first one.
pub(super) fn panicking(directory: &str) -> Done {
    let store = Panicking(File::open(directory).map_err(text)?);
    let coordinator = block_on(Coordinator::connect(store)).map_err(text)?;
    let good = block_on(coordinator.lease("good").map_err(text)?.try_acquire()).map_err(text)?;
    let bad = block_on(coordinator.lease("bad").map_err(text)?.try_acquire());
    if bad.is_ok() {
        return Err("the store panicked, and a lease was granted".to_owned());
    }
    sleep_ms(200);
    good.check().map_err(|error| format!("the other lease of the process is lost: {error}"))?;
    block_on(good.release()).map_err(text)
}
