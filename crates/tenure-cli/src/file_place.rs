use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

/// The open directory of a file, and the name of the file in it.
///
/// Each directory on the path is opened and checked, and the file is opened in the checked directory. So no other user
/// can substitute a different file: neither with a link, nor by moving a parent directory.
#[derive(Debug)]
pub(crate) struct FilePlace {
    directory: OwnedFd,
    name: OsString,
}

/// Reason why a place cannot be used.
#[derive(Debug)]
pub(crate) enum PlaceError {
    /// An error of the kernel.
    Kernel(Errno),
    /// Another user could put another file there, in words that follow a colon.
    Unsafe(String),
}

impl From<Errno> for PlaceError {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

impl FilePlace {
    /// Walks from the root to the directory of the file, whose path is absolute. Links of root and of the caller are
    /// followed; the file itself must not be a link, which [`open`](Self::open) checks.
    pub(crate) fn find(path: &Path) -> Result<Self, PlaceError> {
        let name = path.file_name().ok_or(Errno::ISDIR)?.to_owned();
        let mut ahead = steps(path.parent().unwrap_or(path));
        let mut walked = ReachedDirectory::from_root()?;
        let mut links = 0;
        while let Some(step) = ahead.pop_front() {
            // With O_DIRECTORY, because without it the kernel does not trigger automounts.
            let opened = match rustix::fs::openat(&walked.directory, &step, DIRECTORY_FLAGS, Mode::empty()) {
                Err(Errno::NOTDIR) => {
                    rustix::fs::openat(&walked.directory, &step, STEP_FLAGS, Mode::empty())?
                }
                opened => opened?,
            };
            let status = rustix::fs::fstat(&opened)?;
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => walked.enter(opened, &step, &status)?,
                FileType::Symlink => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::LOOP.into());
                    }
                    let link = walked.path.join(&step);
                    if !is_trusted(&status, OutsideOwner::Foreign) {
                        let owner = status.st_uid;
                        let why = format!("{} is a symbolic link of user {owner}", link.display());
                        return Err(PlaceError::Unsafe(why));
                    }
                    let target = rustix::fs::readlinkat(&opened, "", Vec::new())?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        walked = ReachedDirectory::from_root()?;
                    }
                    let rest = std::mem::take(&mut ahead);
                    ahead = steps(&target).into_iter().chain(rest).collect();
                }
                _ => return Err(Errno::NOTDIR.into()),
            }
        }
        Ok(Self { directory: walked.directory, name })
    }

    /// Opens the file for reading. A link gives `ELOOP`; a fifo does not block.
    pub(crate) fn open(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())
    }

    /// The status of the entry with the name of the file, which may be a link.
    pub(crate) fn status(&self) -> rustix::io::Result<Stat> {
        rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Creates a private file beside it, under a new name.
    pub(crate) fn create_beside(&self, name: &OsStr) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)
    }

    /// Renames the file beside it to its name, unless a file has that name: then `EEXIST`.
    pub(crate) fn put_unless_present(&self, beside: &OsStr) -> rustix::io::Result<()> {
        let (from, to) = ((&self.directory, beside), (&self.directory, &*self.name));
        match rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
            // Some file systems do not know the flag. A link never replaces a file.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty())
            }
            renamed => renamed,
        }
    }

    /// Renames the file beside it to its name.
    pub(crate) fn replace_by(&self, beside: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat(&self.directory, beside, &self.directory, &self.name)
    }

    /// Removes the file, or one beside it.
    pub(crate) fn remove(&self, name: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.directory, name, AtFlags::empty())
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }
}

/// The directory that the walk has reached.
struct ReachedDirectory {
    directory: OwnedFd,
    path: PathBuf,
    outside: OutsideOwner,
}

/// Owner of an entry that belongs to a user outside this user namespace.
///
/// The kernel shows all of those users as one number. The first directories of a path belong to root, down to one in
/// which other users may create entries. Below it, the owner may be any user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutsideOwner {
    Root,
    Foreign,
}

impl ReachedDirectory {
    fn from_root() -> Result<Self, PlaceError> {
        let directory = rustix::fs::openat(CWD, "/", DIRECTORY_FLAGS, Mode::empty())?;
        let status = rustix::fs::fstat(&directory)?;
        let mut root = Self { directory, path: PathBuf::from("/"), outside: OutsideOwner::Root };
        root.check(&status)?;
        Ok(root)
    }

    /// Enters a directory.
    fn enter(&mut self, directory: OwnedFd, step: &OsStr, status: &Stat) -> Result<(), PlaceError> {
        match step.as_bytes() {
            b".." => drop(self.path.pop()),
            _ => self.path.push(step),
        }
        self.directory = directory;
        self.check(status)
    }

    /// Verifies that no other user can replace an entry of the directory.
    fn check(&mut self, status: &Stat) -> Result<(), PlaceError> {
        let path = self.path.display();
        if !is_trusted(status, self.outside) {
            let (owner, me) = (status.st_uid, rustix::process::geteuid().as_raw());
            return Err(PlaceError::Unsafe(format!("{path} belongs to user {owner}, and this is user {me}")));
        }
        // The sticky bit protects the entries of each owner.
        let is_sticky = status.st_mode & STICKY != 0;
        if status.st_mode & OTHERS_WRITE != 0 && !is_sticky {
            return Err(PlaceError::Unsafe(format!("every user may replace files in {path}")));
        }
        if status.st_mode & GROUP_WRITE != 0 && !is_sticky && !is_own_group(status.st_gid) {
            let group = status.st_gid;
            return Err(PlaceError::Unsafe(format!("group {group} may replace files in {path}")));
        }
        if is_sticky || status.st_uid != OVERFLOW_USER {
            self.outside = OutsideOwner::Foreign;
        }
        Ok(())
    }
}

/// The components of a path, without its root.
fn steps(path: &Path) -> VecDeque<OsString> {
    let steps = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    steps.collect()
}

/// True if it belongs to the caller or to root. If the user namespace maps the overflow number, it belongs to that
/// user.
fn is_trusted(status: &Stat, outside: OutsideOwner) -> bool {
    match status.st_uid {
        0 => true,
        owner if owner == rustix::process::geteuid().as_raw() => true,
        OVERFLOW_USER => outside == OutsideOwner::Root && is_unmapped(OVERFLOW_USER),
        _ => false,
    }
}

/// True if this user namespace does not map that number.
fn is_unmapped(user: u32) -> bool {
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return false };
    let is_in = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let (Some(Ok(first)), Some(Ok(_)), Some(Ok(count))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return true;
        };
        (first..first.saturating_add(count)).contains(&u64::from(user))
    };
    !map.lines().any(is_in)
}

/// True if the group is root's, or the private group that distributions give each user.
fn is_own_group(group: u32) -> bool {
    let mine = rustix::process::getegid().as_raw();
    group == 0 || (group == mine && group == rustix::process::geteuid().as_raw())
}

const STEP_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const DIRECTORY_FLAGS: OFlags = STEP_FLAGS.union(OFlags::DIRECTORY);

const STICKY: u32 = 0o1000;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Overflow number: the kernel shows it for owners that the user namespace does not map.
const OVERFLOW_USER: u32 = 65534;

/// Maximum number of links, as in the kernel.
const LINKS_MAX: u32 = 40;
