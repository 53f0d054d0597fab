//! A trial of every operation that the store needs, in the directory itself: the name of a file system does not
//! guarantee its behaviour.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FlockOperation, OFlags, Stat};
use rustix::io::Errno;

use super::directory::Directory;
use super::name;

/// Failure of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrialFailure {
    /// The file system misbehaves in this way.
    Flaw(&'static str),
    /// A call that must succeed failed.
    Errno(Errno),
}

impl From<Errno> for TrialFailure {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// Tries create, read, lock, replace, remove and sync on two files of its own.
///
/// The files have names of unfinished writes: if this process dies during the trial, the cleanup removes them.
pub(super) fn run(directory: &Directory) -> Result<(), TrialFailure> {
    let entry = TrialName::new(directory);
    let new = TrialName::new(directory);
    let first = create(&entry)?;
    let again = read_back(&entry, &first)?;
    excludes(&entry, &first, &again)?;
    replaces(&entry, &new, &again)?;
    keeps_taken_name(&entry, &new)?;
    entry.directory.unlink(&entry.name)?;
    expect(entry.is_missing(), "a removed file still exists")?;
    Ok(directory.sync()?)
}

/// Of two creates of one name, only the first succeeds.
fn create(entry: &TrialName<'_>) -> Result<OwnedFd, TrialFailure> {
    let file = entry.directory.create(&entry.name, OFlags::RDWR)?;
    match entry.directory.create(&entry.name, OFlags::RDWR) {
        Err(Errno::EXIST) => Ok(file),
        Err(errno) => Err(errno.into()),
        Ok(_) => Err(TrialFailure::Flaw("a create succeeds although the name exists")),
    }
}

/// Opened again, it is the same file, and shows written content at once.
fn read_back(entry: &TrialName<'_>, file: &OwnedFd) -> Result<OwnedFd, TrialFailure> {
    let again = entry.directory.open(&entry.name, OFlags::RDWR)?;
    let made = id(&rustix::fs::fstat(file)?);
    let stays =
        id(&rustix::fs::fstat(&again)?) == made && id(&entry.directory.status_of(&entry.name)?) == made;
    expect(stays, "a file has another inode number when it is opened again")?;
    for bytes in [FIRST, SECOND] {
        write(file, bytes)?;
        expect(reads(&again, bytes)?, "a read does not return what was written")?;
    }
    Ok(again)
}

/// Only one descriptor has the lock, until it releases it. Nothing else releases it.
///
/// The trial does not test closing the file: a process that is forked in the meantime has a copy of the descriptor, and
/// the lock with it.
fn excludes(entry: &TrialName<'_>, one: &OwnedFd, other: &OwnedFd) -> Result<(), TrialFailure> {
    const TWICE: &str = "two processes get one lock at the same time";
    expect(takes_lock(one)?, "a free lock cannot be taken")?;
    expect(!takes_lock(other)?, TWICE)?;
    drop(entry.directory.open(&entry.name, OFlags::RDONLY)?);
    expect(!takes_lock(other)?, "a lock is lost when another descriptor of the file is closed")?;
    rustix::fs::flock(one, FlockOperation::Unlock)?;
    expect(takes_lock(other)?, "a lock is not released")?;
    expect(!takes_lock(one)?, TWICE)?;
    Ok(rustix::fs::flock(other, FlockOperation::Unlock)?)
}

/// A rename replaces the old file, which stays complete for readers that have it open.
fn replaces(entry: &TrialName<'_>, new: &TrialName<'_>, reader: &OwnedFd) -> Result<(), TrialFailure> {
    let file = new.directory.create(&new.name, OFlags::RDWR)?;
    write(&file, THIRD)?;
    rustix::fs::fsync(&file)?;
    entry.directory.rename(&new.name, &entry.name)?;
    entry.directory.sync()?;
    let there = entry.directory.open(&entry.name, OFlags::RDONLY)?;
    let is_new = reads(&there, THIRD)? && id(&rustix::fs::fstat(&there)?) == id(&rustix::fs::fstat(&file)?);
    expect(is_new, "a rename does not replace the file")?;
    expect(new.is_missing(), "a renamed file keeps its old name")?;
    expect(reads(reader, SECOND)?, "replacing a file changes it for its readers")
}

/// A rename that requires a free name does not replace an existing file. Not every file system has this rename.
fn keeps_taken_name(entry: &TrialName<'_>, new: &TrialName<'_>) -> Result<(), TrialFailure> {
    new.directory.create(&new.name, OFlags::RDWR)?;
    match entry.directory.rename_unless_there(&new.name, &entry.name) {
        Err(Errno::EXIST | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(errno.into()),
        Ok(()) => Err(TrialFailure::Flaw("a rename takes a name that must be free")),
    }
}

/// A name for the trial. Its file is removed on drop.
struct TrialName<'a> {
    directory: &'a Directory,
    name: String,
}

impl<'a> TrialName<'a> {
    fn new(directory: &'a Directory) -> Self {
        Self { directory, name: name::temporary(super::random()) }
    }

    fn is_missing(&self) -> bool {
        matches!(self.directory.status_of(&self.name), Err(Errno::NOENT))
    }
}

impl Drop for TrialName<'_> {
    fn drop(&mut self) {
        let _ = self.directory.unlink(&self.name);
    }
}

fn expect(is_so: bool, otherwise: &'static str) -> Result<(), TrialFailure> {
    if is_so { Ok(()) } else { Err(TrialFailure::Flaw(otherwise)) }
}

fn id(status: &Stat) -> (u64, u64) {
    (status.st_dev, status.st_ino)
}

fn takes_lock(file: impl AsFd) -> Result<bool, Errno> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn write(file: &OwnedFd, bytes: &[u8; BYTES]) -> Result<(), Errno> {
    match rustix::io::pwrite(file, bytes, 0)? {
        BYTES => Ok(()),
        _ => Err(Errno::NOSPC),
    }
}

fn reads(file: &OwnedFd, bytes: &[u8; BYTES]) -> Result<bool, Errno> {
    let mut read = [0; BYTES + 1];
    let length = rustix::io::pread(file, &mut read[..], 0)?;
    Ok(&read[..length] == bytes)
}

const BYTES: usize = 8;
const FIRST: &[u8; BYTES] = b"trial 1\n";
const SECOND: &[u8; BYTES] = b"trial 2\n";
const THIRD: &[u8; BYTES] = b"trial 3\n";
