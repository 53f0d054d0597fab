use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::OFlags;
use rustix::io::Errno;
use tenure_core::record::{Nonce, Witness};

use super::folder::WitnessFolder;
use super::lock_mapping::LockMapping;
use super::{WitnessPart, nonce_ring, ofd};

/// A witness of our own, locked as long as this lives. The file stays when this is dropped: unlocked, it tells others that
/// nobody acts any more.
#[derive(Debug)]
pub(crate) struct Lock {
    folder: Arc<WitnessFolder>,
    named: Arc<Witness>,
    turn: AtomicUsize,
    lock_mapping: LockMapping,
}

impl Lock {
    pub(super) fn new(folder: Arc<WitnessFolder>, named: Witness, lock_mapping: LockMapping) -> Self {
        Self { folder, named: Arc::new(named), turn: AtomicUsize::new(0), lock_mapping }
    }

    /// What the record says about it.
    pub(crate) fn named(&self) -> &Arc<Witness> {
        &self.named
    }

    /// Lists a nonce, before the request that carries it is sent. One that could not be listed must not stop the
    /// request: whoever finds it in the record knows nothing, and waits.
    ///
    /// It must be a fresh one. Nonces that are listed ahead would be in every copy of a machine that was copied while it
    /// ran, and a copy whose holder is dead would take them for proof that the other one is.
    ///
    /// The file is opened anew each time. A descriptor that is kept could be closed by others and stand for a stranger's
    /// file, and a write through the mapping to a full disk is a signal.
    pub(crate) fn list(&self, nonce: Nonce) -> io::Result<()> {
        self.write(nonce, self.turn.fetch_add(1, Ordering::Relaxed))
    }

    /// Lists a nonce that no record carries, to see whether it can be read. The first one that is listed replaces it.
    pub(super) fn list_for_trial(&self, nonce: Nonce) -> io::Result<()> {
        self.write(nonce, 0)
    }

    fn write(&self, nonce: Nonce, turn: usize) -> io::Result<()> {
        let file = self.reopen(OFlags::WRONLY)?;
        let slot = nonce_ring::slot(&self.named.name, self.folder.device(), nonce);
        match rustix::io::pwrite(&file, &slot, nonce_ring::offset(turn))? {
            nonce_ring::SLOT => Ok(()),
            _ => Err(Errno::NOSPC.into()),
        }
    }

    /// A lock of its own for somebody else who acts under the term, in a descriptor that can be inherited.
    ///
    /// It is opened for writing, so that whoever watches is told when the last one who has it dies.
    pub(crate) fn share(&self, part: WitnessPart) -> io::Result<OwnedFd> {
        if !self.lock_mapping.is_here() {
            // A forked copy of the process holds nothing, and must not lock again what others may have seen unlocked.
            return Err(Errno::BADF.into());
        }
        let file = self.reopen(OFlags::RDWR)?;
        ofd::share(&file, part)?;
        Ok(file)
    }

    /// Takes the file away: no record names it any more.
    pub(crate) fn remove(&self) -> io::Result<()> {
        self.folder.remove(&self.named)
    }

    /// Opens the file anew, and looks whether it is still locked.
    ///
    /// Nothing known frees the lock while the mapping is there. Should it be free all the same, the file is removed: without
    /// it a contender knows nothing, and waits.
    fn reopen(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let (file, same_file) = self.folder.open_named(&self.named, flags)?;
        if same_file && ofd::is_locked(&file)? {
            return Ok(file);
        }
        if same_file && self.lock_mapping.is_here() {
            self.remove()?;
        }
        Err(Errno::STALE.into())
    }
}
