use std::path::Path;

use rustix::io::Errno;
use tenure_store::{Reason, StoreError};

use crate::{Error, ErrorKind};

/// Error of the kernel on a file, as a sentence with the next step.
#[derive(Debug, thiserror::Error)]
#[error("{what} {path}: {errno}{advice}")]
pub(crate) struct IoError {
    what: &'static str,
    path: String,
    errno: Errno,
    advice: &'static str,
}

impl IoError {
    /// `what` is the attempted action, such as "cannot open".
    pub(crate) fn new(what: &'static str, path: &Path, errno: Errno) -> Self {
        Self { what, path: path.display().to_string(), errno, advice: advice(errno) }
    }

    /// The same for an action that only reads.
    pub(crate) fn reading(what: &'static str, path: &Path, errno: Errno) -> Self {
        let advice = match errno {
            Errno::ACCESS | Errno::PERM => {
                ". Run as its owner, or give this user permission to read it and to search the directories above it"
            }
            _ => advice(errno),
        };
        Self { advice, ..Self::new(what, path, errno) }
    }

    /// The action that the caller can take.
    pub(crate) fn reason(&self) -> Reason {
        reason(self.errno)
    }

    /// The call certainly had no effect.
    pub(crate) fn refused(self) -> StoreError {
        StoreError::refused(self.reason(), self)
    }

    /// The call may have had an effect.
    pub(crate) fn unknown(self) -> StoreError {
        StoreError::unknown(self)
    }

    /// The directory could not be opened.
    pub(crate) fn at_opening(self) -> Error {
        let kind = match reason(self.errno) {
            // What lies there was never a store: the path is wrong.
            Reason::Damaged => ErrorKind::Invalid,
            other => other.into(),
        };
        Error::new(kind, self.to_string()).because(self)
    }
}

fn reason(errno: Errno) -> Reason {
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Reason::Denied,
        Errno::LOOP | Errno::ISDIR | Errno::NOTDIR | Errno::NXIO => Reason::Damaged,
        Errno::NAMETOOLONG | Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK | Errno::INVAL => {
            Reason::Unsupported
        }
        // A full disk, no descriptors, no memory, a failing disk, a missing directory: these may pass.
        _ => Reason::Unreachable,
    }
}

/// True for errors of a rename or an unlink that occur before any change. A failing disk may fail in the middle.
pub(crate) fn had_no_effect(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOENT
            | Errno::ACCESS
            | Errno::PERM
            | Errno::ROFS
            | Errno::NOSPC
            | Errno::DQUOT
            | Errno::ISDIR
            | Errno::NOTDIR
            | Errno::BUSY
            | Errno::NOMEM
    )
}

fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC | Errno::DQUOT => ". Free some space there",
        Errno::MFILE => {
            ". This process has no file descriptor left: raise its limit (ulimit -n), or close some"
        }
        Errno::NFILE => ". This machine has no file descriptor left: raise fs.file-max",
        Errno::ACCESS | Errno::PERM => {
            ". Run as the owner of the directory, or give this user write permission"
        }
        Errno::ROFS => ". Mount it writable, or use another directory",
        Errno::IO => ". The disk fails: check the kernel's log",
        Errno::NOENT => ". It is gone: find out what removed it",
        Errno::LOOP => ". It is a symbolic link, and Tenure does not follow links: name its target",
        Errno::NOTDIR => ". Name a directory",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_kernel_has_a_message_with_the_path_and_the_next_step() {
        let said = |errno| IoError::new("cannot write", Path::new("/srv/leases/a.entry"), errno).refused();
        for (errno, expected, step) in [
            (Errno::NOSPC, Reason::Unreachable, "Free some space"),
            (Errno::MFILE, Reason::Unreachable, "ulimit -n"),
            (Errno::IO, Reason::Unreachable, "kernel's log"),
            (Errno::ACCESS, Reason::Denied, "owner"),
            (Errno::ROFS, Reason::Denied, "writable"),
            (Errno::LOOP, Reason::Damaged, "symbolic link"),
        ] {
            let StoreError::Refused(refused) = said(errno) else { panic!("{errno}") };
            assert_eq!(refused.reason, expected, "{errno}");
            let sentence = refused.to_string();
            assert!(sentence.contains("/srv/leases/a.entry") && sentence.contains(step), "{sentence}");
        }
    }
}
