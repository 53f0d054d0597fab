//! Removing an entry, for operators: as a write goes, with an `unlink` where that has a `rename`.

use std::sync::Arc;

use rustix::io::Errno;
use tenure_store::{Conflict, Expect, Key, Reason, Removal, StoreError, Version};

use super::folder::Folder;
use super::lock::KeyLock;
use super::mark::Mark;
use super::name;
use super::trouble::Trouble;
use super::write::{had_no_effect, is_as_expected};

/// What a removal needs.
#[derive(Debug)]
pub(super) struct Remove {
    pub(super) folder: Arc<Folder>,
    /// On a file system that was only accepted by name, an error proves nothing.
    pub(super) certain: bool,
    pub(super) key: Key,
    pub(super) expect: Expect,
}

impl Remove {
    pub(super) fn new(folder: &Arc<Folder>, certain: bool, key: &Key, version: &Version) -> Self {
        let expect = Expect::Version(version.clone());
        Self { folder: Arc::clone(folder), certain, key: key.clone(), expect }
    }

    /// Everything up to a look at the lock, and what follows if it is free; `None` if somebody has it.
    ///
    /// The mark is put on the disk first. A write leaves that to the next ten seconds, because its record has the token
    /// too; here, the mark will be all that is left of it.
    pub(super) fn attempt(&self, mark: &Mark, wall: u64) -> Result<Option<Removal>, StoreError> {
        if !self.is_as_expected()? {
            return Ok(Some(CONFLICT));
        }
        let path = self.folder.path_of(name::MARK);
        match mark.raise_on_disk(&self.folder, wall) {
            Ok(true) => {}
            Ok(false) => {
                let sentence = format!(
                    "{} is locked by a process that is stopped, and nothing is removed without it: find that process \
                     (fuser -v {}), continue or kill it",
                    path.display(),
                    path.display()
                );
                return Err(StoreError::refused(Reason::Unreachable, sentence));
            }
            Err(errno) => return Err(Trouble::new("cannot write to", &path, errno).refused()),
        }
        match KeyLock::try_take(&self.folder, &self.key)? {
            Some(lock) => self.under(lock).map(Some),
            None => Ok(None),
        }
    }

    /// Compares and unlinks. The lock file stays: whoever waits for it would wait for nothing.
    fn under(&self, lock: KeyLock) -> Result<Removal, StoreError> {
        if !self.is_as_expected()? {
            return Ok(CONFLICT);
        }
        let entry = name::entry(&self.key);
        match self.folder.unlink(&entry) {
            Ok(()) => {}
            // By somebody who takes no lock.
            Err(Errno::NOENT) => return Ok(CONFLICT),
            Err(errno) => {
                let trouble = Trouble::new("cannot remove", &self.folder.path_of(&entry), errno);
                let failed = self.certain && had_no_effect(errno);
                return Err(if failed { trouble.refused() } else { trouble.unknown() });
            }
        }
        drop(lock);
        match self.folder.sync() {
            Ok(()) => Ok(Removal::Removed),
            // After a power cut it may be there again, vacant as it was. Nothing rests on it.
            Err(errno) => {
                let what = "cannot put on the disk what was removed from";
                Err(Trouble::new(what, self.folder.path(), errno).unknown())
            }
        }
    }

    fn is_as_expected(&self) -> Result<bool, StoreError> {
        self.folder.is_in_place()?;
        is_as_expected(&self.folder, &self.key, &self.expect)
    }
}

const CONFLICT: Removal = Removal::Conflict(Conflict);
