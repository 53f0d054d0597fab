//! A private directory of this user: no other user can change it, and its locks and renames are this kernel's.
//!
//! Every error is a sentence.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::filesystem::FileSystem;
use super::io_error::IoError;
use super::path_safety::{self, AcceptedRisks, Sharing, Use};

/// An open private directory.
#[derive(Debug)]
pub(crate) struct PrivateDir {
    /// Its path without links.
    pub(crate) path: PathBuf,
    pub(crate) descriptor: OwnedFd,
    pub(crate) status: Stat,
}

impl PrivateDir {
    /// `None` if the directory does not exist.
    pub(crate) fn open_if_there(path: &Path) -> Result<Option<Self>, String> {
        let path = above(path)?;
        let there = path_safety::open_if_there(&path).map_err(|error| error.to_string())?;
        there.map(|descriptor| Self::check(path, descriptor)).transpose()
    }

    /// Creates the directory if necessary, for this user alone.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, String> {
        let path = above(path)?;
        let there = path_safety::nearest(&path).map_err(|error| error.to_string())?;
        is_local(&path, &there)?;
        let descriptor = path_safety::open_or_make(&path).map_err(|error| error.to_string())?;
        Self::check(path, descriptor)
    }

    /// The checked descriptor is the one that is used.
    fn check(path: PathBuf, descriptor: OwnedFd) -> Result<Self, String> {
        let status =
            rustix::fs::fstat(&descriptor).map_err(|errno| io_sentence("cannot inspect", &path, errno))?;
        path_safety::check_directory(&path, &status, AcceptedRisks::default(), Use::Write)
            .map_err(|refusal| refusal.sentence())?;
        is_local(&path, &descriptor)?;
        Ok(Self { path, descriptor, status })
    }
}

/// The path of the directory, if everything above it is safe.
fn above(path: &Path) -> Result<PathBuf, String> {
    let path = path_safety::resolve(path).map_err(|error| error.to_string())?;
    path_safety::check_above(&path, AcceptedRisks::default(), Sharing::OneUser)
        .map_err(|refusal| refusal.sentence())?;
    if path.is_symlink() {
        return Err("it is a symbolic link, and Tenure does not follow links. Remove it".to_owned());
    }
    Ok(path)
}

/// A networked file system may have writers with other clocks, and locks of another machine.
fn is_local(path: &Path, directory: &OwnedFd) -> Result<(), String> {
    let there = FileSystem::of(directory).map_err(|errno| io_sentence("cannot inspect", path, errno))?;
    if there.is_local() {
        return Ok(());
    }
    let why = there.lacks();
    Err(format!("it is on {there}, which is not known to be local: {why}. Use a directory on a local disk"))
}

/// The error of the kernel, as a sentence.
pub(crate) fn io_sentence(what: &'static str, path: &Path, errno: Errno) -> String {
    IoError::new(what, path, errno).to_string()
}
