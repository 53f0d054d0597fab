use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use tenure_core::machine::Sighting;
use tenure_core::record::{Nonce, Witness};

use super::lock::Lock;
use super::lock_mapping::LockMapping;
use super::survivors::{self, Survivors};
use super::{WitnessPart, name, nonce_ring, ofd, sweep};
use crate::host::disk::filesystem::FileSystem;
use crate::host::inotify::{self, Changes, Target};
use crate::host::owner::given_to;

/// A folder of this machine where witnesses lie.
#[derive(Debug)]
pub(crate) struct WitnessFolder {
    descriptor: OwnedFd,
    device: u64,
    inode: u64,
    owner: u32,
    /// Its file system is one where a mapping is known to keep a lock.
    keeps_locks: bool,
    /// To whom new files are given, where this process is root and the folder somebody's.
    given_to: Option<(Uid, Gid)>,
    /// The boot id, where records are seen by other machines too: those may have a copy of a witness, inode and all.
    boot: Option<String>,
}

impl WitnessFolder {
    /// The witnesses in this folder. With a boot id, records name that too.
    pub(super) fn open(path: &Path, boot: Option<String>) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&descriptor)?;
        Ok(Self::at(descriptor, &status, boot))
    }

    /// The same, in a folder that is open.
    pub(super) fn at(descriptor: OwnedFd, status: &Stat, boot: Option<String>) -> Self {
        let keeps_locks = FileSystem::of(&descriptor).is_ok_and(FileSystem::keeps_what_is_mapped);
        Self {
            descriptor,
            device: status.st_dev,
            inode: status.st_ino,
            owner: status.st_uid,
            keeps_locks,
            given_to: given_to(status),
            boot,
        }
    }

    /// Whether this is the very folder, and can still be used.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode) && self.descriptor().is_ok()
    }

    /// The device that it is on.
    pub(super) fn device(&self) -> u64 {
        self.device
    }

    /// Makes a witness. It is locked before it has a name, and never has another one.
    ///
    /// Two things must agree before a record may name it: the kind of file system is known to keep a lock by a mapping,
    /// and this lock was seen to hold. The look alone can be deceived. A process that forks while the descriptor is open
    /// gives a copy of it to the child, and the lock holds until that child calls exec: on an overlay, 1 % of the witnesses
    /// of a program that forks all the time looked held, and were free a moment later.
    pub(crate) fn create(self: &Arc<Self>, random: u128) -> io::Result<Lock> {
        if self.keeps_locks { self.make(random) } else { Err(Errno::OPNOTSUPP.into()) }
    }

    /// Makes a witness, and gives it out only if its lock was seen to hold.
    pub(super) fn make(self: &Arc<Self>, random: u128) -> io::Result<Lock> {
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
        // What is kept is the mapping alone, and so it must be when the lock is looked at.
        drop(file);
        let lock =
            Lock::new(Arc::clone(self), Witness { name, inode, boot: self.boot.clone() }, lock_mapping);
        if let Err(error) = self.verify_lock(&lock, Nonce::from_bits(random)) {
            // By its name alone: its inode may be what differs.
            let _ = rustix::fs::unlinkat(self.descriptor()?, &lock.named().name, AtFlags::empty());
            return Err(error);
        }
        Ok(lock)
    }

    /// Looks at a new witness as a contender does: opened by its name, it is the very file, locked, and its ring lists what
    /// was written there. The nonce is one that no record carries.
    fn verify_lock(&self, lock: &Lock, nonce: Nonce) -> io::Result<()> {
        lock.list_for_trial(nonce)?;
        let seen = self.try_look(lock.named(), nonce)?;
        let holds = seen.same_file && seen.guards_locked && seen.lists_nonce;
        if holds { Ok(()) } else { Err(Errno::OPNOTSUPP.into()) }
    }

    /// A new file, and whether it has its name already.
    fn create_file(&self, name: &str) -> io::Result<(OwnedFd, bool)> {
        let folder = self.descriptor()?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::openat(folder, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => Ok((file, false)),
            // Not every file system has files without a name. There it lies unlocked for a moment, and no record names it.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
                let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                Ok((rustix::fs::openat(folder, name, flags, mode)?, true))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Everything it needs before others may see it.
    fn initialize(&self, file: &OwnedFd) -> io::Result<(u64, LockMapping)> {
        if let Some((user, group)) = self.given_to {
            rustix::fs::fchown(file, Some(user), Some(group))?;
        }
        // Whole from the start: what is written in place later needs no more room on the disk.
        if rustix::io::pwrite(file, &nonce_ring::EMPTY, 0)? != nonce_ring::BYTES {
            return Err(Errno::NOSPC.into());
        }
        ofd::share(file, WitnessPart::Guards)?;
        Ok((rustix::fs::fstat(file)?.st_ino, LockMapping::of(file)?))
    }

    /// What there is to see of the witness that a record names. Every error means that nothing is known.
    pub(crate) fn look(&self, named: &Witness, nonce: Nonce) -> Sighting {
        self.try_look(named, nonce).unwrap_or_default()
    }

    fn try_look(&self, named: &Witness, nonce: Nonce) -> io::Result<Sighting> {
        let (file, same_file) = self.open_named(named, OFlags::RDONLY)?;
        if !same_file {
            return Ok(Sighting { found: true, ..Sighting::default() });
        }
        // Once unlocked it stays so, and nothing is listed any more: what is read after the lock was seen free is all
        // there will ever be.
        let locks = ofd::locks(&file)?;
        let mut bytes = [0; nonce_ring::BYTES + 1];
        let read = rustix::io::pread(&file, &mut bytes[..], 0)?;
        // A second name, as a backup by hard links gives it, proves no death. What is locked counts all the same.
        let one_name = rustix::fs::fstat(&file)?.st_nlink == 1;
        let lists_nonce = one_name && nonce_ring::lists(&bytes[..read], &named.name, self.device, nonce);
        let (guards_locked, tree_locked) = (locks.guards, locks.tree);
        Ok(Sighting { found: true, same_file, guards_locked, tree_locked, lists_nonce })
    }

    /// The processes that are alive under the record that names this witness; `None` if it is not the very file.
    pub(super) fn survivors(&self, named: &Witness, nonce: Nonce) -> Option<Survivors> {
        let seen = self.look(named, nonce);
        let (file, same_file) = self.open_named(named, OFlags::RDONLY).ok()?;
        let status = rustix::fs::fstat(&file).ok().filter(|_| same_file)?;
        let processes =
            if seen.is_locked() { survivors::of(status.st_dev, status.st_ino) } else { Vec::new() };
        Some(Survivors { guards: seen.guards_locked, tree: seen.tree_locked, processes })
    }

    /// Changes of the witness that a record names: somebody has written to it, or died.
    pub(crate) fn watch(&self, named: &Witness) -> Option<Changes> {
        let (file, same_file) = self.open_named(named, OFlags::RDONLY).ok()?;
        if same_file { inotify::watch(&file, Target::Closing, |_| true) } else { None }
    }

    /// Removes a witness that nobody has locked. Whoever still wanted to look at it waits out the ttl instead.
    pub(crate) fn remove_dead(&self, named: &Witness) -> io::Result<()> {
        let (file, same_file) = self.open_named(named, OFlags::RDONLY)?;
        if same_file && !ofd::is_locked(&file)? {
            rustix::fs::unlinkat(self.descriptor()?, &named.name, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Removes what dead holders left behind that nobody succeeded on this machine. At most so many files are looked at.
    pub(super) fn sweep(&self, before: i64) -> io::Result<()> {
        let folder = self.descriptor()?;
        let mut names = Dir::read_from(folder)?;
        for _ in 0..SWEPT_MAX {
            let Some(entry) = names.read() else { break };
            if let Ok(name) = entry?.file_name().to_str()
                && name::is_name(name)
            {
                sweep::remove_if_dead(folder, name, before);
            }
        }
        Ok(())
    }

    /// Removes the witness whether it is locked or not, if it is the one that is meant.
    pub(super) fn remove(&self, named: &Witness) -> io::Result<()> {
        let folder = self.descriptor()?;
        let status = rustix::fs::statat(folder, &named.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if status.st_ino == named.inode {
            rustix::fs::unlinkat(folder, &named.name, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Opens what a record names, and says whether it is the very file.
    pub(super) fn open_named(&self, named: &Witness, flags: OFlags) -> io::Result<(OwnedFd, bool)> {
        if !name::is_name(&named.name) {
            return Err(Errno::INVAL.into());
        }
        // Without O_NONBLOCK, a fifo that somebody left here would stop the caller.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = rustix::fs::openat(self.descriptor()?, &named.name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&file)?;
        let same_file = self.is_witness(&status) && status.st_ino == named.inode && named.boot == self.boot;
        Ok((file, same_file))
    }

    /// True if it can be a witness at all: a file of the right length, made by a user who may.
    fn is_witness(&self, status: &Stat) -> bool {
        let trusted = [rustix::process::geteuid().as_raw(), 0, self.owner];
        FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
            && status.st_size == nonce_ring::BYTES as i64
            && trusted.contains(&status.st_uid)
    }

    /// The folder, if the number of its descriptor still stands for it: a program that becomes a daemon closes
    /// everything, and opens something else in its place.
    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        let status = rustix::fs::fstat(&self.descriptor)?;
        match (status.st_dev, status.st_ino) == (self.device, self.inode) {
            true => Ok(self.descriptor.as_fd()),
            false => Err(Errno::BADF.into()),
        }
    }
}

/// More than a machine has leases. What is beyond that is left to the next one who sweeps.
const SWEPT_MAX: usize = 10_000;
