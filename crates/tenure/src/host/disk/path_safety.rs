//! Safe places for a directory: creates it, and checks every directory above it.

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::io_error::IoError;
use super::refusal::Refusal;
use crate::{Error, ErrorKind};

/// Risks that the user accepts by name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AcceptedRisks {
    pub(crate) foreign_owner: bool,
    pub(crate) writable_by_others: bool,
}

/// Users of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// One user.
    #[default]
    OneUser,
    /// The members of the group of the directory.
    Group,
}

/// Use of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
}

/// The absolute path without links and dots. The directory itself must not be a link.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, Error> {
    let path = std::path::absolute(path)
        .map_err(|error| Error::new(ErrorKind::Invalid, format!("{path:?} is not a path: {error}")))?;
    let Some(Component::Normal(name)) = path.components().next_back() else {
        let sentence = format!("{} cannot be a store: name a directory below it", path.display());
        return Err(Error::new(ErrorKind::Invalid, sentence));
    };
    let parent = path.parent().expect("what has a last component has a parent");
    // Links on the way are resolved here, once. Their targets are then checked step by step.
    let mut missing = Vec::new();
    let mut there = parent;
    let mut resolved = loop {
        match there.canonicalize() {
            Ok(resolved) => break resolved,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (Some(up), Some(name)) = (there.parent(), there.file_name()) else { break "/".into() };
                missing.push(name.to_owned());
                there = up;
            }
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(IoError::reading("cannot find", there, errno).at_opening());
            }
        }
    };
    resolved.extend(missing.iter().rev());
    resolved.push(name);
    Ok(resolved)
}

/// Opens the directory, after creating it and its missing parents. All of them survive a power cut.
pub(crate) fn open_or_make(path: &Path) -> Result<OwnedFd, Error> {
    match open(path) {
        Err(Errno::NOENT) => {}
        opened => return opened.map_err(|errno| IoError::new("cannot open", path, errno).at_opening()),
    }
    let parent = path.parent().expect("a resolved path has a parent");
    let above = match open(parent) {
        Err(Errno::NOENT) => open_or_make(parent)?,
        opened => opened.map_err(|errno| IoError::new("cannot open", parent, errno).at_opening())?,
    };
    let name = path.file_name().expect("a resolved path has a name");
    let made = match rustix::fs::mkdirat(&above, name, Mode::RWXU) {
        // Another process was faster, and may not have finished the following steps.
        Err(Errno::EXIST) => Ok(()),
        made => made,
    };
    made.and_then(|()| rustix::fs::fsync(&above))
        .map_err(|errno| IoError::new("cannot make", path, errno).at_opening())?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(&above, name, flags, Mode::empty())
        .map_err(|errno| IoError::new("cannot open", path, errno).at_opening())
}

/// Opens the directory; `None` if it does not exist.
pub(crate) fn open_if_there(path: &Path) -> Result<Option<OwnedFd>, Error> {
    match open(path) {
        Err(Errno::NOENT) => Ok(None),
        opened => opened.map(Some).map_err(|errno| IoError::reading("cannot open", path, errno).at_opening()),
    }
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        // The kernel has one error for both.
        Err(Errno::NOTDIR) if path.is_symlink() => Err(Errno::LOOP),
        opened => opened,
    }
}

/// The directory, or its nearest existing parent.
pub(crate) fn nearest(path: &Path) -> Result<OwnedFd, Error> {
    let there = path.ancestors().find(|above| rustix::fs::lstat(*above).is_ok()).unwrap_or(path);
    open(there).map_err(|errno| IoError::reading("cannot open", there, errno).at_opening())
}

/// Every parent must belong to root or to this user, and be writable by no other user: a user who can rename a parent
/// can replace the store. The members of a group are other users. For those who share a directory, this user is another
/// user, so there every parent must belong to root.
///
/// A shared temporary directory is allowed: its sticky bit protects the entries of each owner, who is checked next. In
/// a user namespace, directories of unmapped users show as those of one user, including root's: they are refused, since
/// any user may be behind that number.
pub(crate) fn check_above(path: &Path, trust: AcceptedRisks, sharing: Sharing) -> Result<(), Refusal> {
    let me = rustix::process::geteuid().as_raw();
    for above in path.ancestors().skip(1) {
        let status = match rustix::fs::lstat(above) {
            // It will be created for this user alone.
            Err(Errno::NOENT) => continue,
            looked => looked.map_err(|errno| IoError::reading("cannot inspect", above, errno))?,
        };
        let sticky = status.st_mode & STICKY != 0;
        let writers = status.st_mode & (GROUP_WRITE | OTHERS_WRITE);
        if writers != 0 && !sticky && !trust.writable_by_others {
            return Err(replaceable(above, writers));
        }
        let is_safe = match sharing {
            Sharing::OneUser => [0, me].contains(&status.st_uid),
            Sharing::Group => status.st_uid == 0,
        };
        if !is_safe && !trust.foreign_owner {
            return Err(if status.st_uid == me { own(above, me) } else { foreign(above, &status) });
        }
    }
    Ok(())
}

/// The directory itself must belong to this user, and be writable by no other user. A reader may use one of root.
pub(crate) fn check_directory(
    path: &Path,
    status: &Stat,
    trust: AcceptedRisks,
    usage: Use,
) -> Result<(), Refusal> {
    let me = rustix::process::geteuid().as_raw();
    let is_safe = status.st_uid == me || (status.st_uid == 0 && usage == Use::Read);
    if !is_safe && !trust.foreign_owner {
        return Err(foreign(path, status));
    }
    if status.st_mode & (GROUP_WRITE | OTHERS_WRITE) != 0 && !trust.writable_by_others {
        let step = if status.st_mode & STICKY != 0 {
            // A directory for every user of the machine, such as /tmp.
            format!("use a directory of your own in it, such as {}/leases", path.display())
        } else {
            format!("remove that permission (chmod 700 {})", path.display())
        };
        return Err(Refusal::unsafe_because("other users may write to it".to_owned(), [step], WRITABLE));
    }
    Ok(())
}

/// Refusal of a directory in which other users may rename entries.
fn replaceable(above: &Path, writers: u32) -> Refusal {
    let (who, take) = match writers {
        GROUP_WRITE => ("its group", "g-w"),
        OTHERS_WRITE => ("every user", "o-w"),
        _ => ("every user", "go-w"),
    };
    let above = above.display();
    let steps =
        ["use another directory".to_owned(), format!("remove that permission (chmod {take} {above})")];
    Refusal::unsafe_because(format!("{who} may replace files in {above}"), steps, WRITABLE)
}

/// Refusal of a directory that this user could replace for the others who share one below it.
fn own(above: &Path, me: u32) -> Refusal {
    let why = format!("{} belongs to user {me}, who could replace it for the other members", above.display());
    Refusal::unsafe_because(why, ["use a directory below one of root".to_owned()], FOREIGN)
}

fn foreign(owned: &Path, status: &Stat) -> Refusal {
    let (owner, me) = (status.st_uid, rustix::process::geteuid().as_raw());
    let why = format!("{} belongs to user {owner}, and this is user {me}", owned.display());
    let steps = ["use your own directory".to_owned(), "run as its owner".to_owned()];
    Refusal::unsafe_because(why, steps, FOREIGN)
}

const STICKY: u32 = 0o1000;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Words for accepting the risk by name.
const WRITABLE: &str = "accept_writable_by_others, in a URL ?accept=writable-by-others";
const FOREIGN: &str = "accept_foreign_owner, in a URL ?accept=foreign-owner";
