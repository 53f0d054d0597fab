use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use super::directory::Directory;
use super::name::{self, FileName};
use crate::host::witness;

/// A file that is on the disk and not yet an entry. It is removed on drop, unless it was renamed.
///
/// It is locked as long as its writer lives. That distinguishes it from a file that a dead writer left behind.
#[derive(Debug)]
pub(super) struct Temporary<F: std::ops::Deref<Target = Directory>> {
    directory: F,
    name: String,
    renamed: bool,
    file: OwnedFd,
}

impl<F: std::ops::Deref<Target = Directory>> Temporary<F> {
    /// Writes the bytes and waits until they are on the disk. If a rename reaches the disk before the content, an empty
    /// file remains after a power cut.
    pub(super) fn write(directory: F, bytes: &[u8]) -> rustix::io::Result<Self> {
        let (name, file) = create(&directory)?;
        let temporary = Self { directory, name, renamed: false, file };
        let mut left = bytes;
        while !left.is_empty() {
            match rustix::io::write(&temporary.file, left) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => left = &left[written..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        rustix::fs::fsync(&temporary.file)?;
        Ok(temporary)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Marks the file as renamed: it is not removed on drop.
    pub(super) fn renamed(mut self) {
        self.renamed = true;
    }
}

impl<F: std::ops::Deref<Target = Directory>> Drop for Temporary<F> {
    fn drop(&mut self) {
        if !self.renamed {
            // If the file remains, any process cleans it up later.
            let _ = self.directory.unlink(&self.name);
        }
        // Explicit: a process that was forked in the meantime has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

fn create(directory: &Directory) -> rustix::io::Result<(String, OwnedFd)> {
    for _ in 0..TRIES {
        let name = name::temporary(super::random());
        let file = directory.create(&name, OFlags::WRONLY)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok((name, file)),
            // This process was paused for a minute between the two calls, and another one is cleaning up after it.
            Err(Errno::WOULDBLOCK) => {}
            Err(errno) => {
                let _ = directory.unlink(&name);
                return Err(errno);
            }
        }
    }
    Err(Errno::AGAIN)
}

/// Replaces the file of this name with one that has this content.
pub(super) fn replace(directory: &Directory, bytes: &[u8], name: &str) -> rustix::io::Result<()> {
    let temporary = Temporary::write(directory, bytes)?;
    directory.rename(temporary.name(), name)?;
    temporary.renamed();
    Ok(())
}

/// Unlinks every temporary file but this one, so that no pending rename of another process has an effect.
pub(super) fn unlink_all_but(directory: &Directory, own: Option<&str>) -> rustix::io::Result<()> {
    let mut entries = rustix::fs::Dir::read_from(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let bytes = entry.file_name().to_bytes();
        let Ok(name) = str::from_utf8(bytes) else { continue };
        if name::parse(bytes) == FileName::Temporary && own != Some(name) {
            match directory.unlink(name) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

/// Removes files that dead writers and dead holders left behind, and returns their number.
///
/// Files of writes are removed only if they are not locked and a minute old: between the two calls that create and lock
/// a file, its writer is alive without a lock. If the writer is paused at that point for so long, its rename fails and
/// its write is refused without effect.
pub(super) fn clean(directory: &Directory, wall_seconds: i64) -> rustix::io::Result<usize> {
    let mut removed = 0;
    let mut entries = rustix::fs::Dir::read_from(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        removed += usize::from(match name::parse(name.as_bytes()) {
            FileName::Temporary => remove_if_dead(directory, name, wall_seconds - OLD_SECONDS),
            FileName::Witness => witness::remove_if_dead(directory, name, wall_seconds),
            FileName::Entry(_) | FileName::Lock(_) | FileName::Mark | FileName::Tried | FileName::Foreign => {
                false
            }
        });
    }
    Ok(removed)
}

/// Removes the file if its writer is dead. After any error the file stays.
fn remove_if_dead(directory: &Directory, name: &str, before: i64) -> bool {
    let Ok(there) = directory.status_of(name) else { return false };
    if there.st_mtime > before {
        return false;
    }
    let Ok(file) = directory.open(name, OFlags::RDONLY) else { return false };
    let same = rustix::fs::fstat(&file).is_ok_and(|opened| opened.st_ino == there.st_ino);
    same && is_free(&file) && directory.unlink(name).is_ok()
}

fn is_free(file: &OwnedFd) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// A temporary file that can move between threads.
pub(super) type OwnedTemporary = Temporary<Arc<Directory>>;

const TRIES: usize = 3;
const OLD_SECONDS: i64 = 60;
