use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tenure_fence::FenceError;
use tenure_store::{Expect, Key, Prefix, Put, Reason, Store, StoreError, Throttled};

use crate::clock::{BootClock, Clock, timeout};
use crate::store::guarded::Guarded;

/// Objects that are created once, under names that no other writer uses.
#[derive(Clone)]
pub(super) struct DataObjects {
    store: Arc<dyn Store>,
    clock: BootClock,
}

impl DataObjects {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self { store: Arc::new(Guarded::new(store)), clock: BootClock::new() }
    }

    pub(super) fn store_name(&self) -> String {
        self.store.to_string()
    }

    /// Creates an object. The name has a random number of this writer, so an object that is there already is this one: its
    /// answer was lost.
    pub(super) async fn create(&self, key: &Key, content: Bytes) -> Result<(), FenceError> {
        let max = self.store.guarantees().value_max;
        if content.len() > max {
            let why = format!("it has at most {max} bytes there, and this one has {}", content.len());
            return Err(FenceError::refused(self.resource(key), Reason::Invalid, why));
        }
        let mut doubt = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.clock.sleep_until(self.clock.now() + PAUSE * attempt).await;
            }
            let put = self.store.put(key, content.clone(), Expect::Absent);
            let limit = call_max(content.len());
            match timeout(&self.clock, limit, put).await.unwrap_or_else(|| Err(no_answer())) {
                Ok(Put::Applied(_)) => return Ok(()),
                Ok(Put::Conflict(_)) => return self.verify(key, &content).await,
                Err(error) if is_unsent(&error) && doubt.is_none() => {
                    return Err(self.failed(key, error));
                }
                Err(error) => doubt = Some(error),
            }
        }
        let doubt = doubt.unwrap_or_else(no_answer);
        Err(FenceError::unknown(self.resource(key), doubt))
    }

    /// The content of an object; `None` if there is none.
    pub(super) async fn read(&self, key: &Key) -> Result<Option<Bytes>, FenceError> {
        let mut last = no_answer();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.clock.sleep_until(self.clock.now() + PAUSE * attempt).await;
            }
            let limit = call_max(self.store.guarantees().value_max);
            match timeout(&self.clock, limit, self.store.get(key)).await.unwrap_or_else(|| Err(no_answer())) {
                Ok(reading) => return Ok(reading.entry.map(|entry| entry.value)),
                Err(error @ StoreError::Refused(_)) => return Err(self.failed(key, error)),
                Err(error) => last = error,
            }
        }
        Err(self.failed(key, last))
    }

    /// All objects below this name. The number is unlimited, so only each step of the listing has a time limit.
    pub(super) async fn list(&self, name: &Key) -> Result<Vec<Key>, FenceError> {
        let prefix = Prefix::of(name);
        let (mut listing, mut found) = (self.store.list(&prefix), Vec::new());
        loop {
            let next = timeout(&self.clock, LIST_MAX, listing.next()).await;
            match next.unwrap_or_else(|| Some(Err(no_answer()))) {
                Some(Ok(key)) => found.push(key),
                Some(Err(error)) => return Err(self.failed(name, error)),
                None => break,
            }
        }
        found.sort();
        Ok(found)
    }

    /// Checks that the object is the one that was written.
    async fn verify(&self, key: &Key, content: &Bytes) -> Result<(), FenceError> {
        if self.read(key).await?.as_ref() == Some(content) {
            return Ok(());
        }
        let what = "another program wrote to its name, or removed it. Put it again".to_owned();
        Err(FenceError::Foreign { resource: self.resource(key), what })
    }

    fn failed(&self, key: &Key, error: StoreError) -> FenceError {
        let reason = match &error {
            StoreError::Refused(refused) => refused.reason,
            _ => Reason::Unreachable,
        };
        FenceError::refused(self.resource(key), reason, error)
    }

    fn resource(&self, key: &Key) -> String {
        format!("data object {key} on {}", self.store)
    }
}

/// True if the write certainly has no effect.
fn is_unsent(error: &StoreError) -> bool {
    matches!(error, StoreError::Refused(_) | StoreError::Throttled(Throttled { cause: Some(_), .. }))
}

fn no_answer() -> StoreError {
    StoreError::unknown("no answer within the timeout")
}

/// Time after which the outcome of one call with this many bytes counts as unknown: 1 MiB per second is accepted.
fn call_max(bytes: usize) -> Duration {
    Duration::from_secs(5 + (bytes >> 20) as u64)
}

/// Attempts of one call without a definite answer.
const ATTEMPTS: u32 = 4;

/// First pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Time for one page of a listing.
const LIST_MAX: Duration = Duration::from_secs(60);
