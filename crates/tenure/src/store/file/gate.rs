use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::directory::Directory;

/// The gate of a directory, taken: a lock of the directory itself. A removal takes it, and so does a process that
/// replaces the lock of a stopped owner: during a replacement no removal runs. The kernel releases it when its owner
/// dies.
#[derive(Debug)]
pub(super) struct RemovalGate(OwnedFd);

impl RemovalGate {
    /// Takes the gate if it is free; `None` if not.
    pub(super) fn try_take(directory: &Directory) -> rustix::io::Result<Option<Self>> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let itself = rustix::fs::openat(directory, ".", flags, Mode::empty())?;
        match rustix::fs::flock(&itself, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(itself))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

impl Drop for RemovalGate {
    fn drop(&mut self) {
        // Explicit: a process that was forked in the meantime has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}
