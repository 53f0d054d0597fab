//! Tests that end a writer at each step, or let the step fail.

mod child;
mod crash;
mod failed;
mod power;
mod stopped;
mod suite;

use std::path::{Path, PathBuf};

use super::super::{FenceError, FencingToken};
use super::{FencedFile, FencedLog};
use crate::host::entropy::draw;

/// A directory of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    /// In memory if possible: these tests are about order, and not about the disk.
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        Self::below(if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() })
    }

    fn on_disk() -> Self {
        Self::below(std::env::temp_dir())
    }

    fn below(directory: PathBuf) -> Self {
        let path = directory.join(format!("tenure-fence-{:032x}", u128::from_ne_bytes(draw())));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> FencedFile {
        FencedFile::new(self.data())
    }

    fn log(&self) -> FencedLog {
        FencedLog::new(self.data())
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// The content of the file, or nothing.
    fn content(&self) -> String {
        std::fs::read_to_string(self.data()).unwrap_or_default()
    }

    /// All names.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn token(number: u64) -> FencingToken {
    format!("billing={number}").parse().unwrap()
}

/// One call of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Put,
    Append,
    AppendFrom,
    SealFile,
    SealLog,
}

impl Call {
    const ALL: [Self; 5] = [Self::Put, Self::Append, Self::AppendFrom, Self::SealFile, Self::SealLog];

    fn is_of_log(self) -> bool {
        matches!(self, Self::Append | Self::AppendFrom | Self::SealLog)
    }

    /// Makes the call with a handle of its own.
    fn make(self, folder: &Path, token: &FencingToken, text: &str) -> Result<(), FenceError> {
        let path = folder.join("data");
        let wait = std::time::Duration::from_millis(300);
        let (file, log) = (FencedFile::new(&path).lock_wait(wait), FencedLog::new(&path).lock_wait(wait));
        match self {
            Self::Put => file.put_blocking(token, text.as_bytes()),
            Self::Append => log.append_blocking(token, text.as_bytes()).map(|_| ()),
            Self::AppendFrom => log.append_from_blocking(token, text.as_bytes()).map(|_| ()),
            Self::SealFile => file.seal_blocking(token),
            Self::SealLog => log.seal_blocking(token),
        }
    }

    /// What the file has after this call.
    fn after(self, before: &str, text: &str) -> String {
        match self {
            Self::Put => text.to_owned(),
            Self::Append | Self::AppendFrom => format!("{before}{text}"),
            Self::SealFile | Self::SealLog => before.to_owned(),
        }
    }
}
