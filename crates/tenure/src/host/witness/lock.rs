use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use tenure_core::record::{Nonce, Witness};

use super::WitnessPart;
use super::files::WitnessFiles;
use super::locked_file::LockedFile;
use crate::host::simulation::{Duty, does};

/// The lock on this holder's own witness. The file stays when it is dropped: unlocked, it proves to contenders that the
/// holder is dead.
#[derive(Debug)]
pub(crate) struct Lock(Box<dyn LockedFile>);

impl Lock {
    /// Creates a witness in this directory.
    ///
    /// Two facts must agree before a record may name it: a mapping is known to keep a lock on this kind of file system,
    /// and a check saw this lock hold. The check alone can be deceived: a process that forks while the descriptor is
    /// open gives a copy to the child, and the lock holds until the child calls exec. On an overlay, 1 % of the
    /// witnesses of a program that forks all the time looked held, and were free a moment later.
    pub(super) fn create_in(files: &Arc<dyn WitnessFiles>, random: u128) -> io::Result<Self> {
        if files.keeps_locks() { Self::make_in(files, random) } else { Err(Errno::OPNOTSUPP.into()) }
    }

    /// Creates a witness, and returns it only if a check saw its lock hold.
    pub(super) fn make_in(files: &Arc<dyn WitnessFiles>, random: u128) -> io::Result<Self> {
        let locked = Arc::clone(files).make(random)?;
        if does(Duty::VerifyLocks)
            && let Err(error) = verify(&**files, &*locked, Nonce::from_bits(random))
        {
            let _ = locked.remove_by_name();
            return Err(error);
        }
        Ok(Self(locked))
    }

    /// The witness as the record names it.
    pub(crate) fn named(&self) -> &Arc<Witness> {
        self.0.named()
    }

    /// Lists a nonce: see [`LockedFile::list`].
    pub(crate) fn list(&self, nonce: Nonce) -> io::Result<()> {
        self.0.list(nonce)
    }

    /// True if it is in memory alone: see [`LockedFile::is_in_memory`].
    pub(crate) fn is_in_memory(&self) -> bool {
        self.0.is_in_memory()
    }

    /// A separate lock for another process that acts under the term, in a descriptor that can be inherited.
    pub(crate) fn share(&self, part: WitnessPart) -> io::Result<OwnedFd> {
        self.0.share(part)
    }

    /// Removes the file: no record names it any more.
    pub(crate) fn remove(&self) -> io::Result<()> {
        self.0.remove()
    }
}

/// Checks a new witness as a contender does: opened by its name it must be the same file, locked, and its ring must list
/// the nonce. No record carries this nonce.
fn verify(files: &dyn WitnessFiles, locked: &dyn LockedFile, nonce: Nonce) -> io::Result<()> {
    locked.list_for_trial(nonce)?;
    let seen = files.try_look(locked.named(), nonce)?;
    let holds = seen.same_file && seen.guards_locked && seen.lists_nonce;
    if holds { Ok(()) } else { Err(Errno::OPNOTSUPP.into()) }
}
