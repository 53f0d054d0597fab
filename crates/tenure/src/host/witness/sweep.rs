//! What dead holders left behind, and nobody removed: mostly their successors do.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::ofd;

/// Removes a witness that nobody has locked and that was not written for a day before `wall_seconds`. Every error means
/// that it stays.
///
/// The day goes by wall clocks, which jump. Whatever they say, nobody acts under what is unlocked: whoever would have
/// looked at it waits out the ttl instead.
pub(crate) fn remove_if_dead(folder: impl AsFd, name: &str, wall_seconds: i64) -> bool {
    let folder = folder.as_fd();
    let Ok(there) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    let is_file = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile;
    if !is_file || there.st_mtime > wall_seconds.saturating_sub(OLD_SECONDS) {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else { return false };
    let same = rustix::fs::fstat(&file).is_ok_and(|opened| opened.st_ino == there.st_ino);
    let unlocked = || ofd::is_locked(&file).is_ok_and(|locked| !locked);
    same && unlocked() && rustix::fs::unlinkat(folder, name, AtFlags::empty()).is_ok()
}

const OLD_SECONDS: i64 = 24 * 60 * 60;
