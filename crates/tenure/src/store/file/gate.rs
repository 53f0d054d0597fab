use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::folder::Folder;

/// The gate of a folder, taken: a lock of the folder itself. A removal has it, and a process that replaces the lock of a
/// stopped owner, so that no removal is under way then. The kernel gives it back when its owner dies.
#[derive(Debug)]
pub(super) struct Gate(OwnedFd);

impl Gate {
    /// Takes the gate if it is free; `None` if not.
    pub(super) fn try_take(folder: &Folder) -> rustix::io::Result<Option<Self>> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let itself = rustix::fs::openat(folder, ".", flags, Mode::empty())?;
        match rustix::fs::flock(&itself, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(itself))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Said aloud: a process that was forked meanwhile has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}
