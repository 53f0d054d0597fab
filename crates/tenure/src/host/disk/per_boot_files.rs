use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Dir, FileType, FlockOperation, OFlags, Stat};
use rustix::io::Errno;

use super::folder::Folder;
use super::page::Page;
use super::private_dir::{PrivateDir, io_sentence};
use crate::clock::{Clock, Domain};
use crate::host::checksum::checksum;

/// A folder of this user's own with small files that all its programs read and write: one page for each clock domain, since
/// its entries count on that clock alone. Every error is a sentence for people.
#[derive(Debug)]
pub(crate) struct PerBootFiles<P> {
    folder: Folder,
    page: PhantomData<P>,
}

impl<P: Page> PerBootFiles<P> {
    /// `None` if there is no such folder.
    pub(crate) fn open_if_there(path: &Path) -> Result<Option<Self>, String> {
        Ok(PrivateDir::open_if_there(path)?.map(Self::on))
    }

    /// Makes the folder where there is none, for this user alone.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, String> {
        PrivateDir::open_or_make(path).map(Self::on)
    }

    fn on(own: PrivateDir) -> Self {
        Self { folder: Folder::new(own.path, own.descriptor, &own.status), page: PhantomData }
    }

    /// The page of this domain; an empty one if there is none, or none that can be believed.
    pub(crate) fn read(&self, domain: &Domain, clock: &dyn Clock) -> P {
        let bytes = self.bytes(domain);
        // After the read: an entry from later than this was not written yet.
        bytes.and_then(|bytes| P::decode(&bytes, domain, clock.now())).unwrap_or_default()
    }

    /// Adds entries to the page of this domain, while no other process does. `false` if others wrote for so long that it was
    /// not done.
    pub(crate) fn add(
        &self,
        domain: &Domain,
        clock: &dyn Clock,
        entries: Vec<P::Entry>,
    ) -> Result<bool, String> {
        let Some(_lock) = self.lock()? else { return Ok(false) };
        let is_first = self.folder.status_of(&self.name(domain, PAGE)).is_err();
        let mut page = self.read(domain, clock);
        let now = clock.now();
        entries.into_iter().for_each(|entry| page.add(entry, now));
        self.replace(domain, &page.encode(domain))?;
        if is_first {
            // A courtesy: what stays does no harm.
            let _ = self.clean(Some(domain), OTHERS_MAX);
        }
        Ok(true)
    }

    /// The file of this domain; `None` if there is none, or none that only this user can have written.
    fn bytes(&self, domain: &Domain) -> Option<Vec<u8>> {
        let file = self.folder.open(&self.name(domain, PAGE), OFlags::RDONLY).ok()?;
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

    /// Replaces the file of this domain, whole or not at all.
    fn replace(&self, domain: &Domain, text: &str) -> Result<(), String> {
        let (page, new) = (self.name(domain, PAGE), self.name(domain, NEW));
        // Whoever has the lock is the only one who writes: this is what a dead one left.
        match self.folder.unlink(&new) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(io_sentence("cannot remove", &self.folder.path_of(&new), errno)),
        }
        let written = self.write_new(&new, text.as_bytes());
        let renamed = written.and_then(|()| self.folder.rename(&new, &page));
        renamed.map_err(|errno| {
            let _ = self.folder.unlink(&new);
            io_sentence("cannot write", &self.folder.path_of(&page), errno)
        })
    }

    /// Removes the file of this domain.
    pub(crate) fn remove(&self, domain: &Domain) -> Result<(), String> {
        let page = self.name(domain, PAGE);
        match self.folder.unlink(&page) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(io_sentence("cannot remove", &self.folder.path_of(&page), errno)),
        }
    }

    /// Removes the files of all other domains than this one.
    pub(crate) fn remove_others(&self, domain: Option<&Domain>) -> Result<(), String> {
        self.clean(domain, 0).map_err(|errno| io_sentence("cannot clear", self.folder.path(), errno))
    }

    /// Not synced: after a power cut it means nothing any more.
    fn write_new(&self, name: &str, bytes: &[u8]) -> rustix::io::Result<()> {
        let file = self.folder.create(name, OFlags::WRONLY)?;
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

    /// The lock of all writers; `None` if somebody has it for longer than what is lost without it is worth.
    #[expect(
        clippy::disallowed_methods,
        reason = "a worker waits for others who write for a moment, and nothing is counted by it"
    )]
    fn lock(&self) -> Result<Option<Locked>, String> {
        let io_error = |what| move |errno| io_sentence(what, &self.folder.path_of(LOCK), errno);
        let file = self.folder.open_or_create(LOCK).map_err(io_error("cannot open"))?;
        let status = rustix::fs::fstat(&file).map_err(io_error("cannot look at"))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(format!("{} is not a file. Remove it", self.folder.path_of(LOCK).display()));
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

    /// Removes the files of other boots and time namespaces, but for so many of the latest. Somebody may still be in one of them,
    /// behind another boot id or in another time namespace: who misses its file begins anew.
    fn clean(&self, here: Option<&Domain>, stay: usize) -> rustix::io::Result<()> {
        let here = here.map(|domain| self.name(domain, ""));
        let is_here = |name: &str| here.as_ref().is_some_and(|here| name.starts_with(here));
        let mut others = Vec::new();
        let mut names = Dir::read_from(&self.folder)?;
        while let Some(entry) = names.read() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if self.is_page(name) && !is_here(name) {
                others.push((self.folder.status_of(name)?.st_mtime, name.to_owned()));
            }
        }
        others.sort_unstable();
        let many = others.len().saturating_sub(stay);
        others.iter().take(many).try_for_each(|(_, name)| self.folder.unlink(name))
    }

    /// The file of a domain. Its words may be longer than a name: what they are stands in the file.
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

/// Given back when it is dropped.
struct Locked(OwnedFd);

impl Drop for Locked {
    fn drop(&mut self) {
        // Said aloud: a process that was forked meanwhile has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Whether it was written by this user, and could not be by anybody else.
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

/// Group and others.
const OTHERS_WRITE: u32 = 0o022;

/// Others have it for less than a millisecond each.
const LOCK_PAUSE: Duration = Duration::from_millis(2);
const LOCK_TRIES: usize = 250;

/// How many files of other boots and time namespaces stay.
const OTHERS_MAX: usize = 8;

/// How long a file is at most.
pub(crate) const BYTES_MAX: usize = 256 * 1024;
