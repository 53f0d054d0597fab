use std::path::Path;

use super::super::{FenceError, FencingToken};
use super::mark::Content;
use super::mark_file::MarkFile;
use super::place::Place;

/// What the mark beside a file says, for tools that do not know whether it is a file or a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMark {
    token: FencingToken,
    log_length: Option<u64>,
}

impl FileMark {
    /// Reads the mark of the file at this path; `None` if the file is not fenced. Blocks this thread.
    pub fn read_blocking(path: impl AsRef<Path>) -> Result<Option<Self>, FenceError> {
        let place = Place::find(path.as_ref())?;
        place.data()?;
        Ok(MarkFile::peek(&place)?.map(|mark| {
            let log_length = match mark.content {
                Content::File => None,
                Content::Log(tail) => Some(tail.length()),
            };
            Self { token: mark.token, log_length }
        }))
    }

    /// The greatest admitted token.
    pub fn token(&self) -> &FencingToken {
        &self.token
    }

    /// Length of a log without an append that was begun and is not known to be complete; `None` for a file that is
    /// replaced as a whole.
    pub fn log_length(&self) -> Option<u64> {
        self.log_length
    }
}
