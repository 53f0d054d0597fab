//! Removal of the witnesses of dead holders that no successor has removed.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use tenure_core::record::Nonce;

use super::{name, nonce_ring, ofd};

/// Removes an unlocked witness that was not written for a day before `wall_seconds`, or that no lease has used. After an
/// error it stays.
///
/// A process that ends without a shutdown leaves its spare witness behind. The day is measured by wall clocks, which may
/// jump. No process acts under an unlocked witness in any case: a contender that would have inspected it waits for the
/// ttl instead.
pub(crate) fn remove_if_dead(directory: impl AsFd, name: &str, wall_seconds: i64) -> bool {
    let directory = directory.as_fd();
    let Ok(there) = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else { return false };
    let is_file = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile;
    if !is_file {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) else { return false };
    let same = rustix::fs::fstat(&file).is_ok_and(|opened| opened.st_ino == there.st_ino);
    let is_old = there.st_mtime <= wall_seconds.saturating_sub(OLD_SECONDS);
    // Checked last: on some file systems the file has its name before its lock. An unlocked witness that was tried stays so.
    let unlocked = || ofd::is_locked(&file).is_ok_and(|locked| !locked);
    same && (is_old || is_unused(&file, name, there.st_dev))
        && unlocked()
        && rustix::fs::unlinkat(directory, name, AtFlags::empty()).is_ok()
}

/// True if no record has ever named this witness.
fn is_unused(file: impl AsFd, file_name: &str, device: u64) -> bool {
    let Some(random) = name::random_of(file_name) else { return false };
    let mut ring = [0; nonce_ring::BYTES + 1];
    let read = rustix::io::pread(&file, &mut ring[..], 0).unwrap_or(0);
    nonce_ring::is_unused(&ring[..read], file_name, device, Nonce::from_bits(random))
}

const OLD_SECONDS: i64 = 24 * 60 * 60;
