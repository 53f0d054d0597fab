use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tenure_store::{
    Applied, BoxFuture, Entry, Expect, Guarantees, Key, Put, Reading, Reason, Store, StoreError, Version,
    Write,
};

use crate::Harness;
use crate::stop::{CheckResult, Stop, ensure, fail};

/// Sizes of the checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) racers: usize,
    pub(crate) rounds: usize,
    pub(crate) listed: usize,
    pub(crate) contenders: usize,
    pub(crate) turns: usize,
    pub(crate) ttl: Duration,
    pub(crate) longest_key: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            racers: 64,
            rounds: 100,
            listed: 1_100,
            contenders: 8,
            turns: 3,
            ttl: Duration::from_secs(1),
            longest_key: Key::MAX_BYTES,
        }
    }
}

/// The surroundings of one check: connections, keys that no other check uses, values that were never written before,
/// and calls that tolerate temporary trouble of a correct store.
///
/// A check depends only on the store's promises: a call here that needs more ends the check as "not promised".
pub(crate) struct Trial<'h> {
    pub(crate) harness: &'h dyn Harness,
    pub(crate) promises: Guarantees,
    /// True if an entry has another version after a restart.
    pub(crate) versions_name_run: bool,
    pub(crate) sizes: Sizes,
    connections: &'h [Arc<dyn Store>],
    scope: String,
    values: AtomicU64,
    note: Mutex<String>,
    /// The keys that were written since the last pause.
    written_since_pause: Mutex<HashSet<Key>>,
}

impl<'h> Trial<'h> {
    pub(crate) fn new(
        harness: &'h dyn Harness,
        connections: &'h [Arc<dyn Store>],
        sizes: Sizes,
        scope: String,
    ) -> Self {
        let promises = connections[0].guarantees();
        Self {
            harness,
            promises,
            versions_name_run: false,
            sizes,
            connections,
            scope,
            values: AtomicU64::new(0),
            note: Mutex::default(),
            written_since_pause: Mutex::default(),
        }
    }

    /// Ends the check as skipped unless the store promised this.
    pub(crate) fn require(&self, promise: bool, what: &str) -> CheckResult {
        if promise { Ok(()) } else { Err(Stop::Skipped(format!("not promised: {what}"))) }
    }

    /// Adds counts to the report.
    pub(crate) fn note(&self, note: String) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    pub(crate) fn into_note(self) -> String {
        self.note.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    // ── connections, keys, values ───────────────────────────────────────────────────────────────────────────────

    /// The connection that writes.
    pub(crate) fn writer(&self) -> &'h dyn Store {
        &*self.connections[0]
    }

    /// Another connection to the same store, which did not make the writes that it reads.
    pub(crate) fn other(&self) -> &'h dyn Store {
        &*self.connections[1]
    }

    /// All connections.
    pub(crate) fn connections(&self) -> &'h [Arc<dyn Store>] {
        self.connections
    }

    /// The connection of the given racer.
    pub(crate) fn connection(&self, racer: usize) -> Arc<dyn Store> {
        Arc::clone(&self.connections[racer % self.connections.len()])
    }

    /// Prefix of all keys of this check.
    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    /// A key that only this check uses.
    pub(crate) fn key(&self, name: &str) -> Key {
        Key::parse(&format!("{}/{name}", self.scope)).expect("the suite's own names are keys")
    }

    /// Bytes that were never written before, as every write of Tenure contains a nonce.
    pub(crate) fn value(&self, text: &str) -> Bytes {
        let number = self.values.fetch_add(1, Ordering::Relaxed);
        format!(r#"{{"check":"{}","nonce":{number},"text":"{text}"}}"#, self.scope).into()
    }

    /// Number of repetitions for faults that a store shows only sometimes, and length of a chain of writes. Stores with
    /// a long write interval get fewer.
    pub(crate) fn repeats(&self) -> usize {
        if self.promises.write_interval.is_zero() { 40 } else { 4 }
    }

    // ── calls that tolerate temporary trouble ───────────────────────────────────────────────────────────────────

    /// Reads the key. Tries again when a read fails, because a failed read has no effect.
    pub(crate) async fn read(&self, store: &dyn Store, key: &Key) -> Result<Option<Entry>, Stop> {
        Ok(self.reading(store, key).await?.entry)
    }

    /// Like [`read`](Self::read), with the store's time.
    pub(crate) async fn reading(&self, store: &dyn Store, key: &Key) -> Result<Reading, Stop> {
        self.require(self.promises.linearizable_reads, "linearizable reads")?;
        let mut patience = Retries::default();
        loop {
            match store.get(key).await {
                Ok(reading) => return Ok(reading),
                Err(error) => patience.spend(self.harness, &error).await?,
            }
        }
    }

    /// A change with a definite answer.
    pub(crate) async fn put(
        &self,
        store: &dyn Store,
        key: &Key,
        value: &Bytes,
        expect: &Expect,
    ) -> Result<Put, Stop> {
        self.write(store, key, &Write::new(value.clone(), expect.clone())).await
    }

    /// A write with a definite answer. An unknown outcome is resolved as Tenure itself does it: try again with the same
    /// expectation, so that at most one of the attempts can win, and read back before accepting a conflict.
    pub(crate) async fn write(&self, store: &dyn Store, key: &Key, write: &Write) -> Result<Put, Stop> {
        self.may_write(&write.value)?;
        let mut patience = Retries::default();
        let mut uncertain = false;
        loop {
            self.pace(key).await;
            let answer = store.write(key, write.clone()).await;
            match answer {
                Ok(Put::Conflict(_)) if uncertain => {
                    let reading = self.reading(store, key).await?;
                    return Ok(match reading.entry {
                        Some(entry) if entry.value == write.value => {
                            Put::Applied(Applied::new(entry.version).with_time(reading.time))
                        }
                        _ => Put::Conflict(tenure_store::Conflict),
                    });
                }
                Ok(put) => return Ok(put),
                Err(error) => {
                    uncertain |= !matches!(error, StoreError::Refused(_));
                    patience.spend(self.harness, &error).await?;
                }
            }
        }
    }

    /// Creates the entry, which must be absent.
    pub(crate) async fn create(&self, key: &Key, value: &Bytes) -> Result<Version, Stop> {
        match self.put(self.writer(), key, value, &Expect::Absent).await? {
            Put::Applied(applied) => Ok(applied.version),
            Put::Conflict(_) => fail!("a create of {key}, which does not exist, was a conflict"),
        }
    }

    /// Replaces the version, which must be the current one.
    pub(crate) async fn replace(&self, key: &Key, value: &Bytes, version: &Version) -> Result<Version, Stop> {
        match self.put(self.writer(), key, value, &Expect::Version(version.clone())).await? {
            Put::Applied(applied) => Ok(applied.version),
            Put::Conflict(_) => fail!("a replace of {key} at its current version {version} was a conflict"),
        }
    }

    /// Sends a write that must be a conflict.
    pub(crate) async fn conflict(
        &self,
        store: &dyn Store,
        key: &Key,
        expect: &Expect,
        what: &str,
    ) -> CheckResult {
        let value = self.value("must never be stored");
        match self.put(store, key, &value, expect).await? {
            Put::Conflict(_) => Ok(()),
            Put::Applied(applied) => fail!("{what} was applied to {key}, as version {}", applied.version),
        }
    }

    /// Verifies over another connection that the key has exactly this value and version.
    pub(crate) async fn holds(&self, key: &Key, value: &Bytes, version: &Version) -> CheckResult {
        let Some(entry) = self.read(self.other(), key).await? else {
            fail!("{key} should hold version {version} and is not there")
        };
        ensure!(
            entry.value == value,
            "{key} should hold {} and holds {}",
            excerpt(value.as_ref()),
            excerpt(&entry.value)
        );
        ensure!(
            entry.version == *version,
            "{key} should have version {version} and has version {}",
            entry.version
        );
        Ok(())
    }

    /// Verifies over another connection that the key has no entry.
    pub(crate) async fn is_absent(&self, key: &Key) -> CheckResult {
        match self.read(self.other(), key).await? {
            None => Ok(()),
            Some(entry) => fail!(
                "{key} should not be there and holds {} as version {}",
                excerpt(&entry.value),
                entry.version
            ),
        }
    }

    /// Ends the check as skipped unless the store promises to accept such a write.
    pub(crate) fn may_write(&self, value: &Bytes) -> CheckResult {
        self.require(
            self.promises.write_interval < Duration::MAX,
            "an interval at which a key may be written",
        )?;
        self.require(value.len() <= self.promises.value_max, &format!("values of {} bytes", value.len()))
    }

    /// Waits before a write until the store's interval between two writes of the key has passed.
    pub(crate) async fn pace(&self, key: &Key) {
        if self.promises.write_interval.is_zero() {
            return;
        }
        let first =
            self.written_since_pause.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        if !first {
            self.harness.pause(self.promises.write_interval).await;
            let mut written_since_pause =
                self.written_since_pause.lock().unwrap_or_else(PoisonError::into_inner);
            written_since_pause.clear();
            written_since_pause.insert(key.clone());
        }
    }

    /// Starts all racers at once and collects their results; `None` from a racer that never arrived.
    pub(crate) async fn race<T: Send + 'static>(
        &self,
        racers: impl IntoIterator<Item = BoxFuture<'static, T>>,
    ) -> Vec<Option<T>> {
        let mut tracks: Vec<BoxFuture<'static, ()>> = Vec::new();
        let mut finishes = Vec::new();
        for racer in racers {
            let finish = Arc::new(Mutex::new(None));
            finishes.push(Arc::clone(&finish));
            tracks.push(Box::pin(async move {
                let brought = racer.await;
                *finish.lock().unwrap_or_else(PoisonError::into_inner) = Some(brought);
            }));
        }
        self.harness.race(tracks).await;
        finishes.iter().map(|finish| finish.lock().unwrap_or_else(PoisonError::into_inner).take()).collect()
    }
}

/// Bytes for display: short, and complete only if they are text.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= SHOWN_MAX => format!("{text:?}"),
        _ => format!("{} bytes", bytes.len()),
    }
}

/// Several attempts, with increasing waits between them.
#[derive(Default)]
pub(crate) struct Retries {
    tries: u32,
}

impl Retries {
    /// Waits before the next attempt, or ends the check after enough attempts or if another attempt cannot help.
    pub(crate) async fn spend(&mut self, harness: &dyn Harness, error: &StoreError) -> CheckResult {
        self.tries += 1;
        ensure!(self.tries < TRIES_MAX, "no definite answer in {TRIES_MAX} tries, the last was: {error}");
        let mut wait = FIRST_WAIT * 2_u32.pow(self.tries);
        match error {
            StoreError::Refused(refused) => {
                ensure!(refused.reason == Reason::Unreachable, "refused: {error}");
            }
            StoreError::Throttled(throttled) => wait = wait.max(throttled.after.unwrap_or_default()),
            StoreError::Unknown(_) => {}
        }
        harness.pause(wait.min(LONGEST_WAIT)).await;
        Ok(())
    }
}

/// A healthy store gives a definite answer at the first attempt, a busy one within a few.
const TRIES_MAX: u32 = 8;

/// Doubled with every attempt: eight of them take about five seconds.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// A store that requests longer pauses is not suitable for leases, and would delay the suite.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Maximum length on a line of the report.
const SHOWN_MAX: usize = 120;
