//! Locks of an open file description: the kernel gives them back when the last copy of the description is gone.
//!
//! Not `flock`, which cannot be asked about without being taken: a hundred contenders who probe by taking find each
//! other, and one that is stopped meanwhile hides a death. Not the older locks of `fcntl`, which are given back when
//! *any* descriptor of the file is closed by anybody in the process.

use std::io;
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Takes a lock beside those of others: everybody who acts under a term has one of its own.
pub(super) fn share(file: impl AsFd) -> io::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&whole(libc::F_RDLCK)))?;
    Ok(())
}

/// Whether anybody has a lock. Asks, and never takes.
pub(super) fn is_locked(file: impl AsFd) -> io::Result<bool> {
    let mut asked = whole(libc::F_WRLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked))?;
    Ok(asked.l_type != libc::F_UNLCK as libc::c_short)
}

/// A lock of the whole file, however long it is.
fn whole(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        // Must be zero for these locks: they belong to no process.
        l_pid: 0,
    }
}
