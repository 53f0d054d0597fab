//! Files on the local disk.

use std::io::Read;
use std::path::Path;

use tenure::Error;
use tenure::fence::{FenceError, FencedFile, FencedLog, FencingToken, FileMark};

use super::Found;
use super::input::open_input;
use crate::exit::Failure;

/// What to do with a file that has content and no mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adoption {
    Refuse,
    Adopt,
}

/// Replaces the file with standard input.
pub(super) fn put(path: &Path, token: &FencingToken, adoption: Adoption) -> Result<u64, Failure> {
    let mut counted = Counted { source: open_input()?, bytes: 0 };
    let file = FencedFile::new(path);
    if adoption == Adoption::Adopt {
        file.adopt_blocking(token).map_err(Error::from)?;
    }
    file.put_from_blocking(token, &mut counted).map_err(Error::from)?;
    Ok(counted.bytes)
}

/// Appends standard input to the file, and returns its new length.
pub(super) fn append(path: &Path, token: &FencingToken, adoption: Adoption) -> Result<u64, Failure> {
    let input = open_input()?;
    let log = FencedLog::new(path);
    if adoption == Adoption::Adopt {
        log.adopt_blocking(token).map_err(Error::from)?;
    }
    Ok(log.append_from_blocking(token, input).map_err(Error::from)?)
}

/// Raises the mark.
pub(super) fn seal(path: &Path, token: &FencingToken) -> Result<(), FenceError> {
    let is_log = FileMark::read_blocking(path)?.is_some_and(|mark| mark.log_length().is_some());
    if is_log {
        FencedLog::new(path).seal_blocking(token)
    } else {
        FencedFile::new(path).seal_blocking(token)
    }
}

/// The mark, and the length of the content; `None` if there is neither.
pub(super) fn find(path: &Path) -> Result<Option<Found>, Failure> {
    let mark = FileMark::read_blocking(path).map_err(Error::from)?;
    let length = match std::fs::metadata(path) {
        Ok(status) => Some(status.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(unreadable(path, &error)),
    };
    if mark.is_none() && length.is_none() {
        return Ok(None);
    }
    let complete = mark.as_ref().and_then(FileMark::log_length);
    let length = length.map(|length| complete.map_or(length, |complete| complete.min(length)));
    Ok(Some(Found { mark: mark.map(|mark| mark.token().clone()), length, log_length: complete }))
}

pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unavailable(format!("{} cannot be read: {error}. Check its permissions", path.display()))
}

/// A reader that counts.
struct Counted<R> {
    source: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}
