use std::os::fd::OwnedFd;
use std::time::Duration;

use bytes::Bytes;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use tenure_store::{Key, Reason, StoreError};

use super::damaged::Damaged;
use super::envelope::Envelope;
use super::folder::Folder;
use super::lock::KeyLock;
use super::{File, name};
use crate::host::disk::io_error::IoError;

/// What a key holds. No lock is needed: an entry is never written to, only replaced as a whole.
pub(super) fn entry(folder: &Folder, key: &Key) -> Result<Option<Envelope>, StoreError> {
    let name = name::entry(key);
    let Some(bytes) = bytes(folder, &name)? else {
        // In a folder that has been deleted everything is missing.
        folder.is_in_place()?;
        return Ok(None);
    };
    let envelope =
        Envelope::decode_of(key, bytes).map_err(|flaw| Damaged::entry(&folder.path_of(&name), flaw))?;
    Ok(Some(envelope))
}

/// The entry of a key, on a file system that may hide a name for a moment while it is replaced.
///
/// libfuse renames a file that a reader has open away first, and puts the new one in its place after that. In between the
/// name is missing. Nothing is replaced while the key's lock is held, so what is missing under the lock is missing.
pub(super) fn entry_or_none_for_sure(folder: &Folder, key: &Key) -> Result<Option<Envelope>, StoreError> {
    for _ in 0..TRIES {
        if let Some(there) = entry(folder, key)? {
            return Ok(Some(there));
        }
        // It is made before the first entry, and stays.
        if matches!(folder.status_of(&name::lock(key)), Err(Errno::NOENT)) {
            return Ok(None);
        }
        if let Some(_lock) = KeyLock::try_take(folder, key, None)? {
            return entry(folder, key);
        }
        super::pause(PAUSE);
    }
    let sentence = format!("{} is being replaced: ask again", folder.path_of(&name::entry(key)).display());
    Err(StoreError::refused(Reason::Unreachable, sentence))
}

/// The whole file, if there is one.
pub(super) fn bytes(folder: &Folder, name: &str) -> Result<Option<Bytes>, StoreError> {
    let file = match folder.open(name, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => {
            return Err(Damaged::because(
                &folder.path_of(name),
                "it is a symbolic link, and links are not followed",
            ));
        }
        Err(errno) => return Err(IoError::new("cannot open", &folder.path_of(name), errno).refused()),
    };
    let io_error = |errno| IoError::new("cannot read", &folder.path_of(name), errno).refused();
    let status = rustix::fs::fstat(&file).map_err(io_error)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(Damaged::because(&folder.path_of(name), "it is not a file"));
    }
    let size = usize::try_from(status.st_size).unwrap_or(usize::MAX);
    if size > BYTES_MAX {
        return Err(Damaged::because(
            &folder.path_of(name),
            format!("it has {size} bytes, more than any entry"),
        ));
    }
    read_all(&file, size).map(Some).map_err(io_error)
}

fn read_all(file: &OwnedFd, size: usize) -> rustix::io::Result<Bytes> {
    // Room for one more than there should be. As long as that stays free the end was seen, and another call would only say
    // so again.
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

/// Together a fifth of a second. Others have the lock for some microseconds, unless they are stopped.
const TRIES: usize = 200;
const PAUSE: Duration = Duration::from_millis(1);

const BYTES_MAX: usize = File::VALUE_MAX + Envelope::HEAD_MAX;
