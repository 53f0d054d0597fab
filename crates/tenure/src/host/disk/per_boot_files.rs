use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Dir, FileType, FlockOperation, OFlags, Stat};
use rustix::io::Errno;

use super::directory::Directory;
use super::page::Page;
use super::private_dir::{PrivateDir, io_sentence};
use crate::clock::{Clock, Domain};
use crate::host::checksum::checksum;

/// A private directory with small files that all programs of the user read and write: one page for each clock domain,
/// because its entries count on that clock alone. Every error is a sentence.
#[derive(Debug)]
pub(crate) struct PerBootFiles<P> {
    directory: Directory,
    page: PhantomData<P>,
}

impl<P: Page> PerBootFiles<P> {
    /// `None` if the directory does not exist.
    pub(crate) fn open_if_there(path: &Path) -> Result<Option<Self>, String> {
        Ok(PrivateDir::open_if_there(path)?.map(Self::on))
    }

    /// Creates the directory if necessary, for this user alone.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, String> {
        PrivateDir::open_or_make(path).map(Self::on)
    }

    fn on(own: PrivateDir) -> Self {
        Self { directory: Directory::new(own.path, own.descriptor, &own.status), page: PhantomData }
    }

    /// The page of this domain; an empty one if there is none, or none that can be trusted.
    pub(crate) fn read(&self, domain: &Domain, clock: &dyn Clock) -> P {
        let bytes = self.bytes(domain);
        // After the read: a later entry was not written yet.
        bytes.and_then(|bytes| P::decode(&bytes, domain, clock.now())).unwrap_or_default()
    }

    /// Adds entries to the page of this domain, under the lock of all writers. `false` if the lock stayed taken for too
    /// long.
    pub(crate) fn add(
        &self,
        domain: &Domain,
        clock: &dyn Clock,
        entries: Vec<P::Entry>,
    ) -> Result<bool, String> {
        let Some(_lock) = self.lock()? else { return Ok(false) };
        let is_first = self.directory.status_of(&self.name(domain, PAGE)).is_err();
        let mut page = self.read(domain, clock);
        let now = clock.now();
        entries.into_iter().for_each(|entry| page.add(entry, now));
        self.replace(domain, &page.encode(domain))?;
        if is_first {
            // Optional: remaining files do no harm.
            let _ = self.clean(Some(domain), OTHERS_MAX);
        }
        Ok(true)
    }

    /// The file of this domain; `None` if it does not exist, or another user could have written it.
    fn bytes(&self, domain: &Domain) -> Option<Vec<u8>> {
        let file = self.directory.open(&self.name(domain, PAGE), OFlags::RDONLY).ok()?;
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

    /// Replaces the file of this domain atomically.
    fn replace(&self, domain: &Domain, text: &str) -> Result<(), String> {
        let (page, new) = (self.name(domain, PAGE), self.name(domain, NEW));
        // The owner of the lock is the only writer: this file is the remains of a dead one.
        match self.directory.unlink(&new) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(io_sentence("cannot remove", &self.directory.path_of(&new), errno)),
        }
        let written = self.write_new(&new, text.as_bytes());
        let renamed = written.and_then(|()| self.directory.rename(&new, &page));
        renamed.map_err(|errno| {
            let _ = self.directory.unlink(&new);
            io_sentence("cannot write", &self.directory.path_of(&page), errno)
        })
    }

    /// Removes the file of this domain.
    pub(crate) fn remove(&self, domain: &Domain) -> Result<(), String> {
        let page = self.name(domain, PAGE);
        match self.directory.unlink(&page) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(io_sentence("cannot remove", &self.directory.path_of(&page), errno)),
        }
    }

    /// Removes the files of all other domains.
    pub(crate) fn remove_others(&self, domain: Option<&Domain>) -> Result<(), String> {
        self.clean(domain, 0).map_err(|errno| io_sentence("cannot clear", self.directory.path(), errno))
    }

    /// Not synced: a power cut changes the domain.
    fn write_new(&self, name: &str, bytes: &[u8]) -> rustix::io::Result<()> {
        let file = self.directory.create(name, OFlags::WRONLY)?;
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
        let io_error = |what| move |errno| io_sentence(what, &self.directory.path_of(LOCK), errno);
        let file = self.directory.open_or_create(LOCK).map_err(io_error("cannot open"))?;
        let status = rustix::fs::fstat(&file).map_err(io_error("cannot inspect"))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(format!("{} is not a file. Remove it", self.directory.path_of(LOCK).display()));
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

    /// Removes the files of other domains, except the latest ones. A process in another time namespace may still use
    /// one; without its file it starts over.
    fn clean(&self, here: Option<&Domain>, stay: usize) -> rustix::io::Result<()> {
        let here = here.map(|domain| self.name(domain, ""));
        let is_here = |name: &str| here.as_ref().is_some_and(|here| name.starts_with(here));
        let mut others = Vec::new();
        let mut names = Dir::read_from(&self.directory)?;
        while let Some(entry) = names.read() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if self.is_page(name) && !is_here(name) {
                others.push((self.directory.status_of(name)?.st_mtime, name.to_owned()));
            }
        }
        others.sort_unstable();
        let many = others.len().saturating_sub(stay);
        others.iter().take(many).try_for_each(|(_, name)| self.directory.unlink(name))
    }

    /// The file name of a domain, by checksum, because a domain may be too long for a name. The file contains the
    /// domain.
    fn name(&self, domain: &Domain, end: &str) -> String {
        format!("{}{:016x}{end}", P::PREFIX, checksum(&[domain.to_string().as_bytes()]))
    }

    fn is_page(&self, name: &str) -> bool {
        let rest = name.strip_prefix(P::PREFIX);
        let digits = rest.and_then(|name| name.strip_suffix(PAGE).or(name.strip_suffix(NEW)));
        digits
            .is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
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

const PAGE: &str = ".jsonl";
const NEW: &str = ".new";
const LOCK: &str = "lock";

/// Group and other users.
const OTHERS_WRITE: u32 = 0o022;

/// Other writers hold it for less than a millisecond each.
const LOCK_PAUSE: Duration = Duration::from_millis(2);
const LOCK_TRIES: usize = 250;

/// Number of files of other domains to keep.
const OTHERS_MAX: usize = 8;

/// Maximum length of a file.
pub(crate) const BYTES_MAX: usize = 256 * 1024;
