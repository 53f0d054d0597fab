//! The directory of one server.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A directory for the data, settings and output of one server. It is deleted on drop.
#[derive(Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        // Processes of two pid namespaces may have the same pid.
        let name = format!("tenure-testkit-{name}-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        fs::create_dir(path.join("data"))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The directory in which the server keeps its objects.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// The log: the output of all runs of the server.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("log")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
