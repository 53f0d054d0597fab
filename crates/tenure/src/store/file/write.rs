use std::sync::Arc;

use bytes::Bytes;
use tenure_store::{Conflict, Expect, Key, Put, StoreError, StoreTime, Version};

use super::directory::Directory;
use super::lock::KeyLock;
use super::temporary::{OwnedTemporary, Temporary};
use super::{name, read};
use crate::host::disk::io_error::{IoError, had_no_effect};

/// A write that is on the disk under a temporary name, and waits for the lock of its key.
#[derive(Debug)]
pub(super) struct Write {
    directory: Arc<Directory>,
    /// False on a file system that was only accepted by name: there, an error proves nothing.
    certain: bool,
    key: Key,
    expect: Expect,
    version: Version,
    temporary: OwnedTemporary,
}

/// Result of one attempt.
#[derive(Debug)]
pub(super) enum WriteTry {
    /// Another process has the lock.
    Busy(Write),
    /// The entry is not the expected one, and nothing was written.
    Conflict,
    /// The entry was replaced, and that is on the disk; with the time of the write, once it was read.
    Applied(Version, Option<StoreTime>),
    /// The entry was replaced, and that may not be on the disk.
    Unsynced(Version, StoreError),
    /// It failed.
    Failed(StoreError),
}

/// True if the entry is the expected one. A file that is not an entry is an error, and is never overwritten.
pub(super) fn is_as_expected(directory: &Directory, key: &Key, expect: &Expect) -> Result<bool, StoreError> {
    let there = read::entry(directory, key)?.map(|envelope| envelope.version);
    Ok(match expect {
        Expect::Absent => there.is_none(),
        Expect::Version(version) => there.as_ref() == Some(version),
    })
}

impl Write {
    /// Does everything that takes time, before the lock is taken.
    pub(super) fn prepare(
        directory: Arc<Directory>,
        certain: bool,
        key: Key,
        expect: Expect,
        version: Version,
        bytes: &Bytes,
    ) -> Result<Self, StoreError> {
        let temporary = Temporary::write(Arc::clone(&directory), bytes)
            .map_err(|errno| IoError::new("cannot write to", directory.path(), errno).refused())?;
        Ok(Self { directory, certain, key, expect, version, temporary })
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Compares and renames, if the lock is free.
    pub(super) fn attempt(self) -> WriteTry {
        match KeyLock::try_take(&self.directory, &self.key, Some(self.temporary.name())) {
            Ok(None) => WriteTry::Busy(self),
            Ok(Some(lock)) => self.under_lock(lock),
            Err(error) => WriteTry::Failed(error),
        }
    }

    /// A process that is stopped in here blocks the key, so there is nothing in here but compare and rename.
    fn under_lock(self, lock: KeyLock) -> WriteTry {
        match self
            .directory
            .is_in_place()
            .and_then(|()| is_as_expected(&self.directory, &self.key, &self.expect))
        {
            Ok(true) => {}
            Ok(false) => return WriteTry::Conflict,
            Err(error) => return WriteTry::Failed(error),
        }
        let entry = name::entry(&self.key);
        if let Err(errno) = self.directory.rename(self.temporary.name(), &entry) {
            let io_error = IoError::new("cannot replace", &self.directory.path_of(&entry), errno);
            let failed = self.certain && had_no_effect(errno);
            return WriteTry::Failed(if failed { io_error.refused() } else { io_error.unknown() });
        }
        self.temporary.renamed();
        drop(lock);
        match self.directory.sync() {
            Ok(()) => WriteTry::Applied(self.version, None),
            Err(errno) => {
                let io_error = IoError::new("cannot sync", self.directory.path(), errno);
                WriteTry::Unsynced(self.version, io_error.unknown())
            }
        }
    }
}

impl WriteTry {
    pub(super) const CONFLICT: Put = Put::Conflict(Conflict);
}
