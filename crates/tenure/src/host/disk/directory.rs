use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use tenure_store::{Reason, StoreError};

use super::io_error::IoError;
use crate::host::file_rights::{FileRights, MemberRights};

/// An open directory. Every file is reached from its descriptor, by a bare name and without following links.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    descriptor: OwnedFd,
    device: u64,
    inode: u64,
    /// Owner of the directory.
    user: u32,
    /// Rights of new files.
    rights: FileRights,
}

impl Directory {
    pub(crate) fn new(path: PathBuf, descriptor: OwnedFd, status: &Stat) -> Self {
        Self::with_rights(path, descriptor, status, FileRights::of_one_user(status))
    }

    /// A directory whose files have these rights.
    pub(crate) fn with_rights(path: PathBuf, descriptor: OwnedFd, status: &Stat, rights: FileRights) -> Self {
        Self { path, descriptor, device: status.st_dev, inode: status.st_ino, user: status.st_uid, rights }
    }

    /// True if the members of a group share the directory.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.rights, FileRights::Shared(_))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a name in the directory, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Verifies that the path still leads to this directory. If it was moved, deleted or mounted over, other processes
    /// that open the store see another one, and a lease in this one protects nothing.
    ///
    /// The condition is permanent. The directory is open here, so no automounter unmounts it, and a remount keeps its
    /// inode. A path that leads elsewhere for a moment and then back is a loss too: in that moment another program may
    /// have opened the path, created a new store and been granted. A parent directory that may not be searched is a
    /// different error.
    pub(crate) fn is_in_place(&self) -> Result<(), StoreError> {
        match rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) if (status.st_dev, status.st_ino) == (self.device, self.inode) => Ok(()),
            Ok(_) | Err(Errno::NOENT) => {
                let sentence = format!(
                    "{} is no longer the directory that was opened: it was deleted or replaced. Find out what did \
                     that, and restart",
                    self.path.display()
                );
                Err(StoreError::refused(Reason::Gone, sentence))
            }
            Err(errno) => Err(IoError::new("cannot inspect", &self.path, errno).refused()),
        }
    }

    /// True if a file with this status in the directory can come from a program that uses the directory as this one
    /// does.
    ///
    /// In a shared directory that is a file of its group to which every member may write: a member who put another file
    /// here could have changed that file without Tenure.
    pub(crate) fn may_own(&self, file: &Stat) -> bool {
        let me = rustix::process::geteuid().as_raw();
        match self.rights {
            FileRights::Private => [self.user, me].contains(&file.st_uid),
            FileRights::GivenTo(..) => file.st_uid == self.user,
            FileRights::Shared(group) => {
                let writers = file.st_mode & (GROUP_WRITE | OTHERS_WRITE);
                file.st_gid == group.as_raw() && writers == GROUP_WRITE
            }
        }
    }

    /// Opens an existing file.
    pub(crate) fn open(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        // Without O_NONBLOCK, opening a fifo here would block the caller.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        rustix::fs::openat(self, name, flags, Mode::empty())
    }

    /// Creates a file for the users of the directory.
    pub(crate) fn create(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self, name, flags, Mode::RUSR | Mode::WUSR)?;
        if let Err(errno) = self.rights.give(&file, MemberRights::Write) {
            let _ = self.unlink(name);
            return Err(errno);
        }
        Ok(file)
    }

    /// Opens a file, and creates it if it is missing.
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

    /// Renames a file to a free name.
    pub(crate) fn rename_unless_there(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        rustix::fs::renameat_with(self, from, self, to, RenameFlags::NOREPLACE)
    }

    pub(crate) fn unlink(&self, name: &str) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(self, name, AtFlags::empty())
    }

    /// Syncs the directory, so that renames are on disk.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        rustix::fs::fsync(&self.descriptor)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// Number of attempts while the file appears and disappears.
const TRIES: usize = 8;
