use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::super::FenceError;
use super::place::{Place, id};
use super::step::{Step, pass};
use crate::Reason;

/// A file beside the fenced one that is not finished. It is removed on drop, unless it was renamed.
///
/// Its name is one of a few. It is locked as long as its writer lives, so that the file of a dead writer is used again:
/// crashes leave no more than these few files behind, and no directory must be searched for them.
#[derive(Debug)]
pub(super) struct Unfinished<'p> {
    place: &'p Place,
    name: String,
    file: OwnedFd,
    renamed: bool,
}

impl<'p> Unfinished<'p> {
    /// An empty file for this user alone.
    pub(super) fn create(place: &'p Place) -> Result<Self, FenceError> {
        for number in 0..FILES_MAX {
            let name = place.temporary_name(number);
            let failed = |errno| place.io_error("cannot create", &name, errno);
            let directory = place.directory();
            let file = match directory.open(&name, OFlags::RDWR) {
                Err(Errno::NOENT) => match directory.create(&name, OFlags::RDWR) {
                    Err(Errno::EXIST) => continue,
                    created => created.map_err(failed)?,
                },
                // The file of another user, or what is not a file.
                Err(Errno::ACCESS | Errno::LOOP | Errno::NXIO | Errno::ISDIR) => continue,
                opened => opened.map_err(failed)?,
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => continue,
                Err(errno) => return Err(failed(errno)),
            }
            // Its writer may have renamed it since: then the locked file is the fenced one, and not to be emptied.
            let opened = rustix::fs::fstat(&file).map_err(failed)?;
            let is_ours = opened.st_nlink == 1
                && directory.may_own(&opened)
                && directory.status_of(&name).is_ok_and(|there| id(&there) == id(&opened));
            if is_ours {
                let temporary = Self { place, name, file, renamed: false };
                rustix::fs::ftruncate(&temporary.file, 0)
                    .and_then(|()| rustix::fs::fchmod(&temporary.file, Mode::RUSR | Mode::WUSR))
                    .map_err(|errno| temporary.io_error("cannot empty", errno))?;
                return Ok(temporary);
            }
            let _ = rustix::fs::flock(&file, FlockOperation::Unlock);
        }
        let sentence = format!(
            "{FILES_MAX} writers prepare it at the same time, or their files {} cannot be used: remove those that no \
             process has open",
            place.path_of(&place.temporary_name(0)).with_extension("*").display()
        );
        Err(place.refused(Reason::Unreachable, sentence))
    }

    /// Fails if another program has removed or replaced it: its name would then lead to another file.
    pub(super) fn must_be_there(&self) -> Result<(), FenceError> {
        let own = rustix::fs::fstat(&self.file).map_err(|errno| self.io_error("cannot inspect", errno))?;
        if self.place.directory().status_of(&self.name).is_ok_and(|there| id(&there) == id(&own)) {
            return Ok(());
        }
        let sentence = format!(
            "another program removed or replaced its unfinished content {}: write again",
            self.place.path_of(&self.name).display()
        );
        Err(self.place.refused(Reason::Unreachable, sentence))
    }

    /// Writes all that the source has. Nothing but a small buffer of it is in memory at a time.
    pub(super) fn fill(&self, source: &mut dyn Read, mut seen: impl FnMut(&[u8])) -> Result<(), FenceError> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    let sentence = format!("its new content cannot be read: {error}");
                    return Err(self.place.refused(Reason::Invalid, sentence));
                }
            };
            seen(&buffer[..read]);
            self.write(&buffer[..read])?;
        }
    }

    /// Writes these bytes at the end.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), FenceError> {
        let written = pass(Step::WriteBeside).and_then(|()| write_all(&self.file, bytes));
        written.map_err(|errno| self.io_error("cannot write", errno))
    }

    /// Gives it the owner and the permissions of this file, or those of a new file. `true` if they were others.
    pub(super) fn be_like(&self, data: Option<&Stat>, least: u32) -> Result<bool, FenceError> {
        let own = rustix::fs::fstat(&self.file).map_err(|errno| self.io_error("cannot inspect", errno))?;
        let (user, group, mode) = match data {
            Some(data) => (data.st_uid, data.st_gid, data.st_mode & PERMISSIONS | least),
            None => (own.st_uid, own.st_gid, 0o666 & !umask() | least),
        };
        let mut changed = false;
        if (own.st_uid, own.st_gid) != (user, group) {
            rustix::fs::fchown(&self.file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).map_err(
                |errno| {
                    let sentence = format!(
                        "it belongs to user {user} and group {group}, which this process cannot give to its new \
                         content: {errno}. Run as its owner"
                    );
                    self.place.refused(Reason::Denied, sentence)
                },
            )?;
            changed = true;
        }
        // A change of the owner clears the bits that run a program as its owner.
        if changed || own.st_mode & PERMISSIONS != mode {
            rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))
                .map_err(|errno| self.io_error("cannot set the permissions of", errno))?;
            changed = true;
        }
        Ok(changed)
    }

    pub(super) fn sync(&self) -> Result<(), FenceError> {
        let synced = pass(Step::SyncBeside).and_then(|()| rustix::fs::fsync(&self.file));
        synced.map_err(|errno| self.io_error("cannot sync", errno))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Marks the file as renamed: it is not removed on drop.
    pub(super) fn renamed(mut self) {
        self.renamed = true;
    }

    fn io_error(&self, what: &'static str, errno: Errno) -> FenceError {
        self.place.io_error(what, &self.name, errno)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // If the file remains, the next writer uses it.
            let _ = self.place.directory().unlink(&self.name);
        }
        // Explicit: a process that was forked in the meantime has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// Writes all bytes.
fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// The permissions that this process takes away from new files. `umask` itself cannot be read without changing it for
/// all threads, so the kernel's report is read. Without it, others get nothing.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}

/// Number of writers that can prepare at the same time.
const FILES_MAX: u32 = 64;

/// Bytes that are in memory at a time.
const BUFFER: usize = 256 << 10;

const PERMISSIONS: u32 = 0o7777;
