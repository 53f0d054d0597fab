#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::io::Errno;

use super::directory::WitnessDirectory;
use super::files::WitnessFiles;
use super::lock::Lock;
use crate::host::disk::private_dir::PrivateDir;

/// Directories of this user on this machine for the witnesses of all networked stores.
///
/// There are several, because none exists everywhere. A witness is created in the first usable one, and looked up in
/// all of them. So a service, a cron job and a login shell of one user find each other's witnesses even if one of them
/// cannot write where another can. No directory is created before it is needed. Each is opened by its path at every
/// use, because other processes may have removed and created it anew.
#[derive(Debug)]
pub(super) struct MachineDirs {
    paths: Vec<PathBuf>,
    boot: String,
    /// Directory of the latest witness: all witnesses there share one descriptor.
    latest: Mutex<Weak<WitnessDirectory>>,
    swept: AtomicBool,
}

impl MachineDirs {
    /// The directories of this user in this boot.
    pub(super) fn of_this_user(boot: String) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Self::new(paths(user, named), boot)
    }

    pub(super) fn new(paths: Vec<PathBuf>, boot: String) -> Self {
        Self { paths, boot, latest: Mutex::default(), swept: AtomicBool::new(false) }
    }

    /// True if a record with this boot id can name a witness in these directories.
    pub(super) fn is_of(&self, boot: Option<&str>) -> bool {
        boot == Some(&*self.boot)
    }

    /// The existing ones to which no other user can write.
    pub(super) fn directories(&self) -> impl Iterator<Item = Arc<WitnessDirectory>> {
        let own = self.paths.iter().filter_map(|path| PrivateDir::open_if_there(path).ok().flatten());
        own.map(|own| self.directory(own))
    }

    /// Creates a witness in the first directory where that is possible.
    pub(super) fn create(&self, random: u128) -> io::Result<Lock> {
        let made = self.paths.iter().filter(|path| is_directory(path.parent())).find_map(|path| {
            let directory = self.directory(PrivateDir::open_or_make(path).ok()?);
            let files: Arc<dyn WitnessFiles> = Arc::clone(&directory) as _;
            let lock = Lock::create_in(&files, random).ok()?;
            *self.latest() = Arc::downgrade(&directory);
            Some(lock)
        });
        made.ok_or_else(|| Errno::NOENT.into())
    }

    /// Removes the witnesses of dead holders, once in the life of this process, and not before it has created a
    /// witness: an observer has nothing to clean up.
    pub(super) fn sweep(&self) {
        if self.latest().strong_count() > 0 && !self.swept.swap(true, Ordering::Relaxed) {
            let seconds = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
            // Optional: remaining files do no harm.
            self.directories().for_each(|directory| drop(directory.sweep(seconds)));
        }
    }

    fn directory(&self, own: PrivateDir) -> Arc<WitnessDirectory> {
        let opened = WitnessDirectory::at(own.descriptor, &own.status, Some(self.boot.clone()));
        let latest = self.latest().upgrade();
        latest.filter(|latest| latest.is(&opened)).unwrap_or_else(|| Arc::new(opened))
    }

    fn latest(&self) -> std::sync::MutexGuard<'_, Weak<WitnessDirectory>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Directories for the witnesses of a user, the best one first.
///
/// * The directory that `XDG_RUNTIME_DIR` names, if it was set explicitly, as for a service. Not the one of a login
///   below `/run/user`: it is deleted with the last login, which for a cron job is its own, and with it every witness.
/// * Root's own directory in `/run`.
/// * `/tmp` and `/dev/shm`, in a directory named by the user number, so that all processes of that user share it.
///   `/tmp` is better for login users: systemd deletes their files in `/dev/shm` with their last login (`RemoveIPC=`).
///   `/dev/shm` is better for system users, to whom that does not apply: a service may have its own `/tmp`
///   (`PrivateTmp=`), which is deleted when it ends.
fn paths(user: u32, named: Option<PathBuf>) -> Vec<PathBuf> {
    let named = named.filter(|path| path.is_absolute() && !path.starts_with("/run/user"));
    let run = (user == 0).then(|| PathBuf::from("/run/tenure"));
    let shared = if user < FIRST_PERSON { ["/dev/shm", "/tmp"] } else { ["/tmp", "/dev/shm"] };
    let shared = shared.map(|directory| Path::new(directory).join(format!("tenure-{user}")));
    named.map(|path| path.join("tenure")).into_iter().chain(run).chain(shared).collect()
}

/// Directories of a login, a mount or a package are not created here.
fn is_directory(path: Option<&Path>) -> bool {
    path.is_some_and(Path::is_dir)
}

/// Smaller numbers are system users, by the convention of systemd and the distributions.
const FIRST_PERSON: u32 = 1000;
