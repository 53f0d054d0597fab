use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use tenure_store::{Reason, StoreError};

use super::io_error::IoError;
use crate::host::owner::given_to;

/// The opened folder. Every file is reached from its descriptor, by a bare name and without following links.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
    device: u64,
    inode: u64,
    /// The user to whom the folder belongs.
    user: u32,
    /// To whom new files are given, where this process is root and the folder somebody's.
    owner: Option<(Uid, Gid)>,
}

impl Folder {
    pub(crate) fn new(path: PathBuf, descriptor: OwnedFd, status: &Stat) -> Self {
        let owner = given_to(status);
        Self { path, descriptor, device: status.st_dev, inode: status.st_ino, user: status.st_uid, owner }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a name of the folder is, for people.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path must still lead to this folder. Where it was moved away, deleted or mounted over, others who open the
    /// store now see another one, and a lease in this one is worth nothing.
    ///
    /// This is no trouble that passes. The folder is open here, so no automounter unmounts it, and a remount keeps its
    /// inode. A path that leads elsewhere for a moment and then back is a loss too: in that moment another program may have
    /// opened the path, made a new store and been granted. A folder above that may not be searched is an error of another
    /// kind.
    pub(crate) fn is_in_place(&self) -> Result<(), StoreError> {
        match rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) if (status.st_dev, status.st_ino) == (self.device, self.inode) => Ok(()),
            Ok(_) | Err(Errno::NOENT) => {
                let sentence = format!(
                    "{} is no longer the folder that was opened: it was deleted or replaced. Look what did that, and \
                     restart",
                    self.path.display()
                );
                Err(StoreError::refused(Reason::Gone, sentence))
            }
            Err(errno) => Err(IoError::new("cannot look at", &self.path, errno).refused()),
        }
    }

    /// True if a file of this user in the folder can have been made by a program that uses the folder as this one does.
    pub(crate) fn may_own(&self, user: u32) -> bool {
        let given = self.owner.map(|(user, _)| user.as_raw());
        user == self.user || (given.is_none() && user == rustix::process::geteuid().as_raw())
    }

    /// Opens a file that is there.
    pub(crate) fn open(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        // Without O_NONBLOCK, a fifo that somebody left here would stop the caller.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        rustix::fs::openat(self, name, flags, Mode::empty())
    }

    /// Makes a file that is not there, for its owner alone.
    pub(crate) fn create(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self, name, flags, Mode::RUSR | Mode::WUSR)?;
        if let Some((user, group)) = self.owner {
            rustix::fs::fchown(&file, Some(user), Some(group))?;
        }
        Ok(file)
    }

    /// Opens a file, and makes it where it is missing.
    pub(crate) fn open_or_create(&self, name: &str) -> rustix::io::Result<OwnedFd> {
        for _ in 0..TRIES {
            match self.open(name, OFlags::RDWR) {
                Err(Errno::NOENT) => {}
                opened => return opened,
            }
            match self.create(name, OFlags::RDWR) {
                Err(Errno::EXIST) => {}
                created => return created,
            }
        }
        Err(Errno::AGAIN)
    }

    pub(crate) fn status_of(&self, name: &str) -> rustix::io::Result<Stat> {
        rustix::fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        rustix::fs::renameat(self, from, self, to)
    }

    /// Renames a file to a name that is free.
    pub(crate) fn rename_unless_there(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        rustix::fs::renameat_with(self, from, self, to, RenameFlags::NOREPLACE)
    }

    pub(crate) fn unlink(&self, name: &str) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(self, name, AtFlags::empty())
    }

    /// Renames are on the disk when this returns.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        rustix::fs::fsync(&self.descriptor)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A file that appears and disappears all the time is somebody's game.
const TRIES: usize = 8;
