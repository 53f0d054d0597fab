use std::os::fd::OwnedFd;
use std::time::Duration;

use bytes::Bytes;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use tenure_store::{Key, Reason, StoreError};

use super::damaged::Damaged;
use super::directory::Directory;
use super::envelope::Envelope;
use super::lock::KeyLock;
use super::{File, name};
use crate::host::disk::io_error::IoError;

/// The entry of a key. No lock is needed: an entry is never written to, only replaced as a whole file.
pub(super) fn entry(directory: &Directory, key: &Key) -> Result<Option<Envelope>, StoreError> {
    let name = name::entry(key);
    let Some(bytes) = bytes(directory, &name)? else {
        // In a deleted directory, every entry is missing.
        directory.is_in_place()?;
        return Ok(None);
    };
    let envelope =
        Envelope::decode_of(key, bytes).map_err(|flaw| Damaged::entry(&directory.path_of(&name), flaw))?;
    Ok(Some(envelope))
}

/// The entry of a key, on a file system that may hide a name for a moment while it is replaced.
///
/// If a reader has the file open, libfuse first renames it away, and then renames the new one. In between, the name is
/// missing. While this process has the lock of the key, no other process replaces the
/// entry, so an entry that is missing then does not exist.
pub(super) fn entry_or_none_for_sure(
    directory: &Directory,
    key: &Key,
) -> Result<Option<Envelope>, StoreError> {
    for _ in 0..TRIES {
        if let Some(there) = entry(directory, key)? {
            return Ok(Some(there));
        }
        // The lock file is created before the first entry, and stays.
        if matches!(directory.status_of(&name::lock(key)), Err(Errno::NOENT)) {
            return Ok(None);
        }
        if let Some(_lock) = KeyLock::try_take(directory, key, None)? {
            return entry(directory, key);
        }
        super::pause(PAUSE);
    }
    let sentence = format!("{} is being replaced: try again", directory.path_of(&name::entry(key)).display());
    Err(StoreError::refused(Reason::Unreachable, sentence))
}

/// The complete content of a file, if it exists.
pub(super) fn bytes(directory: &Directory, name: &str) -> Result<Option<Bytes>, StoreError> {
    let file = match directory.open(name, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => {
            return Err(Damaged::because(
                &directory.path_of(name),
                "it is a symbolic link, and links are not followed",
            ));
        }
        Err(errno) => {
            return Err(IoError::reading("cannot open", &directory.path_of(name), errno).refused());
        }
    };
    let io_error = |errno| IoError::new("cannot read", &directory.path_of(name), errno).refused();
    let status = rustix::fs::fstat(&file).map_err(io_error)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(Damaged::because(&directory.path_of(name), "it is not a file"));
    }
    let size = usize::try_from(status.st_size).unwrap_or(usize::MAX);
    if size > BYTES_MAX {
        return Err(Damaged::because(
            &directory.path_of(name),
            format!("it has {size} bytes, more than any entry"),
        ));
    }
    read_all(&file, size).map(Some).map_err(io_error)
}

fn read_all(file: &OwnedFd, size: usize) -> rustix::io::Result<Bytes> {
    // One byte more than the expected size. As long as it stays free, the end was reached, and another call would only
    // confirm that.
    let mut bytes = vec![0; size + 1];
    let mut filled = 0;
    while filled < size.max(1) {
        match rustix::io::read(file, &mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(filled);
    Ok(bytes.into())
}

/// Together a fifth of a second. Other processes have the lock for some microseconds, unless they are stopped.
const TRIES: usize = 200;
const PAUSE: Duration = Duration::from_millis(1);

const BYTES_MAX: usize = File::VALUE_MAX + Envelope::HEAD_MAX;
