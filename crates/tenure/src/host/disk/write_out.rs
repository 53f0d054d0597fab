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

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use tenure_testkit::tests_in;

    use super::*;

    #[test]
    fn a_file_is_written_out_and_a_device_is_refused() {
        let path = tests_in(std::env::temp_dir()).join(format!("tenure-write-out-{}", std::process::id()));
        fs::write(&path, "mark").unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(write_out(&file), Ok(()));
        assert_eq!(fs::read(&path).unwrap(), b"mark");
        fs::remove_file(&path).unwrap();
        // Miri takes every descriptor for a file.
        if !cfg!(miri) {
            assert_eq!(write_out(File::open("/dev/null").unwrap()), Err(Errno::SPIPE));
        }
    }
}
