use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::OFlags;
use rustix::io::Errno;
use tenure_core::record::{Nonce, Witness};

use super::directory::WitnessDirectory;
use super::lock_mapping::LockMapping;
use super::locked_file::LockedFile;
use super::{WitnessPart, nonce_ring, ofd};

/// A witness whose lock a mapping of this process holds.
#[derive(Debug)]
pub(super) struct MappedFile {
    directory: Arc<WitnessDirectory>,
    named: Arc<Witness>,
    turn: AtomicUsize,
    lock_mapping: LockMapping,
}

impl MappedFile {
    pub(super) fn new(directory: Arc<WitnessDirectory>, named: Witness, lock_mapping: LockMapping) -> Self {
        Self { directory, named: Arc::new(named), turn: AtomicUsize::new(0), lock_mapping }
    }

    /// Writes a nonce into a slot of the ring. It opens the file anew each time. A descriptor that stays open could be
    /// closed by other code and refer to another file, and a write through the mapping to a full disk raises a signal.
    fn write(&self, nonce: Nonce, turn: usize) -> io::Result<()> {
        let file = self.reopen(OFlags::WRONLY)?;
        let slot = nonce_ring::slot(&self.named.name, self.directory.device(), nonce);
        match rustix::io::pwrite(&file, &slot, nonce_ring::offset(turn))? {
            nonce_ring::SLOT => Ok(()),
            _ => Err(Errno::NOSPC.into()),
        }
    }

    /// Opens the file anew, and checks that it is still locked.
    ///
    /// No known event frees the lock while the mapping exists. If it is free all the same, the file is removed: without
    /// it a contender waits for the ttl.
    fn reopen(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let (file, same_file) = self.directory.open_named(&self.named, flags)?;
        if same_file && ofd::is_locked(&file)? {
            return Ok(file);
        }
        if same_file && self.lock_mapping.is_here() {
            self.remove()?;
        }
        Err(Errno::STALE.into())
    }
}

impl LockedFile for MappedFile {
    fn named(&self) -> &Arc<Witness> {
        &self.named
    }

    fn list(&self, nonce: Nonce) -> io::Result<()> {
        self.write(nonce, self.turn.fetch_add(1, Ordering::Relaxed))
    }

    fn is_in_memory(&self) -> bool {
        self.directory.is_in_memory()
    }

    fn list_for_trial(&self, nonce: Nonce) -> io::Result<()> {
        self.write(nonce, 0)
    }

    /// The descriptor is opened for writing, so that watchers are notified when the last process that has it dies.
    fn share(&self, part: WitnessPart) -> io::Result<OwnedFd> {
        if !self.lock_mapping.is_here() {
            // A forked copy of the process holds nothing, and must not lock a file that contenders may have seen
            // unlocked.
            return Err(Errno::BADF.into());
        }
        let file = self.reopen(OFlags::RDWR)?;
        ofd::share(&file, part)?;
        Ok(file)
    }

    fn remove(&self) -> io::Result<()> {
        self.directory.remove(&self.named)
    }

    fn remove_by_name(&self) -> io::Result<()> {
        self.directory.remove_by_name(&self.named)
    }
}
