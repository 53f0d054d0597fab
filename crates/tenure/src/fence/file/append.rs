//! The append to a log, under the lock of its mark.
//!
//! 1. The mark says what is to be written: the token, the length before, the number of bytes, their checksum. It is on the
//!    disk before the new length of the log is. For a token that is on the disk already, ext4 needs no sync of its own for
//!    that.
//! 2. The bytes are written and put on the disk.
//! 3. The mark says that they are complete. This is not synced: without it, the next writer compares the checksum.

use std::io::{self, Read};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::super::{FenceError, FencingToken};
use super::mark::{Content, Intent, Tail};
use super::place::Place;
use super::sidecar::{Admitted, Sidecar};
use super::step::{Step, pass};
use super::tail::TailState;
use super::unfinished::Unfinished;
use crate::clock::boot_id;
use crate::host::checksum::{PartChecksum, checksum};

/// What is appended.
pub(super) enum Appended<'s> {
    Bytes(&'s [u8]),
    /// All bytes up to the end of the reader.
    From(&'s mut dyn Read),
}

/// Appends, and returns the new length.
pub(super) fn append(
    sidecar: &Sidecar,
    token: &FencingToken,
    appended: Appended<'_>,
) -> Result<u64, FenceError> {
    let place = sidecar.place()?;
    match appended {
        Appended::Bytes(bytes) => {
            let source = Source { length: bytes.len() as u64, checksum: checksum(&[bytes]) };
            append_source(sidecar, &place, token, source, bytes)
        }
        Appended::From(reader) => {
            // The length and the checksum must be known before the lock is taken.
            sidecar.refuse_early(&place, token)?;
            let spool = Unfinished::create(&place)?;
            let mut sum = PartChecksum::new();
            spool.fill(reader, |piece| sum.add(piece))?;
            let source = Source { length: sum.length(), checksum: sum.finish() };
            let spooled = SpoolReader { file: spool.file(), at: 0 };
            append_source(sidecar, &place, token, source, spooled)
        }
    }
}

/// Raises the mark, and completes or cuts off what a dead writer has left.
pub(super) fn seal(sidecar: &Sidecar, token: &FencingToken) -> Result<(), FenceError> {
    let place = sidecar.place()?;
    let mut admitted = sidecar.admit(&place, token)?;
    let Content::Log(tail @ Tail::Appending(_)) = admitted.mark().content else { return admitted.raise() };
    let log = open_or_create(&place, tail)?;
    let length = settle(&place, &log, tail, this_boot())?;
    admitted.write(Content::Log(Tail::Settled(length)))
}

/// Accepts the log as it is.
pub(super) fn adopt(sidecar: &Sidecar, token: &FencingToken) -> Result<(), FenceError> {
    let place = sidecar.place()?;
    let mut admitted = sidecar.admit_adopting(&place, token)?;
    let length = match place.data()? {
        None => 0,
        Some(_) => {
            let log = open(&place)?;
            // If a power cut could take bytes from it, it would be shorter than its mark.
            rustix::fs::fsync(&log).map_err(|errno| place.io_error("cannot sync", place.name(), errno))?;
            size(&place, &log)?
        }
    };
    admitted.write(Content::Log(Tail::Settled(length)))
}

/// Length and checksum of the appended bytes.
#[derive(Clone, Copy)]
struct Source {
    length: u64,
    checksum: u64,
}

fn append_source(
    sidecar: &Sidecar,
    place: &Place,
    token: &FencingToken,
    source: Source,
    bytes: impl Read,
) -> Result<u64, FenceError> {
    let mut admitted = sidecar.admit(place, token)?;
    let Content::Log(tail) = admitted.mark().content else {
        unreachable!("only the mark of a log is admitted")
    };
    let log = open_or_create(place, tail)?;
    let boot = this_boot();
    let from = settle(place, &log, tail, boot)?;
    let Source { length, checksum } = source;
    let end = from.checked_add(length).filter(|end| i64::try_from(*end).is_ok());
    let end = end.ok_or_else(|| place.io_error("cannot append to", place.name(), Errno::FBIG))?;
    if length == 0 {
        admitted.write(Content::Log(Tail::Settled(from)))?;
        return Ok(from);
    }
    admitted.write_before_growth(Content::Log(Tail::Appending(Intent { from, length, checksum, boot })))?;
    let written = write(place, &log, from, end, bytes);
    match &written {
        Ok(()) => settled(&mut admitted, end),
        // The bytes were removed. What another program appends from here on is not the rest of this append.
        Err(FenceError::Refused { .. }) => settled(&mut admitted, from),
        Err(_) => {}
    }
    written.map(|()| end)
}

/// A number of this boot of the kernel; zero if it is not known.
fn this_boot() -> u64 {
    boot_id().map_or(0, |id| checksum(&[id.as_bytes()]))
}

/// Says that the log is complete up to here. If that fails, the next writer compares the checksum.
fn settled(admitted: &mut Admitted<'_>, end: u64) {
    if pass(Step::Settle).is_ok() {
        let _ = admitted.write_unsynced(Content::Log(Tail::Settled(end)));
    }
}

/// Completes or cuts off what a dead writer has left, and returns the length of the log. It is on the disk then, so that
/// no power cut makes the log shorter than the next mark says.
fn settle(place: &Place, log: &OwnedFd, tail: Tail, boot: u64) -> Result<u64, FenceError> {
    let name = place.name();
    let judged = tail.judge(size(place, log)?, boot, |intent| is_whole(place, log, intent))?;
    let (length, done) = match judged {
        TailState::Complete(length) => return Ok(length),
        TailState::Unsynced(length) => (length, Ok(())),
        TailState::Torn(length) => {
            (length, pass(Step::Truncate).and_then(|()| rustix::fs::ftruncate(log, length)))
        }
        TailState::Foreign(what) => {
            return Err(place.foreign(format!(
                "{what}. Nothing was cut off. Restore it, or adopt it as it is (adopt_blocking, in the command --adopt)"
            )));
        }
    };
    done.and_then(|()| rustix::fs::fsync(log))
        .map_err(|errno| place.io_error("cannot repair the end of", name, errno))?;
    Ok(length)
}

/// Writes the bytes and puts them on the disk. If that fails, it removes them again.
fn write(place: &Place, log: &OwnedFd, from: u64, end: u64, mut bytes: impl Read) -> Result<(), FenceError> {
    let name = place.name();
    if let Err(errno) = write_at(log, from, end, &mut bytes) {
        // The mark still tells the next writer to cut off what remains. But readers may see it.
        return Err(match rustix::fs::ftruncate(log, from) {
            Ok(()) => place.io_error("cannot append to", name, errno),
            Err(_) => place.unknown("cannot append to", name, errno),
        });
    }
    let there = rustix::fs::fstat(log).map_err(|errno| place.unknown("cannot inspect", name, errno))?;
    if there.st_size.unsigned_abs() != end {
        let what = format!("it does not have {end} bytes: another program wrote to it at the same time");
        return Err(FenceError::unknown(place.resource(), what));
    }
    let synced = pass(Step::SyncLog).and_then(|()| rustix::fs::fdatasync(log));
    synced.map_err(|errno| {
        // The kernel may now take the unwritten pages for written ones. A later sync would not write them.
        let _ = rustix::fs::ftruncate(log, from);
        place.unknown("cannot sync", name, errno)
    })
}

fn write_at(log: &OwnedFd, from: u64, end: u64, bytes: &mut impl Read) -> Result<(), Errno> {
    pass(Step::Append)?;
    let mut buffer = vec![0; BUFFER];
    let mut at = from;
    while at < end {
        let most = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        let read = bytes
            .read(&mut buffer[..most])
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if read == 0 {
            // The spooled file is shorter than it was.
            return Err(Errno::IO);
        }
        let mut left = &buffer[..read];
        #[cfg(test)]
        {
            // A test can end the process in the middle.
            let half = read / 2;
            at += rustix::io::pwrite(log, &left[..half], at)? as u64;
            left = &left[half..];
            pass(Step::AppendRest)?;
        }
        while !left.is_empty() {
            match rustix::io::pwrite(log, left, at) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(written) => (left, at) = (&left[written..], at + written as u64),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

/// True if the bytes of this append are those that were meant.
fn is_whole(place: &Place, log: &OwnedFd, intent: &Intent) -> Result<bool, FenceError> {
    let mut reader = SpoolReader { file: log, at: intent.from }.take(intent.length);
    let mut sum = PartChecksum::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(sum.length() == intent.length && sum.finish() == intent.checksum),
            Ok(read) => sum.add(&buffer[..read]),
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(place.io_error("cannot read", place.name(), errno));
            }
        }
    }
}

/// Opens the log. It is created only if nothing was appended to it before.
fn open_or_create(place: &Place, tail: Tail) -> Result<OwnedFd, FenceError> {
    let is_new = place.data()?.is_none();
    if !is_new {
        return open(place);
    }
    if tail.length() > 0 {
        return Err(place.foreign(format!(
            "it is gone, and {} bytes were appended: restore it, or adopt the path as a new log \
             (adopt_blocking, in the command --adopt)",
            tail.length()
        )));
    }
    let flags =
        OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |errno| place.io_error("cannot create", place.name(), errno);
    let log = rustix::fs::openat(place.directory(), place.name(), flags, Mode::from_raw_mode(0o666))
        .map_err(failed)?;
    place.directory().sync().map_err(failed)?;
    Ok(log)
}

fn open(place: &Place) -> Result<OwnedFd, FenceError> {
    let failed = |errno| place.io_error("cannot open", place.name(), errno);
    // Appending, so that no byte is written over one that another program appends at the same time.
    let log = place.open(place.name(), OFlags::RDWR | OFlags::APPEND).map_err(failed)?;
    let names = rustix::fs::fstat(&log).map_err(failed)?.st_nlink;
    if names > 1 {
        return Err(place.foreign(format!(
            "it has {names} names, and through another one it has another mark, or none: copy it to a file of its own"
        )));
    }
    Ok(log)
}

fn size(place: &Place, log: &OwnedFd) -> Result<u64, FenceError> {
    let status =
        rustix::fs::fstat(log).map_err(|errno| place.io_error("cannot inspect", place.name(), errno))?;
    Ok(status.st_size.unsigned_abs())
}

/// Reads an open file from a position on.
struct SpoolReader<'f> {
    file: &'f OwnedFd,
    at: u64,
}

impl Read for SpoolReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(self.file, &mut *buffer, self.at))?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Bytes that are copied at a time.
const BUFFER: usize = 256 << 10;
