//! Locks of an open file description: the kernel gives them back when the last copy of the description is gone.
//!
//! Not `flock`, which cannot be asked about without being taken: a hundred contenders who probe by taking find each
//! other, and one that is stopped meanwhile hides a death. Not the older locks of `fcntl`, which are given back when
//! *any* descriptor of the file is closed by anybody in the process.

use std::io;
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::WitnessPart;

/// Takes a lock of one part of the file, beside the locks that others have of it.
pub(super) fn share(file: impl AsFd, part: WitnessPart) -> io::Result<()> {
    let range = match part {
        WitnessPart::Guards => GUARDS,
        WitnessPart::Tree => TREE,
        WitnessPart::Both => BOTH,
    };
    fcntl(file, FcntlArg::F_OFD_SETLK(&range.lock(libc::F_RDLCK)))?;
    Ok(())
}

/// True if any byte of the file is locked. Asks, and never takes.
pub(super) fn is_locked(file: impl AsFd) -> io::Result<bool> {
    WHOLE.is_locked(file)
}

/// The parts of the file that are locked.
///
/// The whole file is asked about in one call. Two calls, one for each part, could both find nothing while a lock moves
/// from one part to the other between them.
pub(super) fn locks(file: impl AsFd) -> io::Result<Locks> {
    let file = file.as_fd();
    if !is_locked(file)? {
        return Ok(Locks::default());
    }
    let found = Locks { guards: GUARDS.is_locked(file)?, tree: TREE.is_locked(file)? };
    // Neither: the last lock went meanwhile, or it is of a byte that this version does not know. That one counts.
    if found == Locks::default() { Ok(Locks { guards: is_locked(file)?, tree: false }) } else { Ok(found) }
}

/// Parts of a witness that are locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Locks {
    pub(super) guards: bool,
    pub(super) tree: bool,
}

/// A range of bytes. The locks are advisory: what is written in these bytes does not matter.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: i64,
    /// Zero means up to the end of any file.
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
            // Must be zero for these locks: they belong to no process.
            l_pid: 0,
        }
    }
}

/// One byte for each part, side by side, so that one call takes both. They are bytes that every witness has: some file
/// systems refuse locks beyond the end.
const GUARDS: Range = Range { start: 0, length: 1 };
const TREE: Range = Range { start: 1, length: 1 };
const BOTH: Range = Range { start: 0, length: 2 };
const WHOLE: Range = Range { start: 0, length: 0 };
