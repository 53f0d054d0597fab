//! The folder of one server.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

/// A folder of its own for data, settings and output. It goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("tenure-testkit-{name}-{}-{number}", std::process::id()));
        // Left by an earlier process of the same number.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("data"))?;
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
