use std::collections::VecDeque;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use rustix::event::poll;
use rustix::fs::{Access, FlockOperation, Mode, OFlags};
use rustix::time::Timespec;
use tenure::clock::{BootClock, Clock};

use super::cgroup_texts::CgroupTexts;
use super::mount::Mount;

/// A cgroup for the child, if this process may create one: one write kills all of its processes, however fast they
/// fork, and whichever user they run as.
///
/// Root may create one, and so may users with a delegated cgroup from the service manager. Elsewhere, the sub-reapers
/// work without one.
///
/// All descriptors that are needed to kill the tree are open from the start: so a guard can kill the
/// tree even if the machine has no free descriptor.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    /// The directory, with a shared lock. Only guards hold one, so an exclusive lock proves that both are dead.
    directory: OwnedFd,
    kill: OwnedFd,
    events: OwnedFd,
}

/// Identifies the lease of a cgroup's command: a hash of store and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseMark(u64);

impl LeaseMark {
    /// Two builds with different hashes only miss each other's leftovers.
    pub(super) fn of(store: &str, key: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (store, key).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Path of the cgroup of a run, if there can be one, with a unique name for each supervisor.
///
/// It is determined once, before the guards fork: either may be moved to another cgroup later.
#[derive(Clone, Debug)]
pub(super) struct CgroupPath(Option<PathBuf>);

impl CgroupPath {
    pub(super) fn new(mark: LeaseMark, texts: &CgroupTexts) -> io::Result<Self> {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        let name = format!("{}{:016x}", prefix_of(mark), u64::from_ne_bytes(bytes));
        Ok(Self(own_directory_in(texts).map(|own| own.join(name))))
    }

    /// True if there is a cgroup.
    pub(super) fn exists(&self) -> bool {
        self.0.as_ref().is_some_and(|path| path.exists())
    }
}

fn prefix_of(LeaseMark(mark): LeaseMark) -> String {
    format!("{PREFIX}{mark:016x}-")
}

impl Cgroup {
    /// Creates it; `None` if that is not possible.
    pub(super) fn make(CgroupPath(path): &CgroupPath) -> Option<Self> {
        let path = path.clone()?;
        // For this user alone: other users cannot open it, so they cannot lock it, and cannot pass for a guard.
        fs::DirBuilder::new().mode(0o700).create(&path).ok()?;
        let made = Self::open(path.clone());
        if made.is_none() {
            // A kernel before 5.14 cannot kill a cgroup with one write.
            let _ = fs::remove_dir(&path);
        }
        made
    }

    /// Opens the one that another process created.
    pub(super) fn find(CgroupPath(path): &CgroupPath) -> Option<Self> {
        Self::open(path.clone()?)
    }

    fn open(path: PathBuf) -> Option<Self> {
        let directory = open_directory(&path).ok()?;
        rustix::fs::flock(&directory, FlockOperation::NonBlockingLockShared).ok()?;
        Self::at(path, directory).ok()
    }

    fn at(path: PathBuf, directory: OwnedFd) -> io::Result<Self> {
        let open =
            |name: &str, flags| rustix::fs::openat(&directory, name, flags | OFlags::CLOEXEC, Mode::empty());
        let kill = open("cgroup.kill", OFlags::WRONLY)?;
        let events = open("cgroup.events", OFlags::RDONLY)?;
        Ok(Self { path, directory, kill, events })
    }

    /// Descriptors that the watchdog keeps.
    pub(super) fn descriptors(&self) -> [RawFd; 3] {
        [&self.directory, &self.kill, &self.events].map(AsRawFd::as_raw_fd)
    }

    /// Kills everything in it.
    pub(super) fn kill(&self) {
        let _ = rustix::io::write(&self.kill, b"1");
    }

    /// True if a process is in it or below it, including one of another pid namespace that `/proc` does not show here.
    pub(super) fn is_populated(&self) -> bool {
        let mut text = [0; 256];
        let read = rustix::io::pread(&self.events, &mut text, 0).unwrap_or(0);
        text[..read].split(|&byte| byte == b'\n').any(|line| line == b"populated 1")
    }

    /// Removes it and those below it, which a nested `tenure run` may have left, if they are empty.
    pub(super) fn remove(&self) {
        remove(&self.path);
    }

    /// Removes those that were left beside it because supervisor and watchdog were killed together.
    pub(super) fn remove_leftovers(&self) {
        let Some(beside) = self.path.parent().and_then(|parent| fs::read_dir(parent).ok()) else { return };
        for entry in beside.flatten() {
            let is_ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
            // A new one is empty too. The kernel does not remove one with processes.
            let is_old =
                || entry.metadata().and_then(|made| made.modified()?.elapsed().map_err(io::Error::other));
            if is_ours && is_old().is_ok_and(|age| age > LEFTOVER_AGE) {
                remove(&entry.path());
            }
        }
    }
}

impl AsFd for Cgroup {
    /// The directory, in which the child is created.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Kills the leftovers of earlier runs of the same lease in their cgroups, wherever these are. True if there were
/// processes.
///
/// A cgroup is touched only after both guards of its run are dead: each of them holds a lock on it until then. A
/// process that may not create a cgroup may not kill one either, and skips the search.
pub(super) fn end_leftovers(mark: LeaseMark) -> bool {
    // Read again for each search: a wait may be long, and the cgroup another one by now.
    let texts = CgroupTexts::read();
    let own = own_directory_in(&texts);
    let may_make = own.is_some_and(|own| rustix::fs::access(&own, Access::WRITE_OK).is_ok());
    let Some(hierarchy) = hierarchies(&texts.mounts).next().filter(|_| may_make) else { return false };
    let top = PathBuf::from(hierarchy.point);
    let prefix = prefix_of(mark);
    let mut ended = false;
    for_each_below(
        top,
        |directory| fs::read_dir(directory),
        |path, name| {
            if name.as_encoded_bytes().starts_with(prefix.as_bytes()) {
                ended |= end_leftover(path);
            }
        },
    );
    ended
}

/// Visits the cgroups below this one. A cgroup without others below it is not listed: a listing takes far longer than
/// reading its status, and the machine may have thousands.
fn for_each_below(
    top: PathBuf,
    mut list: impl FnMut(&Path) -> io::Result<fs::ReadDir>,
    mut visit: impl FnMut(&Path, &OsStr),
) {
    let mut directories = VecDeque::from([top]);
    for _ in 0..DIRECTORIES_MAX {
        let Some(directory) = directories.pop_front() else { break };
        for entry in list(&directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            visit(&entry.path(), &entry.file_name());
            // Two links of its own, and one for each directory below it. Some file systems do not count links, and
            // report 1.
            if entry.metadata().is_ok_and(|directory| directory.nlink() != 2) {
                directories.push_back(entry.path());
            }
        }
    }
}

/// True if processes were in it, and are killed.
fn end_leftover(path: &Path) -> bool {
    let Ok(directory) = open_directory(path) else { return false };
    // If neither lock can be taken, another run has the exclusive one, which proves the same. That run may be stopped.
    if rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).is_err()
        && rustix::fs::flock(&directory, FlockOperation::NonBlockingLockShared).is_ok()
    {
        return false;
    }
    let Ok(left) = Cgroup::at(path.to_owned(), directory) else { return false };
    let populated = left.is_populated();
    if populated {
        left.kill();
        // The next command starts after this.
        let clock = BootClock::new();
        let limit = clock.now() + DYING_MAX;
        while left.is_populated() && clock.now() < limit {
            let _ = poll(&mut [], Some(&DYING_LOOK));
        }
    }
    left.remove();
    populated
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The kernel removes the files of a cgroup with its directory; they cannot be removed one by one.
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

/// The directory of this process's cgroup; `None` unless the complete hierarchy is mounted, or a part that contains
/// this process. A container may mount another part.
fn own_directory_in(texts: &CgroupTexts) -> Option<PathBuf> {
    let own = texts.own.lines().find_map(|line| line.strip_prefix("0::"))?;
    hierarchies(&texts.mounts).find_map(|mount| mount.directory_of(own))
}

/// The mounted parts of the unified hierarchy.
fn hierarchies(mounts: &str) -> impl Iterator<Item = Mount<'_>> {
    Mount::all(mounts).filter(|mount| mount.kind == "cgroup2")
}

const PREFIX: &str = "tenure-";

const LEFTOVER_AGE: Duration = Duration::from_secs(60);

/// Time that a run waits for killed processes, and the pause between two checks. A process that sleeps in the kernel is
/// not waited for longer: it does nothing until it dies.
const DYING_MAX: Duration = Duration::from_secs(2);
const DYING_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Maximum number of cgroups to list: more than a machine has services.
const DIRECTORIES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "36 25 0:30 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_cgroup_is_found_below_the_mount() {
        let find = |mounts: &str, own: &str| {
            let texts = CgroupTexts { mounts: mounts.to_owned(), own: own.to_owned() };
            own_directory_in(&texts).map(|path| path.display().to_string())
        };
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

    /// The cgroups of the machine, and those that killed runs left behind, must not make each run slower.
    #[test]
    fn a_cgroup_with_none_below_it_is_visited_and_not_listed() {
        let top = std::env::temp_dir().join(format!("tenure-cgroups-{}", std::process::id()));
        for leaf in 0..50 {
            fs::create_dir_all(top.join(format!("leaf-{leaf}"))).unwrap();
        }
        fs::create_dir_all(top.join("slice/service/tenure-1")).unwrap();
        fs::write(top.join("slice/cgroup.procs"), "").unwrap();
        if fs::metadata(top.join("slice/service")).unwrap().nlink() != 3 {
            fs::remove_dir_all(&top).unwrap();
            return tenure_testkit::skipped("directories are not counted here");
        }
        let (mut listed, mut visited) = (Vec::new(), Vec::new());
        let list = |directory: &Path| {
            listed.push(directory.to_owned());
            fs::read_dir(directory)
        };
        for_each_below(top.clone(), list, |path, name| {
            assert_eq!(path.file_name(), Some(name));
            visited.push(path.to_owned());
        });
        fs::remove_dir_all(&top).unwrap();
        assert_eq!(listed, [top.clone(), top.join("slice"), top.join("slice/service")]);
        assert_eq!(visited.len(), 53);
        assert!(visited.contains(&top.join("slice/service/tenure-1")), "{visited:?}");
    }
}
