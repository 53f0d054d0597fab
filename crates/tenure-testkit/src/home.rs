//! The folder of one server.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A folder of its own for data, settings and output. It goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        // Processes of two pid namespaces may have one number.
        let name = format!("tenure-testkit-{name}-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        fs::create_dir(path.join("data"))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What the server keeps its objects in.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// What the server said, whenever it ran.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("log")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
