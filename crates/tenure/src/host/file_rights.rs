use std::os::fd::AsFd;

use rustix::fs::{Mode, Stat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

/// Owner, group and mode of the files that Tenure creates in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileRights {
    /// For this user alone.
    Private,
    /// For the owner of the directory: this process is root, and the directory belongs to another user, who could not
    /// use the files otherwise.
    GivenTo(Uid, Gid),
    /// For the members of the group of the directory.
    Shared(Gid),
}

/// Rights of the members of a group that shares a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberRights {
    Read,
    Write,
}

impl FileRights {
    /// Rights in a directory of one user.
    pub(crate) fn of_one_user(directory: &Stat) -> Self {
        if rustix::process::geteuid().is_root() && directory.st_uid != 0 {
            Self::GivenTo(Uid::from_raw(directory.st_uid), Gid::from_raw(directory.st_gid))
        } else {
            Self::Private
        }
    }

    /// Rights in a directory that its group shares.
    pub(crate) fn of_group(directory: &Stat) -> Self {
        Self::Shared(Gid::from_raw(directory.st_gid))
    }

    /// Gives a new file, which only this user can open, to its users. Fails if the file system does not obey.
    ///
    /// The kernel applies the umask to the mode of a new file, so the mode is set afterwards.
    pub(crate) fn give(self, file: impl AsFd, members: MemberRights) -> rustix::io::Result<()> {
        match self {
            Self::Private => Ok(()),
            Self::GivenTo(user, group) => rustix::fs::fchown(file, Some(user), Some(group)),
            Self::Shared(group) => {
                let mode = match members {
                    MemberRights::Read => MEMBERS_READ,
                    MemberRights::Write => MEMBERS_WRITE,
                };
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
                let status = rustix::fs::fstat(&file)?;
                let is_obeyed = status.st_gid == group.as_raw() && status.st_mode & PERMISSIONS == mode;
                if is_obeyed { Ok(()) } else { Err(Errno::OPNOTSUPP) }
            }
        }
    }
}

const PERMISSIONS: u32 = 0o7777;
const MEMBERS_READ: u32 = 0o640;
const MEMBERS_WRITE: u32 = 0o660;
