//! Cgroups of version 2 in the file system.

use std::fs;
use std::path::PathBuf;

/// The mount point of the hierarchy of version 2; `None` if there is none.
pub fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    Some(PathBuf::from(line.split(' ').nth(4)?))
}

/// The directory of this process's cgroup.
pub fn own_cgroup() -> Option<PathBuf> {
    let own = cgroup_in(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
    Some(cgroup_root()?.join(own.trim_start_matches('/')))
}

/// The cgroup of version 2 in the text of a `/proc/PID/cgroup`.
pub fn cgroup_in(status: &str) -> Option<String> {
    status.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}
