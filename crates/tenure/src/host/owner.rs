use rustix::fs::Stat;
use rustix::process::{Gid, Uid};

/// The user who gets new files in a directory: its owner, if this process is root and the directory belongs to another
/// user, who could not use the files otherwise.
pub(crate) fn given_to(directory: &Stat) -> Option<(Uid, Gid)> {
    let gives = rustix::process::geteuid().is_root() && directory.st_uid != 0;
    gives.then(|| (Uid::from_raw(directory.st_uid), Gid::from_raw(directory.st_gid)))
}
