use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tenure_store::{Expect, Key, Listed, Prefix, Stamp, Version};
use tokio::sync::watch;

use super::Calls;
use super::faults::FaultPlan;
use super::snapshot::Snapshot;
use crate::clock::Instant;

/// All mutable state of a memory store, under one lock. No method here waits or wakes another task: the caller sends
/// the returned [`WatchHints`].
pub(super) struct MemoryState {
    entries: BTreeMap<Key, Stored>,
    next_version: u64,
    watchers: Vec<WatchEntry>,
    pub(super) calls: Calls,
    pub(super) plan: FaultPlan,
}

/// One stored entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) value: Bytes,
    pub(super) version: Version,
    /// Time of the write, by the store's clock.
    pub(super) written: Instant,
}

struct WatchEntry {
    prefix: Prefix,
    changed: Arc<watch::Sender<()>>,
}

/// Watchers to notify once the lock is free.
#[must_use = "`send` notifies the watchers"]
#[derive(Default)]
pub(super) struct WatchHints(Vec<Arc<watch::Sender<()>>>);

impl WatchHints {
    pub(super) fn send(self) {
        for changed in self.0 {
            changed.send_replace(());
        }
    }
}

impl MemoryState {
    /// Versions count from 1, so this one is never given.
    pub(super) const IMPOSSIBLE_VERSION: u64 = 0;

    pub(super) fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            next_version: Self::IMPOSSIBLE_VERSION + 1,
            watchers: Vec::new(),
            calls: Calls::default(),
            plan: FaultPlan::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Stored> {
        self.entries.get(key)
    }

    pub(super) fn keys(&self, prefix: &Prefix) -> Vec<Key> {
        self.entries.keys().filter(|key| prefix.covers(key)).cloned().collect()
    }

    pub(super) fn listed(&self, prefix: &Prefix) -> Vec<Listed> {
        let covered = self.entries.iter().filter(|(key, _)| prefix.covers(key));
        let listed = covered.map(|(key, stored)| {
            let stamp = Stamp::new(stored.version.as_str()).with_size(Some(stored.value.len() as u64));
            Listed::new(key.clone(), stamp)
        });
        listed.collect()
    }

    /// True if the entry is the expected one.
    pub(super) fn is(&self, key: &Key, expect: &Expect) -> bool {
        match (self.entries.get(key), expect) {
            (None, Expect::Absent) => true,
            (Some(stored), Expect::Version(version)) => stored.version == *version,
            _ => false,
        }
    }

    /// Writes with a version that was never given before.
    pub(super) fn write(&mut self, key: &Key, value: Bytes, now: Instant) -> (Version, WatchHints) {
        let version = Version::new(self.next_version.to_string());
        self.next_version += 1;
        self.entries.insert(key.clone(), Stored { value, version: version.clone(), written: now });
        (version, self.hints(|prefix| prefix.covers(key)))
    }

    pub(super) fn delete(&mut self, key: &Key) -> (bool, WatchHints) {
        match self.entries.remove(key) {
            Some(_) => (true, self.hints(|prefix| prefix.covers(key))),
            None => (false, WatchHints::default()),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot { entries: self.entries.clone(), next_version: self.next_version }
    }

    pub(super) fn restore(&mut self, snapshot: &Snapshot) -> WatchHints {
        let before = std::mem::replace(&mut self.entries, snapshot.entries.clone());
        // Old versions come back with their values, but no later write gets one of them again.
        self.next_version = self.next_version.max(snapshot.next_version);
        let keys = before.keys().chain(snapshot.entries.keys());
        let changed: Vec<_> = keys.filter(|key| before.get(key) != snapshot.entries.get(key)).collect();
        self.hints(|prefix| changed.iter().any(|key| prefix.covers(key)))
    }

    pub(super) fn watch(&mut self, prefix: &Prefix) -> watch::Receiver<()> {
        let (changed, hints) = watch::channel(());
        self.watchers.retain(|watcher| !watcher.changed.is_closed());
        self.watchers.push(WatchEntry { prefix: prefix.clone(), changed: Arc::new(changed) });
        hints
    }

    #[cfg(test)]
    pub(super) fn watchers(&self) -> usize {
        self.watchers.len()
    }

    fn hints(&mut self, concerned: impl Fn(&Prefix) -> bool) -> WatchHints {
        self.watchers.retain(|watcher| !watcher.changed.is_closed());
        let concerned_watchers = self.watchers.iter().filter(|watcher| concerned(&watcher.prefix));
        WatchHints(concerned_watchers.map(|watcher| watcher.changed.clone()).collect())
    }
}
