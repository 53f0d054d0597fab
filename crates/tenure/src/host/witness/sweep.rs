//! Removal of the witnesses of dead holders that no successor has removed.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::ofd;

/// Removes an unlocked witness that was not written for a day before `wall_seconds`. After an error it stays.
///
/// The day is measured by wall clocks, which may jump. No process acts under an unlocked witness in any case: a
/// contender that would have inspected it waits for the ttl instead.
pub(crate) fn remove_if_dead(directory: impl AsFd, name: &str, wall_seconds: i64) -> bool {
    let directory = directory.as_fd();
    let Ok(there) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    let is_file = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile;
    if !is_file || there.st_mtime > wall_seconds.saturating_sub(OLD_SECONDS) {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) else { return false };
    let same = rustix::fs::fstat(&file).is_ok_and(|opened| opened.st_ino == there.st_ino);
    let unlocked = || ofd::is_locked(&file).is_ok_and(|locked| !locked);
    same && unlocked() && rustix::fs::unlinkat(directory, name, AtFlags::empty()).is_ok()
}

const OLD_SECONDS: i64 = 24 * 60 * 60;
