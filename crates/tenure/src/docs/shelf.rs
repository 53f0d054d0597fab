use std::collections::BTreeMap;
use std::sync::Mutex;
use std::{fmt, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tenure_store::{
    Applied, BoxStream, Conflict, Entry, Expect, Guarantees, Identity, Key, Prefix, Put, Reach, Reading,
    Reason, Store, StoreError, StoreFuture, Version, Write,
};

#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    writes: u64,
    // Each value with the number of its write.
    entries: BTreeMap<Key, (Bytes, u64)>,
}

impl Store for Shelf {
    // The default promises nothing. Promise only what the store really does, as it is set up.
    fn guarantees(&self) -> Guarantees {
        let mut promises = Guarantees::default();
        promises.atomic_create = true;
        promises.atomic_replace = true;
        promises.linearizable_reads = true;
        promises.keeps_acknowledged = true;
        promises.unique_versions = true;
        promises.reach = Reach::Process;
        promises.write_interval = Duration::ZERO;
        promises.value_max = VALUE_MAX;
        promises
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(async move {
            let state = self.0.lock().unwrap();
            let entry = state.entries.get(key);
            // A store with a clock adds its time to the reading, and the age of the entry if that clock does not jump.
            Ok(Reading::new(entry.map(|(value, stamp)| Entry::new(value.clone(), version(*stamp)))))
        })
    }

    // Comparing and writing are one step. On a network, send it once, and call every doubt `StoreError::unknown`.
    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(async move {
            let Write { value, expect, .. } = write;
            if value.len() > VALUE_MAX {
                return Err(StoreError::refused(Reason::Invalid, "the value is too large"));
            }
            let State { writes, entries } = &mut *self.0.lock().unwrap();
            let is_expected = match (entries.get(key), &expect) {
                (None, Expect::Absent) => true,
                (Some((_, stamp)), Expect::Version(expected)) => version(*stamp) == *expected,
                _ => false,
            };
            if !is_expected {
                return Ok(Put::Conflict(Conflict));
            }
            *writes += 1;
            entries.insert(key.clone(), (value, *writes));
            Ok(Put::Applied(Applied::new(version(*writes))))
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        let state = self.0.lock().unwrap();
        let keys: Vec<_> = state.entries.keys().filter(|key| prefix.covers(key)).cloned().map(Ok).collect();
        stream::iter(keys).boxed()
    }

    // The count begins at one, so no write ever has this version.
    fn identity(&self) -> Identity {
        Identity::new(version(0))
    }
}

const VALUE_MAX: usize = 1 << 20;

fn version(stamp: u64) -> Version {
    Version::new(stamp.to_string())
}

// What people see in messages. No credentials.
impl fmt::Display for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("shelf:")
    }
}
