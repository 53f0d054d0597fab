//! Removal of an entry by an operator: the same steps as a write, with an `unlink` instead of the `rename`.

use std::sync::Arc;

use rustix::io::Errno;
use tenure_store::{Conflict, Expect, Key, Removal, StoreError, Version};

use super::directory::Directory;
use super::gate::RemovalGate;
use super::lock::KeyLock;
use super::mark::Mark;
use super::name;
use super::write::is_as_expected;
use crate::host::disk::io_error::{IoError, had_no_effect};

/// A pending removal.
#[derive(Debug)]
pub(super) struct Remove {
    pub(super) directory: Arc<Directory>,
    /// False on a file system that was only accepted by name: there, an error proves nothing.
    pub(super) certain: bool,
    pub(super) key: Key,
    pub(super) expect: Expect,
}

/// Result of one attempt.
#[derive(Debug)]
pub(super) enum RemovalTry {
    /// Another process has the lock on the file of this name.
    Busy(String),
    /// The removal has an answer.
    Settled(Removal),
}

impl Remove {
    pub(super) fn new(directory: &Arc<Directory>, certain: bool, key: &Key, version: &Version) -> Self {
        let expect = Expect::Version(version.clone());
        Self { directory: Arc::clone(directory), certain, key: key.clone(), expect }
    }

    /// Makes one attempt: up to the lock, and the removal if the lock is free.
    ///
    /// The mark is put on the disk first. A write leaves that to the next ten seconds, because its record also has the
    /// token. After a removal, only the mark remembers it.
    pub(super) fn attempt(&self, mark: &Mark, wall: u64) -> Result<RemovalTry, StoreError> {
        if !self.is_as_expected()? {
            return Ok(RemovalTry::Settled(CONFLICT));
        }
        let raised = mark
            .raise_on_disk(&self.directory, wall)
            .map_err(|unusable| unusable.refused(&self.directory))?;
        if !raised {
            return Ok(RemovalTry::Busy(name::MARK.to_owned()));
        }
        let Some(_gate) = gate(&self.directory, self.certain)? else {
            return Ok(RemovalTry::Busy(name::lock(&self.key)));
        };
        match KeyLock::try_take(&self.directory, &self.key, None)? {
            Some(lock) => self.under_lock(lock).map(RemovalTry::Settled),
            None => Ok(RemovalTry::Busy(name::lock(&self.key))),
        }
    }

    /// Compares and unlinks. The lock file stays: other processes may wait for it.
    fn under_lock(&self, lock: KeyLock) -> Result<Removal, StoreError> {
        if !self.is_as_expected()? {
            return Ok(CONFLICT);
        }
        let entry = name::entry(&self.key);
        match self.directory.unlink(&entry) {
            Ok(()) => {}
            // Removed by a process that takes no lock.
            Err(Errno::NOENT) => return Ok(CONFLICT),
            Err(errno) => {
                let io_error = IoError::new("cannot remove", &self.directory.path_of(&entry), errno);
                let failed = self.certain && had_no_effect(errno);
                return Err(if failed { io_error.refused() } else { io_error.unknown() });
            }
        }
        drop(lock);
        match self.directory.sync() {
            Ok(()) => Ok(Removal::Removed),
            // After a power cut the entry may be back, vacant as it was. Nothing depends on it.
            Err(errno) => {
                let what = "cannot sync a removal in";
                Err(IoError::new(what, self.directory.path(), errno).unknown())
            }
        }
    }

    fn is_as_expected(&self) -> Result<bool, StoreError> {
        self.directory.is_in_place()?;
        is_as_expected(&self.directory, &self.key, &self.expect)
    }
}

/// The gate, if locks may be replaced on this file system; `None` if another process has it.
pub(super) fn gate(directory: &Directory, local: bool) -> Result<Option<Option<RemovalGate>>, StoreError> {
    if !local {
        return Ok(Some(None));
    }
    let gate = RemovalGate::try_take(directory)
        .map_err(|errno| IoError::new("cannot lock", directory.path(), errno).refused())?;
    Ok(gate.map(Some))
}

const CONFLICT: Removal = Removal::Conflict(Conflict);
