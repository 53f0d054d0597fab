use bytes::Bytes;
use tenure_store::{Key, Version};

use super::{Memory, Snapshot};

/// What an operator or another program can do behind everybody's back. None of it is part of the contract, none of
/// it goes wrong by [`Faults`](super::Faults), and none of it is counted in [`Calls`](super::Calls).
impl Memory {
    /// Deletes the entry; false if there was none. Its version is not given again.
    pub fn delete(&self, key: &Key) -> bool {
        let (deleted, hints) = self.lock().delete(key);
        hints.send();
        deleted
    }

    /// Writes whatever is there, as a program does that knows nothing of leases. Gives the new version.
    pub fn overwrite(&self, key: &Key, value: impl Into<Bytes>) -> Version {
        let (value, now) = (value.into(), self.now());
        let (version, hints) = self.lock().write(key, value, now);
        hints.send();
        version
    }

    /// What is there, whatever the reads of the store would say.
    pub fn contents(&self, key: &Key) -> Option<Bytes> {
        self.lock().get(key).map(|stored| stored.value.clone())
    }

    /// A backup: every key with its value and its version.
    pub fn snapshot(&self) -> Snapshot {
        self.lock().snapshot()
    }

    /// Brings back the values *and the versions* of a backup; keys that are not in it are gone. Versions that were
    /// given since are still not given again.
    pub fn restore(&self, snapshot: &Snapshot) {
        let hints = self.lock().restore(snapshot);
        hints.send();
    }
}
