use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rustix::fs::{Mode, OFlags};

/// A cgroup of the child's own, where this process may make one: all that is in it dies by one write, however fast it
/// forks, and whoever it runs as.
///
/// Root may make one, and so may users whose service manager leaves them theirs. Elsewhere the sub-reapers do without.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
}

/// A name that no two supervisors have, also where they do not see each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name(u64);

impl Name {
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self(u64::from_ne_bytes(bytes)))
    }
}

impl Cgroup {
    /// Makes it below the cgroup of this process; `None` where that cannot be.
    pub(super) fn make(name: Name) -> Option<Self> {
        let path = path(name)?;
        fs::create_dir(&path).ok()?;
        let made = Self { path };
        if !made.path.join(KILL).exists() {
            // A kernel before 5.14 has no such thing.
            made.remove();
            return None;
        }
        Some(made)
    }

    /// Finds the one that another process made.
    pub(super) fn find(name: Name) -> Option<Self> {
        let path = path(name)?;
        path.exists().then_some(Self { path })
    }

    /// What a process is born in it by.
    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.path, flags, Mode::empty())?)
    }

    /// Kills all that is in it.
    pub(super) fn kill(&self) {
        let _ = fs::write(self.path.join(KILL), "1");
    }

    /// Removes it with those below it, which a nested `tenure run` may have left, if nobody is in them any more.
    pub(super) fn remove(&self) {
        remove(&self.path);
    }

    /// Removes those that were left behind beside it, because supervisor and watchdog were killed together.
    pub(super) fn tidy(&self) {
        let Some(beside) = self.path.parent().and_then(|parent| fs::read_dir(parent).ok()) else { return };
        for entry in beside.flatten() {
            let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
            // One that was just made is empty too. The kernel does not remove one that is not.
            let is_old =
                || entry.metadata().and_then(|made| made.modified()?.elapsed().map_err(io::Error::other));
            if is_ours && is_old().is_ok_and(|age| age > OLD) {
                remove(&entry.path());
            }
        }
    }
}

/// The files in a cgroup go with its folder, and cannot be removed one by one.
fn remove(path: &Path) {
    if fs::remove_dir(path).is_ok() {
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

fn path(Name(name): Name) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    Some(below(&mounts, &own)?.join(format!("{PREFIX}{name:016x}")))
}

/// Where the cgroup of this process is. Only where the whole hierarchy is mounted, or a part of it that this process is
/// in: what is mounted in a container may be another part.
fn below(mounts: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        // id, parent, device, root, mount point, options, …, "-", type, …
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        if !kind.starts_with("cgroup2 ") {
            return None;
        }
        let inside = own.strip_prefix(if root == "/" { "" } else { root })?;
        Some(PathBuf::from(format!("{point}{inside}")))
    })
}

const PREFIX: &str = "tenure-";

const OLD: Duration = Duration::from_secs(60);

const KILL: &str = "cgroup.kill";

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "36 25 0:30 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_cgroup_is_found_below_the_mount() {
        let find = |mounts: &str, own: &str| below(mounts, own).map(|path| path.display().to_string());
        let cron = Some("/sys/fs/cgroup/system.slice/cron.service".to_owned());
        assert_eq!(find(WHOLE, "0::/system.slice/cron.service\n"), cron);
        let both = format!("9:name=systemd:/x\n{}", "0::/\n");
        assert_eq!(
            find(&WHOLE.replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"), &both).unwrap(),
            "/sys/fs/cgroup/unified/"
        );
        let part = WHOLE.replace(" / ", " /box ");
        assert_eq!(find(&part, "0::/box/job\n").unwrap(), "/sys/fs/cgroup/job");
        assert_eq!(find(&part, "0::/other\n"), None);
        assert_eq!(find("36 25 0:30 / /proc rw - proc proc rw\n", "0::/\n"), None);
        assert_eq!(find(WHOLE, "1:cpu:/\n"), None, "no unified hierarchy");
    }
}
