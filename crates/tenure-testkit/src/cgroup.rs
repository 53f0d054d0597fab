//! Where cgroups of version 2 are in the file system.

use std::fs;
use std::path::PathBuf;

/// Where the hierarchy of version 2 is mounted; `None` where there is none.
pub fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    Some(PathBuf::from(line.split(' ').nth(4)?))
}

/// The folder of the cgroup that this process is in.
pub fn own_cgroup() -> Option<PathBuf> {
    let own = cgroup_in(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
    Some(cgroup_root()?.join(own.trim_start_matches('/')))
}

/// The cgroup of version 2 that the `/proc/NUMBER/cgroup` of a process names.
pub fn cgroup_in(status: &str) -> Option<String> {
    status.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}
