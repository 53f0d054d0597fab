use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, OFlags};
use rustix::io::Errno;
use tenure_store::StoreTime;

use super::folder::Folder;
use super::name::MARK;
use super::temporary::Temporary;
use crate::checksum::checksum;
use crate::clock::Domain;

/// The time of the folder: the machine's wall clock, which all its users share, and never less than what the folder has
/// seen before.
///
/// A wall clock is set back by people, by NTP, and by a battery that is empty at boot. The token of a lease whose record
/// was deleted or restored meanwhile would go back with it. So the latest time of any write is kept in one small file,
/// and the time that is told is later than that. Each write raises it by a microsecond at least: where the clock stands
/// still the mark counts on.
///
/// All this costs a write into the page cache. It is put on the disk every ten seconds, and after a reboot that finds
/// the clock behind it, it is taken to be so much later.
#[derive(Debug)]
pub(super) struct Mark {
    file: Mutex<Arc<OwnedFd>>,
    boot: String,
    /// The latest time that this process has told or seen, in microseconds.
    latest: AtomicU64,
    /// Whoever raises the mark in this process.
    raising: Mutex<()>,
}

/// What the file says. It is written in place, in one piece that is smaller than a sector, under a lock; it is read
/// without one, and the checksum shows half a write.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    micros: u64,
    /// What is on the disk for sure.
    synced: u64,
    boot: String,
}

/// When the mark is put on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    WhenDue,
    Now,
}

impl Mark {
    /// Opens the mark, or makes it: then it is on the disk when this returns.
    pub(super) fn open(folder: &Folder, domain: Option<&Domain>, wall: u64) -> rustix::io::Result<Self> {
        let boot = boot(domain);
        let file = match folder.open(MARK, OFlags::RDWR) {
            Err(Errno::NOENT) => make(folder, &Line { micros: wall, synced: wall, boot: boot.clone() })?,
            opened => opened?,
        };
        Ok(Self::of(file, boot, wall))
    }

    /// Opens the mark for somebody who never raises it; `None` if there is none.
    pub(super) fn open_to_read(
        folder: &Folder,
        domain: Option<&Domain>,
        wall: u64,
    ) -> rustix::io::Result<Option<Self>> {
        match folder.open(MARK, OFlags::RDONLY) {
            Err(Errno::NOENT) => Ok(None),
            opened => Ok(Some(Self::of(opened?, boot(domain), wall))),
        }
    }

    fn of(file: OwnedFd, boot: String, wall: u64) -> Self {
        let mark = Self {
            file: Mutex::new(Arc::new(file)),
            boot,
            latest: AtomicU64::new(0),
            raising: Mutex::new(()),
        };
        mark.look(&mark.file(), wall);
        mark
    }

    /// The time to tell.
    pub(super) fn time(&self, wall: u64) -> StoreTime {
        self.look(&self.file(), wall);
        let told = wall.max(self.latest.load(Ordering::SeqCst).saturating_add(1));
        // A token may be made of it, so the next write raises the mark above it, whatever the clock does until then.
        self.latest.fetch_max(told, Ordering::SeqCst);
        StoreTime::from_micros(told)
    }

    /// Before a write: the mark becomes later than any time that the writer can have been told.
    ///
    /// If somebody is stopped with the lock of the mark, this gives up after a moment: the clock itself is right nearly
    /// always, and no key shall stand still for that.
    pub(super) fn raise(&self, folder: &Folder, wall: u64) -> rustix::io::Result<()> {
        self.raise_and(folder, wall, Disk::WhenDue).map(|_| ())
    }

    /// Before something is removed whose token nothing but the mark remembers then: as [`raise`](Self::raise), and it is
    /// on the disk. `false` if somebody is stopped with the lock: then nothing may be removed.
    pub(super) fn raise_on_disk(&self, folder: &Folder, wall: u64) -> rustix::io::Result<bool> {
        self.raise_and(folder, wall, Disk::Now)
    }

    fn raise_and(&self, folder: &Folder, wall: u64, disk: Disk) -> rustix::io::Result<bool> {
        // In this process one after another; the lock of the file then waits for other processes alone.
        let _turn = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.current(folder, wall)?;
        for _ in 0..LOCK_TRIES {
            match rustix::fs::flock(&*file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return self.raise_locked(&file, wall, disk).map(|()| true),
                Err(Errno::WOULDBLOCK | Errno::INTR) => pause(),
                Err(errno) => return Err(errno),
            }
        }
        Ok(false)
    }

    fn raise_locked(&self, file: &OwnedFd, wall: u64, disk: Disk) -> rustix::io::Result<()> {
        let synced = self.look(file, wall).map_or(0, |line| line.synced);
        let micros = wall.max(self.latest.load(Ordering::SeqCst).saturating_add(1));
        let due = disk == Disk::Now || micros.saturating_sub(synced) >= SYNC_EVERY;
        let synced = if due { micros } else { synced };
        let written = write(file, &Line { micros, synced, boot: self.boot.clone() });
        // Said aloud, because a forked copy of this process has the same lock.
        let unlocked = rustix::fs::flock(file, FlockOperation::Unlock);
        written?;
        unlocked?;
        self.latest.fetch_max(micros, Ordering::SeqCst);
        if due {
            rustix::fs::fdatasync(file)?;
        }
        Ok(())
    }

    fn look(&self, file: &OwnedFd, wall: u64) -> Option<Line> {
        // A reader may meet a writer, and then looks again; what it knows already is never forgotten.
        let line = (0..READ_TRIES).find_map(|_| read(file))?;
        let lost = line.boot != self.boot && wall < line.micros;
        let micros = if lost { line.micros.saturating_add(2 * SYNC_EVERY) } else { line.micros };
        self.latest.fetch_max(micros, Ordering::SeqCst);
        Some(line)
    }

    /// The file that the name stands for now: somebody may have deleted or restored it.
    fn current(&self, folder: &Folder, wall: u64) -> rustix::io::Result<Arc<OwnedFd>> {
        let file = self.file();
        let opened = rustix::fs::fstat(&*file)?;
        let file = match folder.status_of(MARK) {
            Ok(there) if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino) => return Ok(file),
            Ok(_) => folder.open(MARK, OFlags::RDWR)?,
            Err(Errno::NOENT) => {
                let micros = wall.max(self.latest.load(Ordering::SeqCst));
                make(folder, &Line { micros, synced: micros, boot: self.boot.clone() })?
            }
            Err(errno) => return Err(errno),
        };
        let file = Arc::new(file);
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&file);
        Ok(file)
    }

    fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn boot(domain: Option<&Domain>) -> String {
    domain.map_or_else(|| "-".to_owned(), Domain::to_string)
}

/// Makes the file, whole from the start. Whoever is slower takes what is there.
fn make(folder: &Folder, line: &Line) -> rustix::io::Result<OwnedFd> {
    let temporary = Temporary::write(folder, line.to_string().as_bytes())?;
    match rustix::fs::linkat(folder, temporary.name(), folder, MARK, AtFlags::empty()) {
        Ok(()) | Err(Errno::EXIST) => drop(temporary),
        // Not on a disk of our own; there, whoever is slower replaces a mark that is a moment old.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
            folder.rename(temporary.name(), MARK)?;
            temporary.renamed();
        }
        Err(errno) => return Err(errno),
    }
    folder.sync()?;
    folder.open(MARK, OFlags::RDWR)
}

fn read(file: &OwnedFd) -> Option<Line> {
    let mut bytes = [0; Line::MAX_BYTES];
    let read = rustix::io::pread(file, &mut bytes[..], 0).ok()?;
    Line::parse(std::str::from_utf8(&bytes[..read]).ok()?)
}

fn write(file: &OwnedFd, line: &Line) -> rustix::io::Result<()> {
    let line = line.to_string();
    let written = rustix::io::pwrite(file, line.as_bytes(), 0)?;
    if written == line.len() { Ok(()) } else { Err(Errno::NOSPC) }
}

impl Line {
    const MAX_BYTES: usize = 256;

    fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.lines().next()?.split(' ').filter(|word| !word.is_empty()).collect();
        let ["tenure-mark", "1", micros, synced, boot, sum] = words[..] else { return None };
        let line = Self { micros: micros.parse().ok()?, synced: synced.parse().ok()?, boot: boot.to_owned() };
        (sum == line.checksum()).then_some(line)
    }

    fn checksum(&self) -> String {
        let facts = format!("{} {} {}", self.micros, self.synced, self.boot);
        format!("{:016x}", checksum(&[facts.as_bytes()]))
    }
}

impl std::fmt::Display for Line {
    /// Always of the same length, so that a shorter line leaves nothing of a longer one behind.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = Domain::MAX_BYTES;
        writeln!(
            f,
            "tenure-mark 1 {:020} {:020} {:width$} {}",
            self.micros,
            self.synced,
            self.boot,
            self.checksum()
        )
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a worker waits for another process, for less than a millisecond"
)]
fn pause() {
    std::thread::sleep(LOCK_PAUSE);
}

/// In microseconds.
const SYNC_EVERY: u64 = 10_000_000;

/// Together 20 ms: others have the lock for some microseconds, unless they are stopped.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_micros(200);

const READ_TRIES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_one_length_and_half_a_line_is_none() {
        let line = |micros, boot: &str| Line { micros, synced: 5, boot: boot.to_owned() };
        let (short, long) = (line(7, "-"), line(u64::MAX, &format!("{},time:[4026531834]", "b".repeat(36))));
        assert_eq!(short.to_string().len(), long.to_string().len());
        assert!(long.to_string().len() <= Line::MAX_BYTES);
        for line in [short, long] {
            let text = line.to_string();
            assert_eq!(Line::parse(&text), Some(line));
            for cut in 0..text.len() - 1 {
                assert_eq!(Line::parse(&text[..cut]), None, "{cut}");
            }
        }
    }
}
