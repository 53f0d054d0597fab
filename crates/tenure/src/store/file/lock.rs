use std::os::fd::OwnedFd;

use rustix::fs::{FileType, FlockOperation};
use rustix::io::Errno;
use tenure_store::{Key, StoreError};

use super::damaged::Damaged;
use super::folder::Folder;
use super::gate::Gate;
use super::owner::Owner;
use super::{name, temporary};
use crate::host::disk::io_error::IoError;

/// The lock of one key, held. The kernel gives it back when its holder dies.
///
/// The lock file is made once and never removed. If somebody removes it all the same, two writers could each have locked
/// a file of that name; so it is opened anew each time, and compared with what the name stands for once it is locked.
///
/// # Owners that are stopped
///
/// A process that is stopped with the lock (`SIGSTOP`, a debugger) would stop its key for all others. So a lock whose owner is
/// stopped is replaced: another lock file is renamed to its name. The former owner may have compared already and be about to rename,
/// whenever it goes on. What makes it harmless is that the source of its rename is a temporary file with a name of its own: once
/// that is unlinked, the rename fails without effect, and the name never comes back.
///
/// The new lock file is not empty, and that says: *every* temporary file in the folder is unlinked, but for that of the
/// new owner, before the new owner compares. This is the duty of each owner that finds a lock file so, and it empties the file
/// afterwards. So it does not matter where the process is stopped or killed that replaces a lock.
///
/// * A former owner has found its lock file in its place before it was replaced. Its temporary file was there before that, so it
///   is among those that are unlinked after the replacement.
/// * If the former owner renames before its file is unlinked, the new owner compares after that, and sees it.
/// * Other writers in this moment lose their temporary file, too. Their write is refused without effect, and tried again.
/// * A removal has no such file. It takes the [gate](Gate) as well, and no lock is replaced while the gate is taken.
#[derive(Debug)]
pub(super) struct KeyLock(OwnedFd);

impl KeyLock {
    /// Takes the lock if it is free; `None` if not. `own` is the temporary file that the caller will rename under it.
    pub(super) fn try_take(
        folder: &Folder,
        key: &Key,
        own: Option<&str>,
    ) -> Result<Option<Self>, StoreError> {
        let name = name::lock(key);
        let io_error = |what| {
            let path = folder.path_of(&name);
            move |errno| IoError::new(what, &path, errno).refused()
        };
        for _ in 0..TRIES {
            let file = folder.open_or_create(&name).map_err(io_error("cannot open"))?;
            let opened = rustix::fs::fstat(&file).map_err(io_error("cannot look at"))?;
            if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile {
                return Err(Damaged::because(&folder.path_of(&name), "it is not a file that can be locked"));
            }
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(io_error("cannot lock")(errno)),
            }
            let lock = Self(file);
            match folder.status_of(&name) {
                Ok(there) if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino) => {
                    if there.st_size > 0 {
                        temporary::unlink_all_but(folder, own).map_err(io_error("cannot take over"))?;
                        rustix::fs::ftruncate(&lock.0, 0).map_err(io_error("cannot empty"))?;
                    }
                    return Ok(Some(lock));
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(io_error("cannot look at")(errno)),
            }
        }
        Ok(None)
    }

    /// Replaces the lock of this key if its owner is stopped; `false` if it is not, or that cannot be told.
    pub(super) fn replace_if_stopped(folder: &Folder, key: &Key) -> rustix::io::Result<bool> {
        let name = name::lock(key);
        let is_stopped = || Owner::of(folder, &name).is_some_and(|owner| owner.is_stopped());
        if !is_stopped() {
            return Ok(false);
        }
        // Only one removes or replaces at a time, so what is replaced is what was looked at.
        let Some(_gate) = Gate::try_take(folder)? else { return Ok(false) };
        if !is_stopped() {
            return Ok(false);
        }
        temporary::replace(folder, REPLACED, &name)?;
        Ok(true)
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // Said aloud: a process that was forked meanwhile has a copy of the descriptor, and closing ours would not free
        // the lock.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Content of a lock file that took the place of another one.
const REPLACED: &[u8] = b"replaced a lock whose owner was stopped\n";

/// Somebody who replaces the lock file all the time is waited for like somebody who has it.
const TRIES: usize = 4;
