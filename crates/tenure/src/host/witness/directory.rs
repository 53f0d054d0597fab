use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use tenure_core::machine::Sighting;
use tenure_core::record::{Nonce, Witness};
use tenure_store::BoxStream;

use super::files::WitnessFiles;
use super::lock_mapping::LockMapping;
use super::locked_file::LockedFile;
use super::mapped_file::MappedFile;
use super::survivors::{self, Survivors};
use super::{WitnessPart, name, nonce_ring, ofd, sweep};
use crate::host::disk::filesystem::FileSystem;
use crate::host::file_rights::{FileRights, MemberRights};
use crate::host::inotify::{self, Target};

/// A local directory of witnesses.
#[derive(Debug)]
pub(crate) struct WitnessDirectory {
    descriptor: OwnedFd,
    device: u64,
    inode: u64,
    owner: u32,
    /// Its file system; `None` if the kernel does not tell.
    file_system: Option<FileSystem>,
    /// Rights of new files.
    rights: FileRights,
    /// The boot id, if other machines see the records: they may have a copy of a witness with the same inode.
    boot: Option<String>,
}

impl WitnessDirectory {
    /// Witnesses in this directory. With a boot id, records name that too.
    pub(super) fn open(path: &Path, boot: Option<String>) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&descriptor)?;
        Ok(Self::at(descriptor, &status, boot))
    }

    /// Witnesses in this directory, which the members of its group share: each member can read all of them.
    pub(super) fn open_shared(path: &Path, boot: Option<String>) -> io::Result<Self> {
        let opened = Self::open(path, boot)?;
        let rights = FileRights::of_group(&rustix::fs::fstat(&opened.descriptor)?);
        Ok(Self { rights, ..opened })
    }

    /// Witnesses in an open directory.
    pub(super) fn at(descriptor: OwnedFd, status: &Stat, boot: Option<String>) -> Self {
        let file_system = FileSystem::of(&descriptor).ok();
        Self {
            descriptor,
            device: status.st_dev,
            inode: status.st_ino,
            owner: status.st_uid,
            file_system,
            rights: FileRights::of_one_user(status),
            boot,
        }
    }

    /// True if this is the same directory, and still usable.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode) && self.descriptor().is_ok()
    }

    /// Its device.
    pub(super) fn device(&self) -> u64 {
        self.device
    }

    /// True if its files are in memory alone.
    pub(super) fn is_in_memory(&self) -> bool {
        self.file_system.is_some_and(FileSystem::is_in_memory)
    }

    /// A new file, and true if it has its name already.
    fn create_file(&self, name: &str) -> io::Result<(OwnedFd, bool)> {
        let directory = self.descriptor()?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::openat(directory, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => Ok((file, false)),
            // Some file systems have no unnamed files. There the file is unlocked for a moment, while no record names
            // it.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
                let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                Ok((rustix::fs::openat(directory, name, flags, mode)?, true))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Prepares the file before other processes can see it.
    fn initialize(&self, file: &OwnedFd) -> io::Result<(u64, LockMapping)> {
        // A member who may read a witness sees its lock and its nonces. To write them is for the holder alone.
        self.rights.give(file, MemberRights::Read)?;
        // Written completely at once: later writes in place need no more disk space.
        if rustix::io::pwrite(file, &nonce_ring::EMPTY, 0)? != nonce_ring::BYTES {
            return Err(Errno::NOSPC.into());
        }
        ofd::share(file, WitnessPart::Guards)?;
        Ok((rustix::fs::fstat(file)?.st_ino, LockMapping::of(file)?))
    }

    /// Removes the witnesses of dead holders without a successor on this machine. The number of inspected files is
    /// limited.
    pub(super) fn sweep(&self, before: i64) -> io::Result<()> {
        let directory = self.descriptor()?;
        let mut names = Dir::read_from(directory)?;
        for _ in 0..SWEPT_MAX {
            let Some(entry) = names.read() else { break };
            if let Ok(name) = entry?.file_name().to_str()
                && name::is_name(name)
            {
                sweep::remove_if_dead(directory, name, before);
            }
        }
        Ok(())
    }

    /// Removes the witness, locked or not, if it is the named file.
    pub(super) fn remove(&self, named: &Witness) -> io::Result<()> {
        let directory = self.descriptor()?;
        let status = rustix::fs::statat(directory, &named.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if status.st_ino == named.inode {
            self.remove_by_name(named)?;
        }
        Ok(())
    }

    /// Removes the file of this name, whatever it is.
    pub(super) fn remove_by_name(&self, named: &Witness) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.descriptor()?, &named.name, AtFlags::empty())?)
    }

    /// Opens the file that a record names; true if it is the named file.
    pub(super) fn open_named(&self, named: &Witness, flags: OFlags) -> io::Result<(OwnedFd, bool)> {
        if !name::is_name(&named.name) {
            return Err(Errno::INVAL.into());
        }
        // Without O_NONBLOCK, opening a fifo here would block the caller.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = rustix::fs::openat(self.descriptor()?, &named.name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&file)?;
        let same_file = self.is_witness(&status) && status.st_ino == named.inode && named.boot == self.boot;
        Ok((file, same_file))
    }

    /// True if it can be a witness: a regular file of the right length, from a trusted user. The members of a group
    /// that shares the directory trust one another.
    fn is_witness(&self, status: &Stat) -> bool {
        let users = [rustix::process::geteuid().as_raw(), 0, self.owner];
        let is_trusted = match self.rights {
            FileRights::Private | FileRights::GivenTo(..) => users.contains(&status.st_uid),
            FileRights::Shared(group) => {
                status.st_gid == group.as_raw() && status.st_mode & OTHERS_WRITE == 0
            }
        };
        FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
            && status.st_size == nonce_ring::BYTES as i64
            && is_trusted
    }

    /// The directory, if its descriptor number still refers to it: a program that becomes a daemon closes all
    /// descriptors, and may open another file under the same number.
    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        let status = rustix::fs::fstat(&self.descriptor)?;
        if (status.st_dev, status.st_ino) == (self.device, self.inode) {
            Ok(self.descriptor.as_fd())
        } else {
            Err(Errno::BADF.into())
        }
    }
}

impl WitnessFiles for WitnessDirectory {
    fn keeps_locks(&self) -> bool {
        self.file_system.is_some_and(FileSystem::keeps_what_is_mapped)
    }

    fn make(self: Arc<Self>, random: u128) -> io::Result<Box<dyn LockedFile>> {
        let name = name::of(random);
        let (file, named) = self.create_file(&name)?;
        let initialized = self.initialize(&file);
        if named && initialized.is_err() {
            let _ = rustix::fs::unlinkat(self.descriptor()?, &name, AtFlags::empty());
        }
        let (inode, lock_mapping) = initialized?;
        if !named {
            let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, unnamed, self.descriptor()?, &name, AtFlags::SYMLINK_FOLLOW)?;
        }
        // Only the mapping stays, so only the mapping may hold the lock when the caller checks it.
        drop(file);
        let witness = Witness::new(name, inode).with_boot(self.boot.clone());
        Ok(Box::new(MappedFile::new(self, witness, lock_mapping)))
    }

    fn try_look(&self, named: &Witness, nonce: Nonce) -> io::Result<Sighting> {
        let (file, same_file) = self.open_named(named, OFlags::RDONLY)?;
        if !same_file {
            return Ok(Sighting { found: true, ..Sighting::default() });
        }
        // An unlocked witness stays unlocked, and its list stays as it is: a read after the lock was seen free is
        // final.
        let locks = ofd::locks(&file)?;
        let mut bytes = [0; nonce_ring::BYTES + 1];
        let read = rustix::io::pread(&file, &mut bytes[..], 0)?;
        // A file with a second name, such as from a backup by hard links, proves no death. A lock on it still counts.
        let one_name = rustix::fs::fstat(&file)?.st_nlink == 1;
        let lists_nonce = one_name && nonce_ring::lists(&bytes[..read], &named.name, self.device, nonce);
        let (guards_locked, tree_locked) = (locks.guards, locks.tree);
        Ok(Sighting { found: true, same_file, guards_locked, tree_locked, lists_nonce })
    }

    fn survivors(&self, named: &Witness, nonce: Nonce) -> Option<Survivors> {
        let seen = self.try_look(named, nonce).unwrap_or_default();
        let (file, same_file) = self.open_named(named, OFlags::RDONLY).ok()?;
        let status = rustix::fs::fstat(&file).ok().filter(|_| same_file)?;
        let processes =
            if seen.is_locked() { survivors::of(status.st_dev, status.st_ino) } else { Vec::new() };
        Some(Survivors { guards: seen.guards_locked, tree: seen.tree_locked, processes })
    }

    fn watch(&self, named: &Witness) -> Option<BoxStream<'static, ()>> {
        let (file, same_file) = self.open_named(named, OFlags::RDONLY).ok()?;
        let changes = inotify::watch(&file, Target::Closing, |_| true).filter(|_| same_file)?;
        Some(changes.into_stream())
    }

    fn remove_dead(&self, named: &Witness) -> io::Result<()> {
        let (file, same_file) = self.open_named(named, OFlags::RDONLY)?;
        if same_file && !ofd::is_locked(&file)? {
            self.remove_by_name(named)?;
        }
        Ok(())
    }
}

const OTHERS_WRITE: u32 = 0o002;

/// Maximum number of inspected files: more than a machine has leases. A later sweep inspects the rest.
const SWEPT_MAX: usize = 10_000;
