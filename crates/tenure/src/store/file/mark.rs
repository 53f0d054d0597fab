mod boots;
mod line;
mod unusable;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{FileType, FlockOperation, OFlags};
use rustix::io::Errno;
use tenure_core::machine::{YEAR_2020, is_plausible};
use tenure_store::StoreTime;

use super::folder::Folder;
use super::name::MARK;
use super::temporary::{self, Temporary};
use crate::clock::boot_id;
use boots::Boots;
use line::MarkLine;
pub(super) use unusable::Unusable;

/// The time of the folder: the machine's wall clock, which all its users share, and never less than what the folder has
/// seen before.
///
/// A wall clock is set back by people, by NTP, and by a battery that is empty at boot. The token of a lease whose record
/// was deleted or restored meanwhile would go back with it. So the latest time of any write is kept in one small file,
/// and the time that is told is later than that. Each write raises it by a microsecond at least: where the clock stands
/// still the mark counts on. A clock that cannot be right is not asked: the mark counts on then, too.
///
/// All this costs a write into the page cache. It is put on the disk every ten seconds, and the first program of a boot
/// takes the mark to be twenty seconds later than it says, once.
///
/// # How far ahead of the clock
///
/// A boot adds at most twenty seconds, and only while it is not in the list of [`Boots`]. A full list adds nothing. It is
/// started anew only when the clock is twenty seconds later than the mark. So the mark is never ahead of the clock by more
/// than twenty seconds for each place in the list, whatever the number of boot ids.
#[derive(Debug)]
pub(super) struct Mark {
    file: Mutex<Arc<OwnedFd>>,
    /// The boot that this process is of.
    boot: u64,
    /// False where this process does not know its boot: then every raise is put on the disk.
    boot_is_known: bool,
    /// The latest time that this process has told or seen, in microseconds.
    latest: AtomicU64,
    /// Whoever raises the mark in this process.
    raising: Mutex<()>,
}

/// When the mark is put on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncWhen {
    WhenDue,
    Now,
}

impl Mark {
    /// Opens the mark, or makes it: then it is on the disk when this returns.
    pub(super) fn open(folder: &Folder, wall: u64) -> Result<Self, Unusable> {
        let boot = boot_id();
        let file = match open_checked(folder, OFlags::RDWR) {
            Err(Unusable::Kernel(Errno::NOENT)) => {
                make(folder, &first(plausible_wall(wall), Boots::id(boot.as_deref())))?
            }
            opened => opened?,
        };
        let line = read_settled(&file).ok_or_else(|| not_a_mark(&file))?;
        if !is_possible(&line) {
            return Err(impossible(&line));
        }
        Ok(Self::of(file, boot.as_deref()))
    }

    /// Opens the mark for a reader, which never raises it; `None` if there is none that can be used.
    pub(super) fn open_to_read(folder: &Folder) -> rustix::io::Result<Option<Self>> {
        match open_checked(folder, OFlags::RDONLY) {
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

    /// The time to tell.
    pub(super) fn time(&self, wall: u64) -> StoreTime {
        self.look(&self.file());
        let told = plausible_wall(wall).max(self.latest.load(Ordering::SeqCst).saturating_add(1));
        // A token may be made of it, so the next write raises the mark above it, whatever the clock does until then.
        self.latest.fetch_max(told, Ordering::SeqCst);
        StoreTime::from_micros(told)
    }

    /// Before a write: the mark becomes later than any time that the writer can have been told.
    ///
    /// If somebody is stopped with the lock of the mark, this gives up after a moment: the clock itself is right nearly
    /// always, and no key shall stand still for that.
    pub(super) fn raise(&self, folder: &Folder, wall: u64) -> Result<(), Unusable> {
        self.raise_and(folder, wall, SyncWhen::WhenDue).map(|_| ())
    }

    /// Before something is removed whose token nothing but the mark remembers then: as [`raise`](Self::raise), and it is
    /// on the disk. `false` if somebody is stopped with the lock: then nothing may be removed.
    pub(super) fn raise_on_disk(&self, folder: &Folder, wall: u64) -> Result<bool, Unusable> {
        self.raise_and(folder, wall, SyncWhen::Now)
    }

    fn raise_and(&self, folder: &Folder, wall: u64, disk: SyncWhen) -> Result<bool, Unusable> {
        // In this process one after another; the lock of the file then waits for other processes alone.
        let _turn = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        let wall = plausible_wall(wall);
        let file = self.current(folder, wall)?;
        if !lock(&file)? {
            return Ok(false);
        }
        let raised = self.raise_locked(folder, &file, wall, disk);
        // Said aloud, because a forked copy of this process has the same lock.
        let unlocked = rustix::fs::flock(&*file, FlockOperation::Unlock);
        let due = raised?;
        unlocked?;
        if due {
            rustix::fs::fdatasync(&*file)?;
        }
        Ok(true)
    }

    /// `true` if it must be put on the disk now.
    fn raise_locked(
        &self,
        folder: &Folder,
        file: &OwnedFd,
        wall: u64,
        disk: SyncWhen,
    ) -> rustix::io::Result<bool> {
        let Some(line) = self.look(file) else {
            // What is no mark is replaced and not written to, and this process remembers a time to go on from.
            let micros = wall.max(self.latest.load(Ordering::SeqCst).saturating_add(1));
            let file = replace(folder, &first(micros, self.boot))?;
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

    /// Takes note of what the mark says; `None` if that is nothing that a mark can say.
    fn look(&self, file: &OwnedFd) -> Option<MarkLine> {
        // A reader may meet a writer, and then looks again; what it knows already is never forgotten.
        let line = (0..READ_TRIES).find_map(|_| read(file)).filter(is_possible)?;
        // What a full list says is on the disk; see `Boots`.
        let exact = line.boots.contains(self.boot) || line.boots.is_full();
        let lost = if exact { 0 } else { LOST_MAX };
        self.latest.fetch_max(line.micros.saturating_add(lost), Ordering::SeqCst);
        Some(line)
    }

    /// The file that the name stands for now: somebody may have deleted or restored it.
    fn current(&self, folder: &Folder, wall: u64) -> Result<Arc<OwnedFd>, Unusable> {
        let file = self.file();
        let opened = rustix::fs::fstat(&*file)?;
        let file = match folder.status_of(MARK) {
            Ok(there) if (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino) => return Ok(file),
            Ok(_) => open_checked(folder, OFlags::RDWR)?,
            Err(Errno::NOENT) => {
                let micros = wall.max(self.latest.load(Ordering::SeqCst));
                make(folder, &first(micros, self.boot))?
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

/// The first line of a mark. It is on the disk before it has its name.
fn first(micros: u64, boot: u64) -> MarkLine {
    MarkLine { micros, synced: micros, boots: Boots::default().with(boot) }
}

/// The wall clock as far as it may be believed: one that was never set, or set to nonsense, says nothing.
fn plausible_wall(wall: u64) -> u64 {
    if is_plausible(StoreTime::from_micros(wall)) { wall } else { 0 }
}

/// False for a time after all that a clock may say. One before that counts up from a clock that was never set.
fn is_possible(line: &MarkLine) -> bool {
    let time = StoreTime::from_micros(line.micros);
    line.micros < YEAR_2020 || is_plausible(time)
}

fn impossible(line: &MarkLine) -> Unusable {
    let year = 1970 + line.micros / MICROS_OF_A_YEAR;
    Unusable::Damaged(format!(
        "it says that it is the year {year}, as a clock that was set wrong once told an earlier program"
    ))
}

fn not_a_mark(file: &OwnedFd) -> Unusable {
    let empty = rustix::fs::fstat(file).is_ok_and(|status| status.st_size == 0);
    let what = if empty { "it is empty" } else { "its content is not that of a mark, or was changed" };
    Unusable::Damaged(what.to_owned())
}

/// Opens the mark that is there, if it can only be one: a regular file with this one name, of the user to whom the files of
/// this folder belong. Anything else could be a file of another user that was put here to be written to.
fn open_checked(folder: &Folder, flags: OFlags) -> Result<OwnedFd, Unusable> {
    let file = match folder.open(MARK, flags) {
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
    } else if !folder.may_own(status.st_uid) {
        format!("it belongs to user {}, and the files of this folder do not", status.st_uid)
    } else if status.st_nlink > 1 && flags != OFlags::RDONLY {
        return Ok(replace_linked(folder, &file)?);
    } else {
        return Ok(file);
    };
    Err(Unusable::Damaged(flaw))
}

/// Puts a new file with the same line in the place of a mark that has a second name, as backups by hard links give it
/// one. The old file is not written to.
///
/// The lock keeps the line from being raised meanwhile. A process that waits for it raises the old file once more, which
/// matters only if the clock is set back as well.
fn replace_linked(folder: &Folder, file: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let locked = lock(file)?;
    let replaced = read(file).ok_or(Errno::AGAIN).and_then(|line| replace(folder, &line));
    if locked {
        rustix::fs::flock(file, FlockOperation::Unlock)?;
    }
    replaced
}

/// Makes the file, whole from the start. Whoever is slower takes what is there.
fn make(folder: &Folder, line: &MarkLine) -> Result<OwnedFd, Unusable> {
    let temporary = Temporary::write(folder, line.to_string().as_bytes())?;
    // Not by a link: a mark with a second name is refused, and a process that dies before it removes that name would leave one.
    match folder.rename_unless_there(temporary.name(), MARK) {
        Ok(()) => temporary.renamed(),
        Err(Errno::EXIST) => drop(temporary),
        // FUSE does not have it; there, the slower of two writers replaces a mark that is a moment old.
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
            folder.rename(temporary.name(), MARK)?;
            temporary.renamed();
        }
        Err(errno) => return Err(errno.into()),
    }
    folder.sync()?;
    open_checked(folder, OFlags::RDWR)
}

/// Puts a new file in the place of the mark.
fn replace(folder: &Folder, line: &MarkLine) -> rustix::io::Result<OwnedFd> {
    temporary::replace(folder, line.to_string().as_bytes(), MARK)?;
    folder.sync()?;
    folder.open(MARK, OFlags::RDWR)
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

/// The content of the mark when no other process is writing to it; `None` if that is not a line.
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

/// In microseconds.
const SYNC_EVERY: u64 = 10_000_000;

/// More than a mark can have lost with the memory of the machine.
const LOST_MAX: u64 = 2 * SYNC_EVERY;

const MICROS_OF_A_YEAR: u64 = 31_556_952_000_000;

/// Together 20 ms: others have the lock for some microseconds, unless they are stopped.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_micros(200);

const READ_TRIES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::super::path_safety;
    use super::*;

    const NOON: u64 = YEAR_2020 + 1_000_000_000_000;

    fn folder(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tenure-mark-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let descriptor = path_safety::open_or_make(&path).unwrap();
        let status = rustix::fs::fstat(&descriptor).unwrap();
        Folder::new(path, descriptor, &status)
    }

    /// The mark as the first program of a boot finds it.
    fn at_boot(folder: &Folder, number: usize) -> Mark {
        Mark::of(open_checked(folder, OFlags::RDWR).unwrap(), Some(&format!("boot {number}")))
    }

    fn line(folder: &Folder) -> MarkLine {
        read(&open_checked(folder, OFlags::RDWR).unwrap()).unwrap()
    }

    #[test]
    fn the_first_program_of_a_boot_advances_the_mark_and_later_ones_do_not() {
        let folder = folder("boot");
        make(&folder, &first(NOON, Boots::id(Some("boot 0")))).unwrap();
        // A clock that is slightly behind after the reboot hides no part of the loss.
        let told = at_boot(&folder, 1).time(NOON + LOST_MAX / 2).as_micros();
        assert!(told > NOON + LOST_MAX, "{told}");
        at_boot(&folder, 1).raise(&folder, NOON).unwrap();
        let raised = line(&folder).micros;
        assert!(raised > NOON + LOST_MAX && raised < NOON + LOST_MAX + 1_000, "{raised}");
        for boot in [0, 1] {
            let told = at_boot(&folder, boot).time(NOON).as_micros();
            assert!(told > raised && told < raised + 1_000, "boot {boot}: {told} after {raised}");
        }
        std::fs::remove_dir_all(folder.path()).unwrap();
    }

    /// The mark records which part of it is on disk, so the test cuts the power after each raise.
    #[test]
    fn after_a_power_cut_with_the_clock_behind_no_earlier_time_is_reported_again() {
        let folder = folder("power");
        let mut on_disk = first(NOON, Boots::id(Some("boot 0")));
        make(&folder, &on_disk).unwrap();
        let before = at_boot(&folder, 0);
        let mut lost = 0;
        for second in 1..=35 {
            let now = NOON + second * 1_000_000;
            before.raise(&folder, now).unwrap();
            let raised = line(&folder);
            if raised.synced == raised.micros {
                on_disk = raised.clone();
            }
            lost += usize::from(on_disk != raised);
            // The machine loses its memory; the next boot finds the contents of the disk.
            write(&before.file(), &on_disk).unwrap();
            for wall in [0, NOON - 3_600_000_000, NOON, now] {
                let told = at_boot(&folder, 1).time(wall).as_micros();
                assert!(
                    told > raised.micros,
                    "second {second}, clock at {wall}: {told} after {}",
                    raised.micros
                );
            }
            write(&before.file(), &raised).unwrap();
        }
        assert!(lost >= 30, "most of these raises were in memory alone: {lost}");
        std::fs::remove_dir_all(folder.path()).unwrap();
    }

    #[test]
    fn a_full_list_of_boots_adds_nothing_and_syncs_every_raise_until_the_clock_passes_it() {
        let folder = folder("full");
        make(&folder, &first(NOON, Boots::id(Some("boot 0")))).unwrap();
        for boot in 1..3 * Boots::MAX {
            at_boot(&folder, boot).raise(&folder, NOON).unwrap();
        }
        let full = line(&folder);
        assert!(full.boots.is_full() && full.synced == full.micros, "{full:?}");
        let ahead = full.micros - NOON;
        assert!(ahead <= Boots::MAX as u64 * LOST_MAX, "{ahead}");
        // An ordinary reboot, later.
        let later = full.micros + LOST_MAX;
        at_boot(&folder, 99).raise(&folder, later).unwrap();
        let anew = line(&folder);
        assert_eq!(
            anew,
            MarkLine {
                micros: later,
                synced: later,
                boots: Boots::default().with(Boots::id(Some("boot 99")))
            }
        );
        std::fs::remove_dir_all(folder.path()).unwrap();
    }
}
