//! A directory that the members of a group share: creation and checks, and the words for what is missing.
//!
//! The members trust one another with the leases: each can remove or replace every file in the directory.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use tenure_store::Reason;

use super::path_safety::{self, Use};
use super::{File, random};
use crate::host::disk::io_error::IoError;
use crate::{Error, ErrorKind};

/// True if the mode of the directory is that of a shared one: members may create, rename and remove files, and new
/// files get the group of the directory.
pub(super) fn is_set_up(directory: &Stat) -> bool {
    directory.st_mode & (SET_GROUP | GROUP_ALL) == SET_GROUP | GROUP_ALL
}

/// Fails if the directory is not set up for its group, or if a stranger may have created it.
pub(super) fn check_directory(path: &Path, status: &Stat, usage: Use) -> Result<(), Error> {
    // The sticky bit would protect each member's files from the renames of the others.
    if !is_set_up(status) || status.st_mode & (OTHERS_WRITE | STICKY) != 0 {
        let mode = status.st_mode & PERMISSIONS;
        return Err(not_shared(path, &format!("its mode is {mode:04o}, and a group needs 2770")));
    }
    let group = status.st_gid;
    let trusted = [0, rustix::process::geteuid().as_raw()].contains(&status.st_uid) || is_member(group);
    if !trusted && is_created_by_anyone(path) {
        let sentence = format!(
            "{} is not safe for leases: user {} created it where others may create directories, and this process is \
             not in its group {group}. Use a directory that root created",
            path.display(),
            status.st_uid
        );
        return Err(refused(sentence));
    }
    check_access(path, group, usage)
}

/// Fails if a file of the store does not belong to the group: the store was made for one user.
pub(super) fn check_file(path: &Path, file: &Path, status: &Stat, group: u32) -> Result<(), Error> {
    let mode = status.st_mode & PERMISSIONS;
    if status.st_gid == group && mode & GROUP_READ_WRITE == GROUP_READ_WRITE {
        return Ok(());
    }
    let file = file.display();
    Err(not_shared(path, &format!("{file} has mode {mode:04o} and group {}", status.st_gid)))
}

/// Error for a shared directory whose sharing the caller did not ask for.
pub(super) fn unasked_error(path: &Path, group: u32) -> Error {
    let url = File::url_of(path);
    let sentence = format!(
        "{} is shared with group {group}, whose members can change every lease in it. Name it {url}?share=group (in \
         Rust share_with_group), in every program that uses it",
        path.display()
    );
    refused(sentence)
}

/// The steps that share a directory of one user with a group.
pub(super) fn steps_to_share(path: &Path) -> String {
    let (shown, url) = (path.display(), File::url_of(path));
    format!(
        "share it with a group (stop its programs; chgrp -R GROUP {shown}; chmod 660 {shown}/*; chmod 2770 {shown}; \
         then name it {url}?share=group)"
    )
}

/// Opens the directory, or creates it for the group of this process. The directories above it must exist: those that
/// Tenure creates are for one user.
///
/// It gets its name only after its mode, so that no other process sees it with another mode.
pub(super) fn open_or_make(path: &Path) -> Result<OwnedFd, Error> {
    if let Some(opened) = path_safety::open_if_there(path)? {
        return Ok(opened);
    }
    let parent = path.parent().expect("a resolved path has a parent");
    let Some(above) = path_safety::open_if_there(parent)? else {
        let above = parent.display();
        let sentence = format!(
            "{above} does not exist: create it as root, so that every member can reach it (install -d -m 755 {above})"
        );
        return Err(refused(sentence));
    };
    if rustix::process::getegid().is_root() {
        return Err(must_be_made(path, "this process would share it with the group of root"));
    }
    let failed = |errno| IoError::new("cannot make", path, errno).at_opening();
    let name = path.file_name().expect("a resolved path has a name");
    let unnamed = format!(".tenure-{:032x}", random());
    match rustix::fs::mkdirat(&above, &unnamed, Mode::RWXU) {
        Err(Errno::ACCESS) => return Err(must_be_made(path, "this user may not create it")),
        made => made.map_err(failed)?,
    }
    let made = set_up(&above, &unnamed)
        .and_then(|()| rustix::fs::renameat_with(&above, &unnamed, &above, name, RenameFlags::NOREPLACE));
    if let Err(errno) = made {
        let _ = rustix::fs::unlinkat(&above, &unnamed, AtFlags::REMOVEDIR);
        // Another process was faster.
        if errno != Errno::EXIST {
            return Err(failed(errno));
        }
    }
    rustix::fs::fsync(&above).map_err(failed)?;
    rustix::fs::openat(&above, name, DIRECTORY_FLAGS, Mode::empty()).map_err(failed)
}

/// Sets the mode of a new directory, and verifies it: the kernel drops the setgid bit if the group, which may be that
/// of the directory above, is not one of this process.
fn set_up(above: impl AsFd, name: &str) -> rustix::io::Result<()> {
    let made = rustix::fs::openat(above, name, DIRECTORY_FLAGS, Mode::empty())?;
    rustix::fs::fchmod(&made, Mode::from_raw_mode(DIRECTORY_MODE))?;
    let is_obeyed = rustix::fs::fstat(&made)?.st_mode & PERMISSIONS == DIRECTORY_MODE;
    if is_obeyed { Ok(()) } else { Err(Errno::OPNOTSUPP) }
}

/// Fails if this user may not use the directory because it is not in the group.
fn check_access(path: &Path, group: u32, usage: Use) -> Result<(), Error> {
    let (wanted, verb) = match usage {
        Use::Read => (Access::READ_OK | Access::EXEC_OK, "read"),
        Use::Write => (Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK, "write to"),
    };
    let access = rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS);
    if access != Err(Errno::ACCESS) || is_member(group) {
        // Every other error is reported by the call that needs the right.
        return Ok(());
    }
    let me = rustix::process::geteuid().as_raw();
    let sentence = format!(
        "user {me} may not {verb} {}, which group {group} shares: this process is not in that group. Add the user to \
         the group (usermod -aG), and log in again",
        path.display()
    );
    Err(Error::new(Reason::Denied.into(), sentence))
}

/// True if this process is in the group.
fn is_member(group: u32) -> bool {
    rustix::process::getegid().as_raw() == group
        || rustix::process::getgroups().is_ok_and(|groups| groups.iter().any(|other| other.as_raw() == group))
}

/// True if users other than root may create entries beside the directory. In doubt, they may.
fn is_created_by_anyone(path: &Path) -> bool {
    let above = path.parent().and_then(|above| rustix::fs::lstat(above).ok());
    above.is_none_or(|above| above.st_mode & (GROUP_WRITE | OTHERS_WRITE) != 0)
}

/// Error for a missing directory that the caller must create.
fn must_be_made(path: &Path, why: &str) -> Error {
    let path = path.display();
    refused(format!(
        "{path} does not exist, and {why}: create it as root with the group that is to use it (install -d -m 2770 -g \
         GROUP {path})"
    ))
}

fn not_shared(path: &Path, why: &str) -> Error {
    let steps = steps_to_share(path);
    refused(format!(
        "{} is not shared with a group: {why}. Leave share=group out of its URL, or {steps}",
        path.display()
    ))
}

fn refused(sentence: String) -> Error {
    Error::new(ErrorKind::Unsupported, sentence)
}

const DIRECTORY_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const DIRECTORY_MODE: u32 = 0o2770;

const PERMISSIONS: u32 = 0o7777;
const SET_GROUP: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const GROUP_ALL: u32 = 0o070;
const GROUP_READ_WRITE: u32 = 0o060;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
