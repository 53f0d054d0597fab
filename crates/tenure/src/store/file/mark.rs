mod boots;
mod line;
mod unusable;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FileType, FlockOperation, OFlags, Stat};
use rustix::io::Errno;
use tenure_core::machine::{YEAR_2020, is_plausible};
use tenure_store::StoreTime;

use super::directory::Directory;
use super::name::MARK;
use super::temporary::{self, Temporary};
use crate::clock::boot_id;
use boots::Boots;
use line::MarkLine;
pub(super) use unusable::Unusable;

/// The time of the directory: the machine's wall clock, which all its users share, and never less than any time that
/// the directory has seen.
///
/// Operators, NTP, and an empty battery at boot set a wall clock back. If the record of a lease was deleted or restored
/// in between, its token would go back with the clock. So one small file keeps the latest time of any write, and the
/// reported time is later than that. Each write raises it by at least a microsecond: if the clock stands still, the
/// mark keeps counting. An implausible clock is ignored, and the mark keeps counting then, too.
///
/// All this costs a write into the page cache. It is put on the disk every ten seconds. The first program of a boot
/// assumes, once, that the mark is twenty seconds later than it says.
///
/// # Distance from the clock
///
/// A boot adds at most twenty seconds, and only while it is not in the list of [`Boots`]. A full list adds nothing. The
/// list starts again only when the clock is twenty seconds later than the mark. So the mark is ahead of the clock by at
/// most twenty seconds for each place in the list, whatever the number of boot ids.
#[derive(Debug)]
pub(super) struct Mark {
    file: Mutex<Arc<OwnedFd>>,
    /// The boot of this process.
    boot: u64,
    /// False if this process does not know its boot: then every raise is put on the disk.
    boot_is_known: bool,
    /// The latest time that this process has reported or seen, in microseconds.
    latest: AtomicU64,
    /// Lets one thread of this process raise the mark at a time.
    raising: Mutex<()>,
}

/// Time at which the mark is put on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncWhen {
    WhenDue,
    Now,
}

impl Mark {
    /// Opens the mark, or creates it. A created mark is on the disk when this returns.
    pub(super) fn open(directory: &Directory, wall: u64) -> Result<Self, Unusable> {
        let boot = boot_id();
        let file = match open_checked(directory, OFlags::RDWR) {
            Err(Unusable::Kernel(Errno::NOENT)) => {
                make(directory, &first(plausible_wall(wall), Boots::id(boot.as_deref())))?
            }
            opened => opened?,
        };
        let line = read_settled(&file).ok_or_else(|| not_a_mark(&file))?;
        if !is_possible(&line) {
            return Err(impossible(&line));
        }
        Ok(Self::of(file, boot.as_deref()))
    }

    /// Opens the mark for a reader, which never raises it; `None` if there is no usable one.
    pub(super) fn open_to_read(directory: &Directory) -> rustix::io::Result<Option<Self>> {
        match open_checked(directory, OFlags::RDONLY) {
            Err(Unusable::Kernel(Errno::NOENT) | Unusable::Damaged(_)) => Ok(None),
            Err(Unusable::Kernel(errno)) => Err(errno),
            Ok(file) => Ok(Some(Self::of(file, boot_id().as_deref()))),
        }
    }

    fn of(file: OwnedFd, boot: Option<&str>) -> Self {
        let mark = Self {
            file: Mutex::new(Arc::new(file)),
            boot: Boots::id(boot),
            boot_is_known: boot.is_some(),
            latest: AtomicU64::new(0),
            raising: Mutex::new(()),
        };
        mark.look(&mark.file());
        mark
    }

    /// The time to report.
    pub(super) fn time(&self, wall: u64) -> StoreTime {
        self.look(&self.file());
        let told = plausible_wall(wall).max(self.latest.load(Ordering::SeqCst).saturating_add(1));
        // A token may be based on it, so the next write raises the mark above it, whatever the clock does until then.
        self.latest.fetch_max(told, Ordering::SeqCst);
        StoreTime::from_micros(told)
    }

    /// Before a write: makes the mark later than any time that the writer can have seen.
    ///
    /// If a process is stopped while it has the lock of the mark, this gives up after a moment. The clock itself is
    /// almost always right, and no key must be blocked for that.
    pub(super) fn raise(&self, directory: &Directory, wall: u64) -> Result<(), Unusable> {
        self.raise_and(directory, wall, SyncWhen::WhenDue).map(|_| ())
    }

    /// Before a removal, after which only the mark remembers the token: as [`raise`](Self::raise), and on the disk.
    /// `false` if a stopped process has the lock: then nothing may be removed.
    pub(super) fn raise_on_disk(&self, directory: &Directory, wall: u64) -> Result<bool, Unusable> {
        self.raise_and(directory, wall, SyncWhen::Now)
    }

    fn raise_and(&self, directory: &Directory, wall: u64, disk: SyncWhen) -> Result<bool, Unusable> {
        // One thread of this process at a time; the lock of the file then excludes only other processes.
        let _turn = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        let wall = plausible_wall(wall);
        let file = self.current(directory, wall)?;
        if !lock(&file)? {
            return Ok(false);
        }
        let raised = self.raise_locked(directory, &file, wall, disk);
        // Explicit, because a forked copy of this process has the same lock.
        let unlocked = rustix::fs::flock(&*file, FlockOperation::Unlock);
        let due = raised?;
        unlocked?;
        if due {
            rustix::fs::fdatasync(&*file)?;
        }
        Ok(true)
    }

    /// Raises the mark under its lock. `true` if it must be put on the disk now.
    fn raise_locked(
        &self,
        directory: &Directory,
        file: &OwnedFd,
        wall: u64,
        disk: SyncWhen,
    ) -> rustix::io::Result<bool> {
        let Some(line) = self.look(file) else {
            // An invalid mark is replaced and not written to; this process remembers a time to continue from.
            let micros = wall.max(self.latest.load(Ordering::SeqCst).saturating_add(1));
            let file = replace(directory, &first(micros, self.boot))?;
            self.adopt(Arc::new(file));
            self.latest.fetch_max(micros, Ordering::SeqCst);
            return Ok(false);
        };
        let micros = wall.max(self.latest.load(Ordering::SeqCst).saturating_add(1));
        let overtaken = wall >= line.micros.saturating_add(LOST_MAX);
        let mut boots = line.boots.with(self.boot);
        if boots.is_full() && overtaken {
            boots = Boots::default().with(self.boot);
        }
        let due = disk == SyncWhen::Now
            || boots.is_full()
            || !self.boot_is_known
            || micros.saturating_sub(line.synced) >= SYNC_EVERY;
        let synced = if due { micros } else { line.synced };
        write(file, &MarkLine { micros, synced, boots })?;
        self.latest.fetch_max(micros, Ordering::SeqCst);
        Ok(due)
    }

    /// Reads the mark and records its time; `None` if the content is not a valid mark.
    fn look(&self, file: &OwnedFd) -> Option<MarkLine> {
        // A read during a write is repeated; a time that is already known is never forgotten.
        let line = (0..READ_TRIES).find_map(|_| read(file)).filter(is_possible)?;
        // The time of a full list is on the disk; see `Boots`.
        let exact = line.boots.contains(self.boot) || line.boots.is_full();
        let lost = if exact { 0 } else { LOST_MAX };
        self.latest.fetch_max(line.micros.saturating_add(lost), Ordering::SeqCst);
        Some(line)
    }

    /// The file that has the name now: the mark may have been deleted or restored.
    fn current(&self, directory: &Directory, wall: u64) -> Result<Arc<OwnedFd>, Unusable> {
        let file = self.file();
        let opened = rustix::fs::fstat(&*file)?;
        let file = match directory.status_of(MARK) {
            Ok(there) if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino) => return Ok(file),
            Ok(_) => open_checked(directory, OFlags::RDWR)?,
            Err(Errno::NOENT) => {
                let micros = wall.max(self.latest.load(Ordering::SeqCst));
                make(directory, &first(micros, self.boot))?
            }
            Err(errno) => return Err(errno.into()),
        };
        Ok(self.adopt(Arc::new(file)))
    }

    fn adopt(&self, file: Arc<OwnedFd>) -> Arc<OwnedFd> {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&file);
        file
    }

    fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The first line of a mark. It is on the disk before it gets its name.
fn first(micros: u64, boot: u64) -> MarkLine {
    MarkLine { micros, synced: micros, boots: Boots::default().with(boot) }
}

/// The wall clock if it is plausible, or else zero: a clock that was never set, or set to nonsense, proves nothing.
fn plausible_wall(wall: u64) -> u64 {
    if is_plausible(StoreTime::from_micros(wall)) { wall } else { 0 }
}

/// False for a time later than any plausible clock. An earlier time counts up from a clock that was never set.
fn is_possible(line: &MarkLine) -> bool {
    let time = StoreTime::from_micros(line.micros);
    line.micros < YEAR_2020 || is_plausible(time)
}

fn impossible(line: &MarkLine) -> Unusable {
    let year = 1970 + line.micros / MICROS_OF_A_YEAR;
    Unusable::Damaged(format!("its time is in the year {year}: an earlier program read a wrong clock"))
}

fn not_a_mark(file: &OwnedFd) -> Unusable {
    let empty = rustix::fs::fstat(file).is_ok_and(|status| status.st_size == 0);
    let what = if empty { "it is empty" } else { "its content is not that of a mark, or was edited" };
    Unusable::Damaged(what.to_owned())
}

/// Opens the existing mark if it can only be a mark: a regular file of the user who owns the files of this directory. A
/// valid mark with a second name is replaced when it is opened for writing. Any other file could belong to another
/// user, and could be here so that Tenure writes to it.
fn open_checked(directory: &Directory, flags: OFlags) -> Result<OwnedFd, Unusable> {
    let file = match directory.open(MARK, flags) {
        Err(Errno::LOOP) => return Err(Unusable::Damaged("it is a symbolic link".to_owned())),
        Err(Errno::NXIO | Errno::ISDIR) => return Err(Unusable::Damaged("it is not a file".to_owned())),
        opened => opened?,
    };
    let status = rustix::fs::fstat(&file)?;
    let flaw = if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        "it is not a file".to_owned()
    } else if status.st_nlink > 1 && read_settled(&file).is_none_or(|line| !is_possible(&line)) {
        format!(
            "it is a hard link, and writing to it would change another file (it has {} names)",
            status.st_nlink
        )
    } else if !directory.may_own(&status) {
        foreign(directory, &status)
    } else if status.st_nlink > 1 && flags != OFlags::RDONLY {
        return Ok(replace_linked(directory, &file)?);
    } else {
        return Ok(file);
    };
    Err(Unusable::Damaged(flaw))
}

/// The reason why the mark is not of a user of the directory.
fn foreign(directory: &Directory, mark: &Stat) -> String {
    if directory.is_shared() {
        let (group, mode) = (mark.st_gid, mark.st_mode & 0o7777);
        return format!("it has group {group} and mode {mode:04o}, and the files of this directory do not");
    }
    format!("it belongs to user {}, and the files of this directory do not", mark.st_uid)
}

/// Replaces a mark that has a second name with a new file with the same line. Backups by hard links cause second names.
/// The old file is not written to.
///
/// The lock prevents a raise during the replacement. A process that waits for the lock raises the old file once more,
/// which matters only if the clock is also set back.
fn replace_linked(directory: &Directory, file: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let locked = lock(file)?;
    let replaced = read(file).ok_or(Errno::AGAIN).and_then(|line| replace(directory, &line));
    if locked {
        rustix::fs::flock(file, FlockOperation::Unlock)?;
    }
    replaced
}

/// Creates the file with its complete content. The slower of two processes uses the existing file.
fn make(directory: &Directory, line: &MarkLine) -> Result<OwnedFd, Unusable> {
    let temporary = Temporary::write(directory, line.to_string().as_bytes())?;
    // Not by a link: a process that dies before it removes the second name would leave a mark with two names.
    match directory.rename_unless_there(temporary.name(), MARK) {
        Ok(()) => temporary.renamed(),
        Err(Errno::EXIST) => drop(temporary),
        // FUSE does not have it. There, the slower of two writers replaces a mark that is a moment old.
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
            directory.rename(temporary.name(), MARK)?;
            temporary.renamed();
        }
        Err(errno) => return Err(errno.into()),
    }
    directory.sync()?;
    open_checked(directory, OFlags::RDWR)
}

/// Replaces the mark with a new file.
fn replace(directory: &Directory, line: &MarkLine) -> rustix::io::Result<OwnedFd> {
    temporary::replace(directory, line.to_string().as_bytes(), MARK)?;
    directory.sync()?;
    let file = directory.open(MARK, OFlags::RDWR)?;
    let status = rustix::fs::fstat(&file)?;
    // Another user of the directory may have put another file in its place.
    let is_mark = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
        && status.st_nlink == 1
        && directory.may_own(&status);
    if is_mark { Ok(file) } else { Err(Errno::AGAIN) }
}

/// Takes the lock of the mark; `false` if another process kept it.
fn lock(file: &OwnedFd) -> rustix::io::Result<bool> {
    for _ in 0..LOCK_TRIES {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => super::pause(LOCK_PAUSE),
            Err(errno) => return Err(errno),
        }
    }
    Ok(false)
}

/// The content of the mark while no other process writes to it; `None` if it is not a line.
fn read_settled(file: &OwnedFd) -> Option<MarkLine> {
    (0..READ_TRIES).find_map(|_| read(file)).or_else(|| {
        let locked = lock(file).unwrap_or(false);
        let line = read(file);
        if locked {
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        }
        line
    })
}

fn read(file: &OwnedFd) -> Option<MarkLine> {
    let mut bytes = [0; MarkLine::MAX_BYTES];
    let read = rustix::io::pread(file, &mut bytes[..], 0).ok()?;
    MarkLine::parse(std::str::from_utf8(&bytes[..read]).ok()?)
}

fn write(file: &OwnedFd, line: &MarkLine) -> rustix::io::Result<()> {
    let line = line.to_string();
    let written = rustix::io::pwrite(file, line.as_bytes(), 0)?;
    if written == line.len() { Ok(()) } else { Err(Errno::NOSPC) }
}

/// Interval between two syncs, in microseconds.
const SYNC_EVERY: u64 = 10_000_000;

/// Upper limit of the time that a mark can have lost with the memory of the machine.
const LOST_MAX: u64 = 2 * SYNC_EVERY;

const MICROS_OF_A_YEAR: u64 = 31_556_952_000_000;

/// Together 20 ms: other processes have the lock for some microseconds, unless they are stopped.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_micros(200);

const READ_TRIES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::super::path_safety;
    use super::*;

    const NOON: u64 = YEAR_2020 + 1_000_000_000_000;

    fn directory(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tenure-mark-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let descriptor = path_safety::open_or_make(&path).unwrap();
        let status = rustix::fs::fstat(&descriptor).unwrap();
        Directory::new(path, descriptor, &status)
    }

    /// The mark as the first program of a boot finds it.
    fn at_boot(directory: &Directory, number: usize) -> Mark {
        Mark::of(open_checked(directory, OFlags::RDWR).unwrap(), Some(&format!("boot {number}")))
    }

    fn line(directory: &Directory) -> MarkLine {
        read(&open_checked(directory, OFlags::RDWR).unwrap()).unwrap()
    }

    #[test]
    fn the_first_program_of_a_boot_advances_the_mark_and_later_ones_do_not() {
        let directory = directory("boot");
        make(&directory, &first(NOON, Boots::id(Some("boot 0")))).unwrap();
        // A clock that is slightly behind after the reboot hides no part of the loss.
        let told = at_boot(&directory, 1).time(NOON + LOST_MAX / 2).as_micros();
        assert!(told > NOON + LOST_MAX, "{told}");
        at_boot(&directory, 1).raise(&directory, NOON).unwrap();
        let raised = line(&directory).micros;
        assert!(raised > NOON + LOST_MAX && raised < NOON + LOST_MAX + 1_000, "{raised}");
        for boot in [0, 1] {
            let told = at_boot(&directory, boot).time(NOON).as_micros();
            assert!(told > raised && told < raised + 1_000, "boot {boot}: {told} after {raised}");
        }
        std::fs::remove_dir_all(directory.path()).unwrap();
    }

    /// The mark records which part of it is on disk, so the test cuts the power after each raise.
    #[test]
    fn after_a_power_cut_with_the_clock_behind_no_earlier_time_is_reported_again() {
        let directory = directory("power");
        let mut on_disk = first(NOON, Boots::id(Some("boot 0")));
        make(&directory, &on_disk).unwrap();
        let before = at_boot(&directory, 0);
        let mut lost = 0;
        for second in 1..=35 {
            let now = NOON + second * 1_000_000;
            before.raise(&directory, now).unwrap();
            let raised = line(&directory);
            if raised.synced == raised.micros {
                on_disk = raised.clone();
            }
            lost += usize::from(on_disk != raised);
            // The machine loses its memory; the next boot finds the contents of the disk.
            write(&before.file(), &on_disk).unwrap();
            for wall in [0, NOON - 3_600_000_000, NOON, now] {
                let told = at_boot(&directory, 1).time(wall).as_micros();
                assert!(
                    told > raised.micros,
                    "second {second}, clock at {wall}: {told} after {}",
                    raised.micros
                );
            }
            write(&before.file(), &raised).unwrap();
        }
        assert!(lost >= 30, "most of these raises were in memory alone: {lost}");
        std::fs::remove_dir_all(directory.path()).unwrap();
    }

    #[test]
    fn a_full_list_of_boots_adds_nothing_and_syncs_every_raise_until_the_clock_passes_it() {
        let directory = directory("full");
        make(&directory, &first(NOON, Boots::id(Some("boot 0")))).unwrap();
        for boot in 1..3 * Boots::MAX {
            at_boot(&directory, boot).raise(&directory, NOON).unwrap();
        }
        let full = line(&directory);
        assert!(full.boots.is_full() && full.synced == full.micros, "{full:?}");
        let ahead = full.micros - NOON;
        assert!(ahead <= Boots::MAX as u64 * LOST_MAX, "{ahead}");
        // An ordinary reboot, later.
        let later = full.micros + LOST_MAX;
        at_boot(&directory, 99).raise(&directory, later).unwrap();
        let anew = line(&directory);
        assert_eq!(
            anew,
            MarkLine {
                micros: later,
                synced: later,
                boots: Boots::default().with(Boots::id(Some("boot 99")))
            }
        );
        std::fs::remove_dir_all(directory.path()).unwrap();
    }
}
