//! The directory of one server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::ran::ran;

/// A directory for the data, settings and output of one server. It is deleted on drop.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    /// The data directory is a file system of its own.
    mounted: bool,
}

impl Home {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        // Processes of two pid namespaces may have the same pid.
        let name = format!("tenure-testkit-{name}-{}-{:016x}", std::process::id(), fastrand::u64(..));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        fs::create_dir(path.join("data"))?;
        Ok(Self { path, mounted: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory in which the server keeps its objects.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Mounts a file system of this size, in memory, as the data directory.
    pub(crate) fn limit_data(&mut self, bytes: u64) -> io::Result<()> {
        let options = format!("size={bytes},mode=700");
        ran(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(self.data()))?;
        self.mounted = true;
        Ok(())
    }

    /// Deletes everything in the data directory, which may be a mount point.
    pub(crate) fn empty_data(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.data())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Writes a file until the file system of the data directory is full.
    pub(crate) fn fill_data(&self) -> io::Result<()> {
        assert!(self.mounted, "only a small disk of its own may be filled");
        let mut filler = fs::File::create(self.data().join(FILLER))?;
        loop {
            match filler.write_all(&[0; 4096]) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes the file that fills the file system.
    pub(crate) fn free_data(&self) -> io::Result<()> {
        fs::remove_file(self.data().join(FILLER))
    }

    /// The log: the output of all runs of the server.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(self.data()).stderr(Stdio::null()).status();
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The file that fills the data directory.
const FILLER: &str = "filler";
