use std::os::fd::OwnedFd;

use rustix::fs::{FileType, FlockOperation};
use rustix::io::Errno;
use tenure_store::{Key, StoreError};

use super::folder::Folder;
use super::name;
use super::trouble::{Damaged, Trouble};

/// The lock of one key, held. The kernel gives it back when its holder dies.
///
/// The lock file is made once and never removed. If somebody removes it all the same, two writers could each have locked
/// a file of that name; so it is opened anew each time, and compared with what the name stands for once it is locked.
#[derive(Debug)]
pub(super) struct KeyLock(OwnedFd);

impl KeyLock {
    /// Takes the lock if nobody has it; `None` if somebody has.
    pub(super) fn try_take(folder: &Folder, key: &Key) -> Result<Option<Self>, StoreError> {
        let name = name::lock(key);
        let trouble = |what| {
            let path = folder.path_of(&name);
            move |errno| Trouble::new(what, &path, errno).refused()
        };
        for _ in 0..TRIES {
            let file = folder.open_or_create(&name).map_err(trouble("cannot open"))?;
            let opened = rustix::fs::fstat(&file).map_err(trouble("cannot look at"))?;
            if FileType::from_raw_mode(opened.st_mode) != FileType::RegularFile {
                return Err(Damaged::because(&folder.path_of(&name), "it is not a file that can be locked"));
            }
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(trouble("cannot lock")(errno)),
            }
            let lock = Self(file);
            match folder.status_of(&name) {
                Ok(there) if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino) => {
                    return Ok(Some(lock));
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(trouble("cannot look at")(errno)),
            }
        }
        Ok(None)
    }
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // Said aloud: a process that was forked meanwhile has a copy of the descriptor, and closing ours would not free
        // the lock.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Somebody who replaces the lock file all the time is waited for like somebody who has it.
const TRIES: usize = 4;
