use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;

use super::super::FenceError;
use crate::Reason;
use crate::host::disk::directory::Directory;
use crate::host::disk::filesystem::FileSystem;
use crate::host::disk::io_error::IoError;

/// Where a fenced file is: its open directory, its name there, and the names of the files beside it.
///
/// It is found anew for every call, so that no call uses a directory that was moved away.
#[derive(Debug)]
pub(super) struct Place {
    directory: Directory,
    file_system: FileSystem,
    name: String,
    /// The path as the caller wrote it: the resource of every message.
    resource: String,
}

impl Place {
    /// Finds the directory, and checks that its locks are this kernel's.
    pub(super) fn find(path: &Path) -> Result<Self, FenceError> {
        let resource = path.display().to_string();
        let invalid = |what: &str| FenceError::refused(&*resource, Reason::Invalid, what.to_owned());
        let name = path.file_name().ok_or_else(|| invalid("the path does not name a file"))?;
        let name = name.to_str().ok_or_else(|| invalid("its name is not UTF-8: give it another name"))?;
        if name.len() > NAME_MAX {
            return Err(invalid(&format!(
                "its name has {} bytes, and at most {NAME_MAX} leave room for the name of its mark: shorten it",
                name.len()
            )));
        }
        if is_own_name(name) {
            return Err(invalid("this is the mark of a fenced file: name the file itself"));
        }
        let io_error = |what, path: &Path, errno| refused(&resource, IoError::new(what, path, errno));
        let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Links above the file are followed once. All writers of one file meet in one directory.
        let above = above.canonicalize().map_err(|error| {
            io_error("cannot find", above, Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(CWD, &above, flags, Mode::empty())
            .map_err(|errno| io_error("cannot open", &above, errno))?;
        let inspect = |errno| io_error("cannot inspect", &above, errno);
        let status = rustix::fs::fstat(&descriptor).map_err(inspect)?;
        let there = FileSystem::of(&descriptor).map_err(inspect)?;
        if !there.is_local() {
            let what = format!(
                "it is on {there}, which is not known to be local: {}. Use a file on a local disk, or a fenced value \
                 in a networked store",
                there.lacks()
            );
            return Err(FenceError::refused(&*resource, Reason::Unsupported, what));
        }
        let directory = Directory::new(above, descriptor, &status);
        Ok(Self { directory, file_system: there, name: name.to_owned(), resource })
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(super) fn file_system(&self) -> FileSystem {
        self.file_system
    }

    pub(super) fn resource(&self) -> &str {
        &self.resource
    }

    /// Name of the file itself.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Name of the mark file.
    pub(super) fn mark_name(&self) -> String {
        format!(".{}{MARK}", self.name)
    }

    /// Name of an unfinished file.
    pub(super) fn temporary_name(&self, number: u32) -> String {
        format!(".{}{MARK}.{number}", self.name)
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.directory.path_of(name)
    }

    /// Status of the file; `None` if there is none. Fails for everything that is not a plain file of this directory.
    pub(super) fn data(&self) -> Result<Option<Stat>, FenceError> {
        let status = match self.directory.status_of(&self.name) {
            Err(Errno::NOENT) => return Ok(None),
            status => status.map_err(|errno| self.io_error("cannot inspect", &self.name, errno))?,
        };
        let what = match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => {
                self.is_of_this_mount()?;
                return Ok(Some(status));
            }
            FileType::Symlink => "it is a symbolic link, and Tenure does not follow links: name its target",
            FileType::Directory => "it is a directory: name a file",
            FileType::Fifo => "it is a pipe: name a plain file",
            FileType::Socket => "it is a socket: name a plain file",
            _ => "it is a device: name a plain file",
        };
        Err(self.refused(Reason::Invalid, what))
    }

    /// Fails for a file that is mounted on its own: through its other path it has another mark, or none.
    fn is_of_this_mount(&self) -> Result<(), FenceError> {
        let mount_of = |name: &str, flags| {
            let status = rustix::fs::statx(&self.directory, name, flags, StatxFlags::MNT_ID).ok()?;
            (status.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(status.stx_mnt_id)
        };
        let file = mount_of(&self.name, AtFlags::SYMLINK_NOFOLLOW);
        let directory = mount_of("", AtFlags::EMPTY_PATH);
        // Kernels before 5.8 do not tell.
        if file.is_some() && directory.is_some() && file != directory {
            return Err(self.refused(
                Reason::Unsupported,
                "it is a mount of its own, and its mark would be invisible through its other path: mount its directory",
            ));
        }
        Ok(())
    }

    /// Opens the mark, or another file of this directory.
    pub(super) fn open(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        self.directory.open(name, flags)
    }

    /// A call that had no effect on the file.
    pub(super) fn refused(&self, reason: Reason, what: impl Into<String>) -> FenceError {
        FenceError::refused(&*self.resource, reason, what.into())
    }

    /// An error of the kernel, before the file was changed.
    pub(super) fn io_error(&self, what: &'static str, name: &str, errno: Errno) -> FenceError {
        refused(&self.resource, IoError::new(what, &self.path_of(name), errno))
    }

    /// An error of the kernel, after which the file may have changed.
    pub(super) fn unknown(&self, what: &'static str, name: &str, errno: Errno) -> FenceError {
        FenceError::unknown(&*self.resource, IoError::new(what, &self.path_of(name), errno))
    }

    pub(super) fn foreign(&self, what: impl Into<String>) -> FenceError {
        FenceError::Foreign { resource: self.resource.clone(), what: what.into() }
    }
}

/// Device and inode: the identity of a file.
pub(super) fn id(status: &Stat) -> (u64, u64) {
    (status.st_dev, status.st_ino)
}

fn refused(resource: &str, error: IoError) -> FenceError {
    FenceError::refused(resource, error.reason(), error)
}

/// True for the names of marks and of unfinished files.
fn is_own_name(name: &str) -> bool {
    let Some((_, after)) = name.strip_prefix('.').and_then(|name| name.rsplit_once(MARK)) else {
        return false;
    };
    after.is_empty() || after.strip_prefix('.').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The end of the name of a mark. Its name begins with a dot.
const MARK: &str = ".fence";

/// The kernel's limit of 255 bytes, less what the names beside the file add.
const NAME_MAX: usize = 255 - ".".len() - MARK.len() - ".63".len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_beside_a_file_are_known() {
        for own in [".report.csv.fence", ".report.csv.fence.0", ".x.fence.63", "..fence"] {
            assert!(is_own_name(own), "{own}");
        }
        for other in ["report.csv", "report.fence", ".fence", ".x.fence.old", ".fencer", "fence"] {
            assert!(!is_own_name(other), "{other}");
        }
    }
}
