use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use tenure_testkit::cgroup_root;

/// A cgroup of version 2. Dropping it kills its processes and removes it.
#[derive(Debug)]
pub(crate) struct Cgroup {
    pub(crate) path: PathBuf,
}

impl Cgroup {
    /// Creates a cgroup below the root of the hierarchy; `None` if there is no hierarchy of version 2.
    pub(crate) fn make(name: &str) -> Option<Self> {
        let path = cgroup_root()?.join(name);
        fs::create_dir(&path).ok()?;
        Some(Self { path })
    }

    /// Kills all processes in the cgroup and below it.
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
        eprintln!("{} cannot be removed", self.path.display());
    }
}

/// Moves a process into a cgroup.
pub(crate) fn enter(path: &Path, number: i32) -> Result<(), String> {
    fs::write(path.join("cgroup.procs"), number.to_string())
        .map_err(|error| format!("process {number} cannot be moved to {}: {error}", path.display()))
}

/// Removes directories only: the files of a cgroup disappear with its directory, and cannot be removed one by one.
fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}
