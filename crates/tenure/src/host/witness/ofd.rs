//! Locks of an open file description: the kernel releases them with the last copy of the description.
//!
//! Not `flock`, which cannot be queried without being taken: contenders that probe by taking it would find each other,
//! and a stopped one would hide a death. Not the older locks of `fcntl`, which are released when *any* descriptor of
//! the file is closed in the process.

use std::io;
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::WitnessPart;

/// Takes a shared lock on one part of the file.
pub(super) fn share(file: impl AsFd, part: WitnessPart) -> io::Result<()> {
    let range = match part {
        WitnessPart::Guards => GUARDS,
        WitnessPart::Tree => TREE,
        WitnessPart::Both => BOTH,
    };
    fcntl(file, FcntlArg::F_OFD_SETLK(&range.lock(libc::F_RDLCK)))?;
    Ok(())
}

/// True if any byte of the file is locked. Queries, and never takes.
pub(super) fn is_locked(file: impl AsFd) -> io::Result<bool> {
    WHOLE.is_locked(file)
}

/// The locked parts of the file.
///
/// One call queries the complete file. Two calls, one for each part, could both find nothing while a lock moves from
/// one part to the other.
pub(super) fn locks(file: impl AsFd) -> io::Result<Locks> {
    let file = file.as_fd();
    if !is_locked(file)? {
        return Ok(Locks::default());
    }
    let found = Locks { guards: GUARDS.is_locked(file)?, tree: TREE.is_locked(file)? };
    // Neither: the last lock was released in between, or it is on a byte that this version does not know. That one
    // counts.
    if found == Locks::default() { Ok(Locks { guards: is_locked(file)?, tree: false }) } else { Ok(found) }
}

/// Locked parts of a witness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Locks {
    pub(super) guards: bool,
    pub(super) tree: bool,
}

/// A range of bytes. The locks are advisory: the content of these bytes does not matter.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: i64,
    /// Zero means up to the end of the file.
    length: i64,
}

impl Range {
    fn is_locked(self, file: impl AsFd) -> io::Result<bool> {
        let mut asked = self.lock(libc::F_WRLCK);
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked))?;
        Ok(asked.l_type != libc::F_UNLCK as libc::c_short)
    }

    fn lock(self, kind: libc::c_int) -> libc::flock {
        libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: self.start,
            l_len: self.length,
            // Must be zero for these locks, which belong to no process.
            l_pid: 0,
        }
    }
}

/// One byte for each part, side by side, so that one call takes both. Every witness has these bytes: some file systems
/// refuse locks beyond the end.
const GUARDS: Range = Range { start: 0, length: 1 };
const TREE: Range = Range { start: 1, length: 1 };
const BOTH: Range = Range { start: 0, length: 2 };
const WHOLE: Range = Range { start: 0, length: 0 };
