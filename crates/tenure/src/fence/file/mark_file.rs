use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{FileType, FlockOperation, OFlags, Stat};
use rustix::io::Errno;

use super::super::FenceError;
use super::mark::FenceMark;
use super::place::{Place, id};
use super::step::{Step, pass};
use super::unfinished::Unfinished;
use crate::Reason;
use crate::clock::{BootClock, Clock};
use crate::host::disk::lock_owner::LockOwner;
use crate::host::disk::write_out::write_out;
use crate::host::pause::pause;

/// The mark file of a fenced file, locked. The kernel releases the lock when its owner dies.
///
/// The lock is held from the check of the token until the write is done, so that no other writer comes between the two. A
/// writer that is stopped in between keeps the lock, and no other writer passes it.
#[derive(Debug)]
pub(super) struct MarkFile<'p> {
    place: &'p Place,
    name: String,
    file: OwnedFd,
    id: (u64, u64),
}

impl<'p> MarkFile<'p> {
    /// Takes the lock; `None` if there is no mark file. Waits this long for other writers.
    pub(super) fn lock(place: &'p Place, wait: Duration) -> Result<Option<Self>, FenceError> {
        let mut name = place.mark_name();
        let began = BootClock.now();
        let mut span = PAUSE;
        loop {
            let file = match place.open(&name, OFlags::RDWR) {
                Err(Errno::NOENT) => return Ok(None),
                opened => opened.map_err(|errno| place.io_error("cannot open", &name, errno))?,
            };
            let opened = is_usable(place, &name, &file)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let locked = Self { place, name, file, id: id(&opened) };
                    // If the name leads to another file now, the lock excludes no other writer.
                    match place.directory().status_of(&locked.name) {
                        Ok(there) if id(&there) == locked.id => return Ok(Some(locked)),
                        Ok(_) | Err(Errno::NOENT) => name = locked.into_name(),
                        Err(errno) => return Err(place.io_error("cannot inspect", &locked.name, errno)),
                    }
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(place.io_error("cannot lock", &name, errno)),
            }
            if BootClock.now().since(began) >= wait {
                return Err(kept(place, &name, wait));
            }
            pause(span);
            span = (span * 2).min(PAUSE_MAX);
        }
    }

    /// Creates the mark file with this mark, on the disk. Another process may be faster.
    pub(super) fn create(place: &Place, mark: &FenceMark) -> Result<(), FenceError> {
        let temporary = Unfinished::create(place)?;
        temporary.write(&mark.encode())?;
        // Every user who may write to the file must be able to raise its mark.
        temporary.be_like(place.data()?.as_ref(), OWNER_WRITES)?;
        temporary.sync()?;
        let name = place.mark_name();
        let named = pass(Step::NameMark)
            .and_then(|()| place.directory().rename_unless_there(temporary.name(), &name));
        match named {
            Ok(()) => temporary.renamed(),
            Err(Errno::EXIST) => drop(temporary),
            Err(errno) => return Err(place.io_error("cannot create", &name, errno)),
        }
        place.directory().sync().map_err(|errno| place.io_error("cannot sync the directory of", &name, errno))
    }

    /// Reads the mark without the lock; `None` if there is no mark file.
    pub(super) fn peek(place: &Place) -> Result<Option<FenceMark>, FenceError> {
        let name = place.mark_name();
        let file = match place.open(&name, OFlags::RDONLY) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened.map_err(|errno| place.io_error("cannot open", &name, errno))?,
        };
        is_usable(place, &name, &file)?;
        // A read during a write may see both, and is repeated.
        for _ in 0..READ_TRIES {
            if let Ok(Ok(mark)) = read(&file) {
                return Ok(Some(mark));
            }
            pause(PAUSE);
        }
        parse(place, &name, &file).map(Some)
    }

    /// The mark.
    pub(super) fn read(&self) -> Result<FenceMark, FenceError> {
        parse(self.place, &self.name, &self.file)
    }

    /// Writes the mark. It is on the disk after [`sync`](Self::sync).
    pub(super) fn write(&self, mark: &FenceMark) -> Result<(), FenceError> {
        let bytes = mark.encode();
        let written = pass(Step::WriteMark).and_then(|()| rustix::io::pwrite(&self.file, &bytes, 0));
        match written {
            Ok(FenceMark::BYTES) => Ok(()),
            // The file has its full size from the start, so this does not happen on a local file system.
            Ok(_) => Err(self.place.io_error("cannot write", &self.name, Errno::NOSPC)),
            Err(errno) => Err(self.place.io_error("cannot write", &self.name, errno)),
        }
    }

    /// Puts the mark on the disk. No write may follow if this fails.
    pub(super) fn sync(&self) -> Result<(), FenceError> {
        let synced = pass(Step::SyncMark).and_then(|()| rustix::fs::fdatasync(&self.file));
        synced.map_err(|errno| self.place.io_error("cannot sync", &self.name, errno))
    }

    /// Puts the mark on the disk before the size of a file that grows from here on. The sync of that file then covers both.
    pub(super) fn sync_before_growth(&self) -> Result<(), FenceError> {
        if !self.place.file_system().grows_after_earlier_writes() {
            return self.sync();
        }
        let written = pass(Step::SyncMark).and_then(|()| write_out(&self.file));
        written.map_err(|errno| self.place.io_error("cannot sync", &self.name, errno))
    }

    /// Identity of the mark file: a restored one is another file.
    pub(super) fn id(&self) -> (u64, u64) {
        self.id
    }

    /// Releases the lock.
    fn into_name(mut self) -> String {
        std::mem::take(&mut self.name)
    }
}

impl Drop for MarkFile<'_> {
    fn drop(&mut self) {
        let _ = pass(Step::Unlock);
        // Explicit: a process that was forked in the meantime has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// Fails if the open file is not one that Tenure may write to: it could be another user's, under this name on purpose.
fn is_usable(place: &Place, name: &str, file: &OwnedFd) -> Result<Stat, FenceError> {
    let status = rustix::fs::fstat(file).map_err(|errno| place.io_error("cannot inspect", name, errno))?;
    let owner = status.st_uid;
    let data_owner = || place.data().map(|data| data.is_some_and(|data| data.st_uid == owner));
    let what = if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        "it is not a plain file".to_owned()
    } else if status.st_nlink > 1 {
        format!("it has {} names, and writing to it would change another file", status.st_nlink)
    } else if owner != 0 && !place.directory().may_own(&status) && !data_owner()? {
        format!("it belongs to user {owner}, who owns neither the file nor its directory")
    } else {
        return Ok(status);
    };
    Err(unusable(place, name, &what))
}

fn read(file: &OwnedFd) -> rustix::io::Result<Result<FenceMark, &'static str>> {
    let mut bytes = [0; FenceMark::BYTES + 1];
    let read = rustix::io::pread(file, &mut bytes[..], 0)?;
    Ok(FenceMark::parse(&bytes[..read]))
}

fn parse(place: &Place, name: &str, file: &OwnedFd) -> Result<FenceMark, FenceError> {
    let mark = read(file).map_err(|errno| place.io_error("cannot read", name, errno))?;
    mark.map_err(|what| unusable(place, name, what))
}

fn unusable(place: &Place, name: &str, what: &str) -> FenceError {
    let path = place.path_of(name);
    place.foreign(format!(
        "its mark {} cannot be used: {what}. It is not known which tokens were admitted. Stop all writers, move the mark \
         away, and adopt the file under the token of the present holder (adopt_blocking, in the command --adopt)",
        path.display()
    ))
}

/// Another process kept the lock.
fn kept(place: &Place, name: &str, wait: Duration) -> FenceError {
    let path = place.path_of(name);
    let path = path.display();
    let owner = LockOwner::of(place.directory(), name);
    let who = owner.map_or_else(
        || format!("find the process that has the lock (fuser -v {path}), and continue or kill it"),
        |owner| owner.to_string(),
    );
    place.refused(Reason::Unreachable, format!("its mark {path} was locked for more than {wait:?}: {who}"))
}

/// Permission that the mark always has.
const OWNER_WRITES: u32 = 0o600;

const PAUSE: Duration = Duration::from_micros(100);
const PAUSE_MAX: Duration = Duration::from_millis(4);

const READ_TRIES: u32 = 8;
