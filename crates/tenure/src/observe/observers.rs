use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::machine::{Content, ObservedRead, Observer, Recalled, Sighting, Standing};
use tenure_core::record::{Nonce, Record, Witness};
use tenure_store::{Key, Store, StoreError};

use super::observation::Observation;
use crate::clock::{Clock, call_timeout, timeout};
use crate::host::witness::Survivors;
use crate::keeper::{Connection, HostState, calls, logbook_client};
use crate::{Error, ErrorKind};

/// Observers of keys, one per key, so that a caller never sees an older token after a newer one.
#[derive(Debug)]
pub(crate) struct Observers {
    /// The store's name.
    store: String,
    clock: Arc<dyn Clock>,
    keys: Mutex<HashMap<Key, Observer>>,
    host: HostState,
}

impl Observers {
    pub(crate) fn new(store: String, clock: Arc<dyn Clock>, host: HostState) -> Self {
        Self { store, clock, keys: Mutex::default(), host }
    }

    /// Local state that a watch shares.
    pub(crate) fn host(&self) -> &HostState {
        &self.host
    }

    /// Writes all queued sightings to the logbook.
    pub(crate) async fn flush(&self) {
        if let Some(logbook) = &self.host.logbook {
            logbook.flush().await;
        }
    }

    /// Observes one key on the keeper's runtime.
    pub(crate) async fn observe_one(
        self: &Arc<Self>,
        connection: &Connection,
        key: Key,
    ) -> Result<Observation, Error> {
        let observers = Arc::clone(self);
        connection
            .visit(move |store| {
                Box::pin(async move {
                    let observed = observers.observe(&*store, &key).await;
                    observers.flush().await;
                    observed
                })
            })
            .await
    }

    /// Observes a key.
    pub(crate) async fn observe(&self, store: &dyn Store, key: &Key) -> Result<Observation, Error> {
        let what = format!("reading lease {key} on {}", self.store);
        call_timeout(&*self.clock, LOOK_MAX, &what, self.look(store, key)).await
    }

    async fn look(&self, store: &dyn Store, key: &Key) -> Result<Observation, Error> {
        let mut older = None;
        // An answer that a newer one overtook is read again. If it stays older, the record went back.
        for _ in 0..LOOKS_MAX {
            let read = self.read(store, key).await?;
            let record = match &read.look.content {
                Content::Record(record, _) => Some(Arc::clone(record)),
                Content::Absent | Content::Foreign { .. } => None,
            };
            let sighting = match record.as_ref().and_then(|record| Some((record, record.witness.as_ref()?))) {
                Some((record, witness)) => self.sight(witness, record.holders_nonce()).await,
                None => Sighting::default(),
            };
            let recalled =
                match self.host.logbook.as_ref().filter(|_| is_worth_logging(&read) && self.is_new(key)) {
                    Some(logbook) => logbook.recall(key).await,
                    None => None,
                };
            match self.judge(key, &read, sighting, recalled) {
                Some(standing) => {
                    return Ok(Observation { key: key.clone(), record, standing, seen_at: read.wall });
                }
                None => older = record,
            }
        }
        self.host.trust.void().await;
        let token = older.expect("only an older record is looked at again").token;
        Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "lease {key} on {} went back in time: it shows token {token}, after a greater one. Find out what \
                 restored the record",
                self.store
            ),
        ))
    }

    async fn read(&self, store: &dyn Store, key: &Key) -> Result<ObservedRead, Error> {
        let sent = self.clock.now();
        let reading = store.get(key).await.map_err(|error| self.unreadable(key, error))?;
        Ok(ObservedRead {
            look: calls::look(reading),
            clock: store.guarantees().clock,
            sent,
            returned: self.clock.now(),
            wall: self.clock.wall(),
        })
    }

    /// The version of the key that was seen last, and since when it is known.
    pub(crate) fn recalled(&self, key: &Key) -> Option<Recalled> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(key)?.to_recall().cloned()
    }

    /// True if this coordinator has not observed the key before.
    fn is_new(&self, key: &Key) -> bool {
        !self.keys.lock().unwrap_or_else(PoisonError::into_inner).contains_key(key)
    }

    fn judge(
        &self,
        key: &Key,
        read: &ObservedRead,
        sighting: Sighting,
        recalled: Option<Recalled>,
    ) -> Option<Standing> {
        let mut observers = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if observers.len() >= KEYS_MAX && !observers.contains_key(key) {
            observers.clear();
        }
        let observer = observers.entry(key.clone()).or_default();
        if let Some(recalled) = recalled {
            observer.recall(recalled);
        }
        let standing = observer.judge(read, sighting)?;
        if let (Some(logbook), Some(seen)) = (&self.host.logbook, observer.to_recall())
            && is_worth_logging(read)
        {
            logbook.add(key, seen, read.returned, false);
        }
        Some(standing)
    }

    /// Sighting of the witness that a record names, on this machine.
    async fn sight(&self, witness: &Arc<Witness>, nonce: Nonce) -> Sighting {
        let Some(location) = self.host.location.clone() else { return Sighting::default() };
        let witness = Arc::clone(witness);
        self.host.workers.run(move || location.look(&witness, nonce)).await.unwrap_or_default()
    }

    /// Processes that are alive under a record, on this machine.
    pub(crate) async fn survivors(&self, record: &Record) -> Survivors {
        let (Some(location), Some(witness)) = (self.host.location.clone(), record.witness.clone()) else {
            return Survivors::default();
        };
        let nonce = record.holders_nonce();
        let found = self.host.workers.run(move || location.survivors(&witness, nonce));
        timeout(&*self.clock, LOOK_MAX, found).await.and_then(Result::ok).unwrap_or_default()
    }

    fn unreadable(&self, key: &Key, error: StoreError) -> Error {
        let sentence = format!("lease {key} on {} could not be read: {error}", self.store);
        Error::new((&error).into(), sentence).because(error)
    }
}

fn is_worth_logging(read: &ObservedRead) -> bool {
    logbook_client::is_worth_logging(&read.look, read.clock)
}

/// Number of repeated reads when one was overtaken.
const LOOKS_MAX: u32 = 3;

/// Longest time for the observation of one key: longer than any healthy store needs.
const LOOK_MAX: Duration = Duration::from_secs(15);

/// Maximum number of remembered keys. Beyond it all are forgotten.
const KEYS_MAX: usize = 100_000;
