use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::ofd;

/// Part of a witness, for a process that acts under the lease to lock.
///
/// The parts show what is alive: the processes that guard the work, or the work itself. A record whose witness has any
/// part locked is never replaced before its ttl has run out. Exhaustive: there are two parts, and both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WitnessPart {
    /// For a process that keeps the lease, or stops the work in time. The lease itself locks this part. After the ttl
    /// it has no meaning: a stopped process is replaced after its ttl.
    Guards,
    /// For the work, such as a child process. A contender that [heeds the tree](crate::Request::heed_tree) waits as
    /// long as this part is locked, even after the ttl.
    Tree,
    /// For a process that guards the work and ends only after it.
    Both,
}

impl WitnessPart {
    /// Locks this part of a witness that another process has passed on, in a separate open file description of this
    /// process.
    ///
    /// A lock belongs to all copies of a description, including the one in the process that passed it on. A guard that
    /// must not lock a part itself, even while it passes that part on, passes on one of [`Guards`](Self::Guards)
    /// instead, and the receiving process locks what it needs. Needs `/proc`.
    pub fn lock(self, witness: impl AsFd) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", witness.as_fd().as_raw_fd());
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())?;
        ofd::share(&file, self)?;
        Ok(file)
    }
}
