use std::sync::Arc;

use bytes::Bytes;
use rustix::io::Errno;
use tenure_store::{Conflict, Expect, Key, Put, StoreError, StoreTime, Version};

use super::folder::Folder;
use super::lock::KeyLock;
use super::temporary::{OwnedTemporary, Temporary};
use super::{name, read};
use crate::host::disk::io_error::IoError;

/// A write that is on the disk, under a name of its own, and waits for the lock of its key.
#[derive(Debug)]
pub(super) struct Write {
    folder: Arc<Folder>,
    /// On a file system that was only accepted by name, an error proves nothing.
    certain: bool,
    key: Key,
    expect: Expect,
    version: Version,
    temporary: OwnedTemporary,
}

/// What came of a look at the lock.
#[derive(Debug)]
pub(super) enum WriteTry {
    /// Somebody has it.
    Busy(Write),
    /// The entry is not what was expected, and nothing was written.
    Conflict,
    /// The entry was replaced, and that is on the disk; and what time it was then, once somebody has looked.
    Applied(Version, Option<StoreTime>),
    /// The entry was replaced, and that may not be on the disk.
    Unsynced(Version, StoreError),
    /// It failed.
    Failed(StoreError),
}

/// Whether the entry is what `expect` says. A file that is no entry is an error, and so is never overwritten.
pub(super) fn is_as_expected(folder: &Folder, key: &Key, expect: &Expect) -> Result<bool, StoreError> {
    let there = read::entry(folder, key)?.map(|envelope| envelope.version);
    Ok(match expect {
        Expect::Absent => there.is_none(),
        Expect::Version(version) => there.as_ref() == Some(version),
    })
}

impl Write {
    /// Everything that takes time is done here, before the lock is taken.
    pub(super) fn prepare(
        folder: Arc<Folder>,
        certain: bool,
        key: Key,
        expect: Expect,
        version: Version,
        bytes: &Bytes,
    ) -> Result<Self, StoreError> {
        let temporary = Temporary::write(Arc::clone(&folder), bytes)
            .map_err(|errno| IoError::new("cannot write to", folder.path(), errno).refused())?;
        Ok(Self { folder, certain, key, expect, version, temporary })
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Compares and renames, if the lock is free.
    pub(super) fn attempt(self) -> WriteTry {
        match KeyLock::try_take(&self.folder, &self.key, Some(self.temporary.name())) {
            Ok(None) => WriteTry::Busy(self),
            Ok(Some(lock)) => self.under_lock(lock),
            Err(error) => WriteTry::Failed(error),
        }
    }

    /// Whoever is stopped in here stops the key; so there is nothing in here but compare and rename.
    fn under_lock(self, lock: KeyLock) -> WriteTry {
        match self.folder.is_in_place().and_then(|()| is_as_expected(&self.folder, &self.key, &self.expect)) {
            Ok(true) => {}
            Ok(false) => return WriteTry::Conflict,
            Err(error) => return WriteTry::Failed(error),
        }
        let entry = name::entry(&self.key);
        if let Err(errno) = self.folder.rename(self.temporary.name(), &entry) {
            let io_error = IoError::new("cannot replace", &self.folder.path_of(&entry), errno);
            let failed = self.certain && had_no_effect(errno);
            return WriteTry::Failed(if failed { io_error.refused() } else { io_error.unknown() });
        }
        self.temporary.renamed();
        drop(lock);
        match self.folder.sync() {
            Ok(()) => WriteTry::Applied(self.version, None),
            Err(errno) => {
                let io_error =
                    IoError::new("cannot put on the disk what was written to", self.folder.path(), errno);
                WriteTry::Unsynced(self.version, io_error.unknown())
            }
        }
    }
}

impl WriteTry {
    pub(super) const CONFLICT: Put = Put::Conflict(Conflict);
}

/// The errors of a rename or an unlink that come before anything was changed. A disk that fails may do so in the middle.
pub(super) fn had_no_effect(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT
            | Errno::ACCESS
            | Errno::PERM
            | Errno::ROFS
            | Errno::NOSPC
            | Errno::DQUOT
            | Errno::ISDIR
            | Errno::NOTDIR
            | Errno::BUSY
            | Errno::NOMEM
    )
}
