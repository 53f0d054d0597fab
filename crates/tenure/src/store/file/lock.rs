use std::os::fd::OwnedFd;

use rustix::fs::{FileType, FlockOperation, OFlags};
use rustix::io::Errno;
use tenure_store::{Key, StoreError};

use super::damaged::Damaged;
use super::directory::Directory;
use super::gate::RemovalGate;
use super::{name, temporary};
use crate::host::disk::io_error::IoError;
use crate::host::disk::lock_owner::LockOwner;

/// The lock of one key, held. The kernel releases it when its owner dies.
///
/// The lock file is created once and never removed. If it is removed anyway, two writers could each lock a file of that
/// name. So each writer opens it again every time, and compares it with the file of that name after locking it.
///
/// # Stopped owners
///
/// A process that is stopped while it has the lock (`SIGSTOP`, a debugger) would block its key for all others. So a
/// lock whose owner is stopped is replaced: another lock file is renamed to its name. The former owner may already have
/// compared, and may rename as soon as it continues. That rename is harmless, because its source is a temporary file
/// with a unique name. Once that file is unlinked, the rename fails without effect, and the name never comes back.
///
/// The new lock file is not empty. That means: before the new owner compares, *every* temporary file in the directory
/// must be unlinked, except that of the new owner. Each owner that finds a lock file like this has that duty, and
/// empties the lock file afterwards. So it does not matter where the replacing process is stopped or killed.
///
/// * A former owner found its lock file in place before the replacement. Its temporary file existed before that, so it
///   is among those that are unlinked after the replacement.
/// * If the former owner renames before its file is unlinked, the new owner compares after that, and sees the result.
/// * Other writers at this moment lose their temporary file, too. Their write is refused without effect, and retried.
/// * A removal has no such file. It also takes the [gate](RemovalGate), and no lock is replaced while the gate is taken.
#[derive(Debug)]
pub(super) struct KeyLock(OwnedFd);

impl KeyLock {
    /// Takes the lock if it is free; `None` if not. `own` is the temporary file that the caller will rename under it.
    pub(super) fn try_take(
        directory: &Directory,
        key: &Key,
        own: Option<&str>,
    ) -> Result<Option<Self>, StoreError> {
        let name = name::lock(key);
        let io_error = |what| {
            let path = directory.path_of(&name);
            move |errno| IoError::new(what, &path, errno).refused()
        };
        for _ in 0..TRIES {
            let file = open_or_create(directory, &name).map_err(io_error("cannot open"))?;
            let opened = rustix::fs::fstat(&file).map_err(io_error("cannot inspect"))?;
            if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile {
                return Err(Damaged::because(
                    &directory.path_of(&name),
                    "it is not a file that can be locked",
                ));
            }
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(io_error("cannot lock")(errno)),
            }
            let lock = Self(file);
            match directory.status_of(&name) {
                Ok(there) if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino) => {
                    if there.st_size > 0 {
                        // A member of a group that shares the directory could put a link to another file here.
                        if opened.st_nlink > 1 || !directory.may_own(&opened) {
                            let flaw =
                                "it is not empty, and emptying it could change the file of another user";
                            return Err(Damaged::because(&directory.path_of(&name), flaw));
                        }
                        temporary::unlink_all_but(directory, own).map_err(io_error("cannot take over"))?;
                        rustix::fs::ftruncate(&lock.0, 0).map_err(io_error("cannot empty"))?;
                    }
                    return Ok(Some(lock));
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(io_error("cannot inspect")(errno)),
            }
        }
        Ok(None)
    }

    /// Replaces the lock of this key if its owner is stopped; `false` if it is not, or if that is unknown.
    pub(super) fn replace_if_stopped(directory: &Directory, key: &Key) -> rustix::io::Result<bool> {
        let name = name::lock(key);
        let is_stopped = || LockOwner::of(directory, &name).is_some_and(|owner| owner.is_stopped());
        if !is_stopped() {
            return Ok(false);
        }
        // Only one process removes or replaces at a time, so the replaced lock is the inspected one.
        let Some(_gate) = RemovalGate::try_take(directory)? else { return Ok(false) };
        if !is_stopped() {
            return Ok(false);
        }
        temporary::replace(directory, REPLACED, &name)?;
        Ok(true)
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // Explicit: a process that was forked in the meantime has a copy of the descriptor, and closing this one would
        // not release the lock.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens the lock file, and creates it if it is missing.
///
/// In a shared directory it gets its name only after its mode: another member who opens it in between would be refused.
fn open_or_create(directory: &Directory, name: &str) -> rustix::io::Result<OwnedFd> {
    if !directory.is_shared() {
        return directory.open_or_create(name);
    }
    for _ in 0..TRIES {
        match directory.open(name, OFlags::RDWR) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        let temporary = name::temporary(super::random());
        let file = directory.create(&temporary, OFlags::RDWR)?;
        match directory.rename_unless_there(&temporary, name) {
            Ok(()) => return Ok(file),
            // Another process has created it, or has unlinked every temporary file.
            Err(Errno::EXIST | Errno::NOENT) => drop(directory.unlink(&temporary)),
            Err(errno) => {
                let _ = directory.unlink(&temporary);
                return Err(errno);
            }
        }
    }
    Err(Errno::AGAIN)
}

/// Content of a lock file that replaced another one.
const REPLACED: &[u8] = b"replaced a lock whose owner was stopped\n";

/// Number of attempts before a lock file that is replaced all the time counts as locked.
const TRIES: usize = 4;
