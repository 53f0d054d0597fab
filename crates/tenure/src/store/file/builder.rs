use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Dir, FileType, Stat};
use rustix::io::Errno;
use tenure_store::{Guarantees, Reach, Store, StoreClock};

use super::directory::Directory;
use super::filesystem::FileSystem;
use super::mark::Mark;
use super::name::{self, FileName};
use super::path_safety::{self, AcceptedRisks, Sharing, Use};
use super::sharing;
use super::trial::{self, TrialFailure};
use super::tried::Tried;
use super::{File, FileInner};
use crate::clock::{BootClock, Clock, Domain};
use crate::host::disk::io_error::IoError;
use crate::host::file_rights::FileRights;
use crate::{Error, ErrorKind};

/// Opens a [`File`] store with settings other than the defaults. Each risk is accepted by its name.
///
/// ```no_run
/// # use tenure::store::File;
/// // A home directory on NFS, used from this one machine alone.
/// let store = File::builder().accept_file_system("nfs").open("/home/me/.local/state/tenure")?;
/// # Ok::<(), tenure::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileBuilder {
    clock: Arc<dyn Clock>,
    accepted_risks: AcceptedRisks,
    file_systems: Vec<String>,
    sharing: Sharing,
}

impl FileBuilder {
    pub(super) fn new() -> Self {
        Self {
            clock: Arc::new(BootClock::new()),
            accepted_risks: AcceptedRisks::default(),
            file_systems: Vec::new(),
            sharing: Sharing::OneUser,
        }
    }

    /// Sets the clock for ages and the store's time. For tests: all users of the directory must have the same one.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Accepts a directory, or one above it, that belongs to another user. That user can then read, change and remove
    /// every lease. Files that root writes in such a directory are given to its owner.
    pub fn accept_foreign_owner(mut self) -> Self {
        self.accepted_risks.foreign_owner = true;
        self
    }

    /// Accepts a directory that others may write to, or one inside such a directory: they can change and remove every
    /// lease.
    pub fn accept_writable_by_others(mut self) -> Self {
        self.accepted_risks.writable_by_others = true;
        self
    }

    /// Accepts a kind of file system that is not known to be local, by its name in the error: `nfs`, `fuse`, `9p`, …
    ///
    /// Leases then hold between the processes of *this* machine, as far as the locks and renames of the file system
    /// work. The store reports no ages and gives no hints, and every failed rename has an unknown outcome.
    pub fn accept_file_system(mut self, name: impl Into<String>) -> Self {
        self.file_systems.push(name.into());
        self
    }

    /// Shares the store with the users in the group of its directory. In a URL this is `?share=group`.
    ///
    /// The directory has mode 2770 and each file 0660, whatever the umask; a witness, which shows whether its holder is
    /// alive, has 0640. If the directory is missing, it is created with the group of this process; the directories
    /// above it must exist, and belong to root. A directory that is not set up for its group is refused, and so is a
    /// shared directory that is opened without this call.
    ///
    /// The members trust one another with the leases: each can change, remove and block every one of them. They need
    /// not trust one another with other files: no member can make the program of another write outside the directory.
    ///
    /// ```no_run
    /// # use tenure::store::File;
    /// // Created by root: install -d -m 2770 -g jobs /var/lib/jobs/leases
    /// let store = File::builder().share_with_group().open("/var/lib/jobs/leases")?;
    /// assert_eq!(store.to_string(), "file:///var/lib/jobs/leases?share=group");
    /// # Ok::<(), tenure::Error>(())
    /// ```
    pub fn share_with_group(mut self) -> Self {
        self.sharing = Sharing::Group;
        self
    }

    /// Opens the store in this directory, and creates the directory if there is none, for this user alone or for the
    /// group that [shares](Self::share_with_group) it.
    pub fn open(self, path: impl AsRef<Path>) -> Result<File, Error> {
        let path = self.resolve(path.as_ref(), Use::Write)?;
        let descriptor = match self.sharing {
            Sharing::OneUser => path_safety::open_or_make(&path)?,
            Sharing::Group => sharing::open_or_make(&path)?,
        };
        let (directory, file_system) = self.check(path, descriptor, Use::Write)?;
        let domain = Domain::here();
        try_out(&directory, domain.as_ref())?;
        let mark = Mark::open(&directory, super::wall_micros(&*self.clock))
            .map_err(|unusable| unusable.at_opening("cannot open or create", &directory))?;
        Ok(File::with(FileInner::new(directory, Some(mark), true, domain, self.clock, file_system)))
    }

    /// Opens the store in this directory for reading, without creating or changing anything. `None` if there is no such
    /// directory, so that every key is free. Every write is refused.
    ///
    /// It also works where nothing can be written, such as on a disk that is mounted read-only.
    pub fn open_to_read(self, path: impl AsRef<Path>) -> Result<Option<File>, Error> {
        let path = self.resolve(path.as_ref(), Use::Read)?;
        let Some(descriptor) = path_safety::open_if_there(&path)? else { return Ok(None) };
        let (directory, file_system) = self.check(path, descriptor, Use::Read)?;
        let domain = Domain::here();
        let mark = Mark::open_to_read(&directory).map_err(|errno| {
            IoError::reading("cannot open", &directory.path_of(name::MARK), errno).at_opening()
        })?;
        Ok(Some(File::with(FileInner::new(directory, mark, false, domain, self.clock, file_system))))
    }

    /// The guarantees of the store in this directory, or those that it will have once it exists. Creates and changes
    /// nothing; fails where opening would fail.
    pub fn guarantees(&self, path: impl AsRef<Path>) -> Result<Guarantees, Error> {
        if let Some(store) = self.clone().open_to_read(&path)? {
            return Ok(store.guarantees());
        }
        let path = self.resolve(path.as_ref(), Use::Read)?;
        Ok(guarantees(self.check_file_system(&path, &path_safety::nearest(&path)?)?))
    }

    /// The path of the directory. Nothing is created where it must not be, and a new directory is on the file system of
    /// the one above it.
    fn resolve(&self, path: &Path, usage: Use) -> Result<PathBuf, Error> {
        let path = path_safety::resolve(path)?;
        self.check_above(&path)?;
        // Before it is opened: the kernel's refusal would not say whose directory it is.
        match rustix::fs::lstat(&path) {
            Ok(status) if FileType::from_raw_mode(status.st_mode) == FileType::Directory => {
                self.check_owner(&path, &status, usage)?;
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(IoError::reading("cannot inspect", &path, errno).at_opening()),
        }
        self.check_file_system(&path, &path_safety::nearest(&path)?)?;
        Ok(path)
    }

    /// Checks again, now that the directory is open: the checked directory is the used one. Also returns its file
    /// system.
    fn check(
        &self,
        path: PathBuf,
        descriptor: OwnedFd,
        usage: Use,
    ) -> Result<(Directory, FileSystem), Error> {
        let status = rustix::fs::fstat(&descriptor)
            .map_err(|errno| IoError::new("cannot inspect", &path, errno).at_opening())?;
        self.check_above(&path)?;
        self.check_owner(&path, &status, usage)?;
        let file_system = self.check_file_system(&path, &descriptor)?;
        let rights = match self.sharing {
            Sharing::OneUser => FileRights::of_one_user(&status),
            Sharing::Group => FileRights::of_group(&status),
        };
        let directory = Directory::with_rights(path, descriptor, &status, rights);
        is_store_or_empty(&directory)?;
        self.check_mark_is_shared(&directory, &status)?;
        Ok((directory, file_system))
    }

    fn check_above(&self, path: &Path) -> Result<(), Error> {
        let checked = path_safety::check_above(path, self.accepted_risks, self.sharing);
        checked.map_err(|refusal| refusal.of_leases(path))
    }

    /// Checks the owner and the mode of the directory.
    fn check_owner(&self, path: &Path, status: &Stat, usage: Use) -> Result<(), Error> {
        if self.sharing == Sharing::Group {
            return sharing::check_directory(path, status, usage);
        }
        if sharing::is_set_up(status) && !self.accepted_risks.writable_by_others {
            return Err(sharing::unasked_error(path, status.st_gid));
        }
        path_safety::check_directory(path, status, self.accepted_risks, usage).map_err(|refusal| {
            let is_foreign = status.st_uid != rustix::process::geteuid().as_raw();
            let refusal = if is_foreign { refusal.or_share(sharing::steps_to_share(path)) } else { refusal };
            refusal.of_leases(path)
        })
    }

    /// A store is shared with all its files, or not at all: a program that creates private files in a shared store
    /// would exclude the other members. The mode of the mark shows how the store was made.
    fn check_mark_is_shared(&self, directory: &Directory, status: &Stat) -> Result<(), Error> {
        let Ok(mark) = directory.status_of(name::MARK) else { return Ok(()) };
        let group = status.st_gid;
        match self.sharing {
            Sharing::Group => {
                sharing::check_file(directory.path(), &directory.path_of(name::MARK), &mark, group)
            }
            Sharing::OneUser if sharing::is_set_up(status) && mark.st_mode & GROUP_WRITE != 0 => {
                Err(sharing::unasked_error(directory.path(), group))
            }
            Sharing::OneUser => Ok(()),
        }
    }

    fn check_file_system(&self, path: &Path, directory: &OwnedFd) -> Result<FileSystem, Error> {
        let there = FileSystem::of(directory)
            .map_err(|errno| IoError::new("cannot inspect", path, errno).at_opening())?;
        let is_named = self.file_systems.iter().any(|name| there.is_called(name));
        if there.is_local() || (is_named && self.sharing == Sharing::OneUser) {
            return Ok(there);
        }
        if is_named {
            // Owners, groups and modes may be those of another machine.
            let sentence = format!(
                "{} is on {there}: a group can share a store only on a local file system. Use a directory on a local \
                 disk, or a networked store",
                path.display()
            );
            return Err(Error::new(ErrorKind::Unsupported, sentence));
        }
        let sentence = format!(
            "{} is on {there}, which is not known to be local: {}. Use a directory on a local disk or a networked \
             store, or accept it by name (accept_file_system(\"{there}\"), in a URL ?accept={there}), with weaker guarantees",
            path.display(),
            there.lacks()
        );
        Err(Error::new(ErrorKind::Unsupported, sentence))
    }
}

/// Runs the trial of the directory, unless it has passed in this boot, through this mount.
///
/// A file system that was accepted by name has the same trial: observed misbehaviour cannot be accepted.
fn try_out(directory: &Directory, domain: Option<&Domain>) -> Result<(), Error> {
    let tried = Tried::here(directory, domain);
    if tried.as_ref().is_some_and(|tried| tried.is_noted(directory)) {
        return Ok(());
    }
    trial::run(directory).map_err(|failure| match failure {
        TrialFailure::Errno(Errno::OPNOTSUPP) if directory.is_shared() => {
            let sentence = format!(
                "{} cannot be shared: a new file does not get the group of its directory and the mode 0660 there. \
                 Use a directory on another file system",
                directory.path().display()
            );
            Error::new(ErrorKind::Unsupported, sentence)
        }
        TrialFailure::Errno(errno) => {
            IoError::new("cannot test locks and renames in", directory.path(), errno).at_opening()
        }
        TrialFailure::Flaw(flaw) => {
            let kind = FileSystem::of(directory).map_or("a file system".to_owned(), |there| there.to_string());
            let sentence = format!(
                "{} is on {kind}, which fails the safety check: {flaw}. Use a directory on another file system",
                directory.path().display()
            );
            Error::new(ErrorKind::Unsupported, sentence)
        }
    })?;
    // Without a note, the trial runs again next time.
    let _ = tried.map(|tried| tried.note(directory));
    Ok(())
}

/// The guarantees of a store in a directory. On a file system that was only accepted by name, the guarantees that
/// depend on the local kernel are missing.
pub(super) fn guarantees(file_system: FileSystem) -> Guarantees {
    let local = file_system.is_local();
    let mut guarantees = Guarantees::default();
    guarantees.atomic_create = true;
    guarantees.atomic_replace = true;
    guarantees.linearizable_reads = true;
    guarantees.keeps_acknowledged = true;
    guarantees.lost_at_reboot = file_system.is_in_memory();
    guarantees.unique_versions = true;
    guarantees.reach = Reach::Machine;
    guarantees.clock = if local { StoreClock::Ages } else { StoreClock::Floors };
    // Every write raises the mark above every time that its writer has seen.
    guarantees.clock_tick = Duration::ZERO;
    guarantees.watch = local;
    guarantees.write_interval = Duration::ZERO;
    guarantees.value_max = File::VALUE_MAX;
    guarantees
}

/// Fails for a directory with other content: it was most likely named by mistake.
fn is_store_or_empty(directory: &Directory) -> Result<(), Error> {
    if directory.status_of(name::MARK).is_ok() {
        return Ok(());
    }
    let io_error = |errno| IoError::new("cannot list", directory.path(), errno).at_opening();
    let mut names = Dir::read_from(directory).map_err(io_error)?;
    while let Some(name) = names.read() {
        let name = name.map_err(io_error)?;
        let bytes = name.file_name().to_bytes();
        // FUSE and NFS create such names for a file that was replaced while open: another process is opening the store.
        let hidden = [&b".fuse_hidden"[..], b".nfs"].iter().any(|begin| bytes.starts_with(begin));
        let nothing = hidden || [&b"."[..], b"..", b"lost+found"].contains(&bytes);
        if !nothing && name::parse(bytes) == FileName::Foreign {
            let sentence = format!(
                "{} is not a store and not empty ({:?} is in it): name an empty or new directory, for example {}",
                directory.path().display(),
                name.file_name(),
                directory.path_of("tenure").display()
            );
            return Err(Error::new(ErrorKind::Invalid, sentence));
        }
    }
    Ok(())
}

const GROUP_WRITE: u32 = 0o020;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_accepted_by_name_promises_less_and_still_supports_leases() {
        let kind = |path: &str| FileSystem::of(std::fs::File::open(path).unwrap()).unwrap();
        let (local, named) = (guarantees(kind(env!("CARGO_MANIFEST_DIR"))), guarantees(kind("/proc")));
        assert_eq!((local.clock, local.watch), (StoreClock::Ages, true));
        assert_eq!((named.clock, named.watch, named.reach), (StoreClock::Floors, false, Reach::Machine));
        assert!(named.missing_for_leases().is_empty());
    }
}
