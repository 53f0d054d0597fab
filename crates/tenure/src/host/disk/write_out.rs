//! Writes to the disk without a flush of its cache.
#![expect(unsafe_code, reason = "no safe crate has this call of the kernel")]

use std::os::fd::{AsFd, AsRawFd};

use nix::libc;
use rustix::io::Errno;

/// Sends the dirty pages of a file to the disk, and waits until the disk has them in its cache.
///
/// Unlike `fdatasync`, this flushes no cache and writes no metadata. So it is for bytes that replace others in place, before
/// a write to another file that is synced afterwards: where the kernel flushes the cache before it writes the metadata of
/// that sync, the first bytes are durable before the metadata is.
pub(crate) fn write_out(file: impl AsFd) -> Result<(), Errno> {
    let flags =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: a call on a borrowed descriptor, which reads and writes no memory of this process.
    match unsafe { libc::sync_file_range(file.as_fd().as_raw_fd(), 0, 0, flags) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
