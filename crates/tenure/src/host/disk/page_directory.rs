use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Dir, FileType, FlockOperation, OFlags, Stat};
use rustix::io::Errno;

use super::directory::Directory;
use super::page_files::PageFiles;
use super::per_boot_files::{BYTES_MAX, NEW, PAGE};
use super::private_dir::{PrivateDir, io_sentence};

/// A private directory of this user on the local disk.
#[derive(Debug)]
pub(super) struct PageDirectory(Directory);

impl PageDirectory {
    /// `None` if the directory does not exist.
    pub(super) fn open_if_there(path: &Path) -> Result<Option<Self>, String> {
        Ok(PrivateDir::open_if_there(path)?.map(Self::on))
    }

    /// Creates the directory if necessary, for this user alone.
    pub(super) fn open_or_make(path: &Path) -> Result<Self, String> {
        PrivateDir::open_or_make(path).map(Self::on)
    }

    fn on(own: PrivateDir) -> Self {
        Self(Directory::new(own.path, own.descriptor, &own.status))
    }

    /// Not synced: a power cut changes the domain.
    fn write_new(&self, name: &str, bytes: &[u8]) -> rustix::io::Result<()> {
        let file = self.0.create(name, OFlags::WRONLY)?;
        let mut left = bytes;
        while !left.is_empty() {
            match rustix::io::write(&file, left) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => left = &left[written..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// The lock of all writers; `None` if it stays taken for too long.
    #[expect(
        clippy::disallowed_methods,
        reason = "a worker waits for others who write for a moment, and nothing is counted by it"
    )]
    fn lock(&self) -> Result<Option<Locked>, String> {
        let io_error = |what| move |errno| io_sentence(what, &self.0.path_of(LOCK), errno);
        let file = self.0.open_or_create(LOCK).map_err(io_error("cannot open"))?;
        let status = rustix::fs::fstat(&file).map_err(io_error("cannot inspect"))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(format!("{} is not a file. Remove it", self.0.path_of(LOCK).display()));
        }
        for _ in 0..LOCK_TRIES {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Locked(file))),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
                Err(errno) => return Err(io_error("cannot lock")(errno)),
            }
        }
        Ok(None)
    }
}

impl PageFiles for PageDirectory {
    /// `None` also if another user could have written it.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let file = self.0.open(name, OFlags::RDONLY).ok()?;
        let status = rustix::fs::fstat(&file).ok()?;
        if !is_ours(&status) {
            return None;
        }
        let mut bytes = Vec::with_capacity(status.st_size as usize);
        loop {
            let mut part = [0; 16 * 1024];
            match rustix::io::read(&file, &mut part) {
                Ok(0) => return Some(bytes),
                Ok(read) => bytes.extend_from_slice(&part[..read]),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
            if bytes.len() > BYTES_MAX {
                return None;
            }
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let new = format!("{}{NEW}", name.strip_suffix(PAGE).unwrap_or(name));
        // The owner of the lock is the only writer: this file is the remains of a dead one.
        self.remove(&new)?;
        let written = self.write_new(&new, bytes);
        let renamed = written.and_then(|()| self.0.rename(&new, name));
        renamed.map_err(|errno| {
            let _ = self.0.unlink(&new);
            io_sentence("cannot write", &self.0.path_of(name), errno)
        })
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        match self.0.unlink(name) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(io_sentence("cannot remove", &self.0.path_of(name), errno)),
        }
    }

    fn names(&self) -> Result<Vec<String>, String> {
        let listed = || {
            let mut found = Vec::new();
            let mut names = Dir::read_from(&self.0)?;
            while let Some(entry) = names.read() {
                let entry = entry?;
                let Ok(name) = entry.file_name().to_str() else { continue };
                if entry.file_type() != FileType::Directory {
                    found.push((self.0.status_of(name)?.st_mtime, name.to_owned()));
                }
            }
            found.sort_unstable();
            Ok(found.into_iter().map(|(_, name)| name).collect())
        };
        listed().map_err(|errno| io_sentence("cannot list", self.0.path(), errno))
    }

    fn locked(&self, act: &mut dyn FnMut() -> Result<(), String>) -> Result<bool, String> {
        let Some(_lock) = self.lock()? else { return Ok(false) };
        act().map(|()| true)
    }
}

/// Unlocks when dropped.
struct Locked(OwnedFd);

impl Drop for Locked {
    fn drop(&mut self) {
        // Explicit, because a process forked in the meantime has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// True if this user wrote the file, and no other user could have.
fn is_ours(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
        && status.st_uid == rustix::process::geteuid().as_raw()
        && status.st_mode & OTHERS_WRITE == 0
        && status.st_nlink == 1
        && usize::try_from(status.st_size).is_ok_and(|size| size <= BYTES_MAX)
}

const LOCK: &str = "lock";

/// Group and other users.
const OTHERS_WRITE: u32 = 0o022;

/// Other writers hold it for less than a millisecond each.
const LOCK_PAUSE: Duration = Duration::from_millis(2);
const LOCK_TRIES: usize = 250;
