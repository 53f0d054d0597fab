use rustix::io::Errno;
use tenure_store::{Reason, StoreError};

use super::super::directory::Directory;
use super::super::name::MARK;
use crate::host::disk::io_error::IoError;
use crate::{Error, ErrorKind};

/// The reason why the mark of a directory cannot be used.
#[derive(Debug)]
pub(in crate::store::file) enum Unusable {
    /// An error of the kernel.
    Kernel(Errno),
    /// The file is not a mark of this directory, with a description. It is not written to.
    Damaged(String),
}

impl Unusable {
    /// The error of a store that cannot be opened because of it; `what` is the failed operation.
    pub(in crate::store::file) fn at_opening(self, what: &'static str, directory: &Directory) -> Error {
        match self {
            Self::Kernel(errno) => IoError::new(what, &directory.path_of(MARK), errno).at_opening(),
            Self::Damaged(flaw) => Error::new(ErrorKind::Corrupt, sentence(directory, &flaw)),
        }
    }

    /// The error of a write that is refused because of it.
    pub(in crate::store::file) fn refused(self, directory: &Directory) -> StoreError {
        match self {
            Self::Kernel(errno) => IoError::new("cannot write to", &directory.path_of(MARK), errno).refused(),
            Self::Damaged(flaw) => StoreError::refused(Reason::Damaged, sentence(directory, &flaw)),
        }
    }
}

impl From<Errno> for Unusable {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

fn sentence(directory: &Directory, flaw: &str) -> String {
    format!(
        "{} cannot be the time of this directory, and was not changed: {flaw}. Inspect it. If the clock of this \
         machine is right, move the file away: the directory's time then follows the clock",
        directory.path_of(MARK).display()
    )
}
