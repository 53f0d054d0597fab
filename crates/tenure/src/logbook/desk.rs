use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Dir, FileType, FlockOperation, OFlags, Stat};
use rustix::io::Errno;

use super::entry::Entry;
use super::page::{BYTES_MAX, Page};
use crate::checksum::checksum;
use crate::clock::{Clock, Domain};
use crate::disk::folder::Folder;
use crate::disk::own::{Own, said};

/// The folder of a logbook, open. Every error is a sentence for people.
#[derive(Debug)]
pub(super) struct Desk(Folder);

impl Desk {
    /// `None` if there is no such folder.
    pub(super) fn open_if_there(path: &Path) -> Result<Option<Self>, String> {
        Ok(Own::open_if_there(path)?.map(Self::on))
    }

    /// Makes the folder where there is none, for this user alone.
    pub(super) fn open_or_make(path: &Path) -> Result<Self, String> {
        Own::open_or_make(path).map(Self::on)
    }

    fn on(own: Own) -> Self {
        Self(Folder::new(own.path, own.descriptor, &own.status))
    }

    /// What the file of this domain says; `None` if there is none, or none to believe.
    pub(super) fn read(&self, domain: &Domain, clock: &dyn Clock) -> Option<Page> {
        let file = self.0.open(&name(domain, PAGE), OFlags::RDONLY).ok()?;
        let status = rustix::fs::fstat(&file).ok()?;
        if !is_ours(&status) {
            return None;
        }
        let mut bytes = Vec::with_capacity(status.st_size as usize);
        loop {
            let mut part = [0; 16 * 1024];
            match rustix::io::read(&file, &mut part) {
                Ok(0) => break,
                Ok(read) => bytes.extend_from_slice(&part[..read]),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
            if bytes.len() > BYTES_MAX {
                return None;
            }
        }
        // After the read: whatever is later than this was not seen yet.
        Page::decode(&bytes, domain, clock.now())
    }

    /// Adds entries to what is there.
    pub(super) fn write(
        &self,
        domain: &Domain,
        clock: &dyn Clock,
        entries: Vec<Entry>,
    ) -> Result<(), String> {
        let Some(_lock) = self.lock()? else { return Ok(()) };
        let (page, new) = (name(domain, PAGE), name(domain, NEW));
        let is_first = self.0.status_of(&page).is_err();
        let mut seen = self.read(domain, clock).unwrap_or_default();
        let now = clock.now();
        entries.into_iter().for_each(|entry| seen.note(entry, now));
        let path = self.0.path_of(&page);
        // Whoever has the lock is the only one who writes: this is what a dead one left.
        match self.0.unlink(&new) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(said("cannot remove", &self.0.path_of(&new), errno)),
        }
        let written = self.write_new(&new, seen.encode(domain).as_bytes());
        let renamed = written.and_then(|()| self.0.rename(&new, &page));
        renamed.map_err(|errno| {
            let _ = self.0.unlink(&new);
            said("cannot write", &path, errno)
        })?;
        if is_first {
            // A courtesy: what stays does no harm.
            let _ = self.clean(domain);
        }
        Ok(())
    }

    /// Not synced: after a power cut it means nothing any more.
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

    /// The lock of all writers; `None` if somebody has it for longer than what is lost without it is worth.
    #[expect(
        clippy::disallowed_methods,
        reason = "a worker waits for others who write for a moment, and nothing is counted by it"
    )]
    fn lock(&self) -> Result<Option<Locked>, String> {
        let trouble = |what| move |errno| said(what, &self.0.path_of(LOCK), errno);
        let file = self.0.open_or_create(LOCK).map_err(trouble("cannot open"))?;
        let status = rustix::fs::fstat(&file).map_err(trouble("cannot look at"))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(format!("{} is not a file. Remove it", self.0.path_of(LOCK).display()));
        }
        for _ in 0..LOCK_TRIES {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Locked(file))),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
                Err(errno) => return Err(trouble("cannot lock")(errno)),
            }
        }
        Ok(None)
    }

    /// Removes what was seen in other boots. Somebody may still be in one of them, behind another boot id or in another
    /// time namespace: a few of the latest stay, and whoever misses one of the others waits once more.
    fn clean(&self, domain: &Domain) -> rustix::io::Result<()> {
        let here = name(domain, PAGE);
        let mut others = Vec::new();
        let mut names = Dir::read_from(&self.0)?;
        while let Some(entry) = names.read() {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if is_page(name) && name != here {
                others.push((self.0.status_of(name)?.st_mtime, name.to_owned()));
            }
        }
        others.sort_unstable();
        let many = others.len().saturating_sub(OTHERS_MAX);
        others.iter().take(many).try_for_each(|(_, name)| self.0.unlink(name))
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

/// The file of a domain. Its words may be longer than a name: what they are stands in the file.
fn name(domain: &Domain, end: &str) -> String {
    format!("{BEGIN}{:016x}{end}", checksum(&[domain.to_string().as_bytes()]))
}

fn is_page(name: &str) -> bool {
    let digits = name.strip_prefix(BEGIN).and_then(|name| name.strip_suffix(PAGE).or(name.strip_suffix(NEW)));
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

const BEGIN: &str = "seen-";
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
