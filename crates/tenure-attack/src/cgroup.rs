use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use tenure_testkit::cgroup_root;

/// A cgroup of version 2 that goes, with all that is in it, when it is dropped.
#[derive(Debug)]
pub(crate) struct Cgroup {
    pub(crate) path: PathBuf,
}

impl Cgroup {
    /// Makes one beside the root of the hierarchy; `None` where there is no hierarchy of version 2.
    pub(crate) fn make(name: &str) -> Option<Self> {
        let path = cgroup_root()?.join(name);
        fs::create_dir(&path).ok()?;
        Some(Self { path })
    }

    /// Kills all that is in it, below it too.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.kill();
        for _ in 0..100 {
            remove(&self.path);
            if !self.path.exists() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        eprintln!("{} could not be removed", self.path.display());
    }
}

/// Moves a process.
pub(crate) fn enter(path: &Path, number: i32) -> Result<(), String> {
    fs::write(path.join("cgroup.procs"), number.to_string())
        .map_err(|error| format!("process {number} cannot be moved to {}: {error}", path.display()))
}

/// The files of a cgroup go with its folder, and cannot be removed one by one.
fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}
