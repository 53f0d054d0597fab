use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::output;

/// The temporary directory of a demo: private, with a random name, and removed at the end.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    removed: bool,
}

impl Scratch {
    pub(super) fn new() -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            let parent = std::env::temp_dir();
            Failure::unavailable(format!(
                "the demo has no temporary directory in {}: {error}. Name a writable local directory in TMPDIR",
                parent.display()
            ))
        };
        let mut name = [0; 8];
        rustix::rand::getrandom(&mut name, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| cannot(error.into()))?;
        let name = format!("tenure-demo-{:016x}", u64::from_ne_bytes(name));
        let path = std::path::absolute(std::env::temp_dir().join(name)).map_err(cannot)?;
        // Fails if it exists: another user may have made it.
        DirBuilder::new().mode(0o700).create(&path).map_err(cannot)?;
        Ok(Self { path, removed: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory. No worker is alive any more.
    pub(super) fn remove(mut self, json: bool) {
        self.removed = true;
        if let Err(error) = fs::remove_dir_all(&self.path) {
            let path = self.path.display();
            output::warn(&format!("the directory of the demo, {path}, is left: {error}. Remove it"), json);
        }
    }
}

impl Drop for Scratch {
    /// After a panic.
    fn drop(&mut self) {
        if !self.removed {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
