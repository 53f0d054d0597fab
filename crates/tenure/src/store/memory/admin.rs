use bytes::Bytes;
use tenure_store::{Key, Version};

use super::{Memory, Snapshot};

/// Operations of an operator or another program that bypass the contract. [`Faults`](super::Faults) do not affect them,
/// and [`Calls`](super::Calls) do not count them.
impl Memory {
    /// Deletes the entry; false if there was none. Its version is never used again.
    pub fn delete(&self, key: &Key) -> bool {
        let (deleted, hints) = self.lock().delete(key);
        hints.send();
        deleted
    }

    /// Overwrites the entry unconditionally, like a program that knows nothing of leases. Returns the new version.
    pub fn overwrite(&self, key: &Key, value: impl Into<Bytes>) -> Version {
        let (value, now) = (value.into(), self.now());
        let (version, hints) = self.lock().write(key, value, now);
        hints.send();
        version
    }

    /// The stored value, whatever the reads of the store return.
    pub fn contents(&self, key: &Key) -> Option<Bytes> {
        self.lock().get(key).map(|stored| stored.value.clone())
    }

    /// A backup: every key with its value and its version.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().snapshot()
    }

    /// Restores the values *and the versions* of a backup; other keys are removed. Versions that were given since are
    /// still never used again.
    pub fn restore(&self, snapshot: &Snapshot) {
        let hints = self.lock().restore(snapshot);
        hints.send();
    }
}
