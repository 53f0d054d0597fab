#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::io::Errno;

use super::folder::WitnessFolder;
use super::lock::Lock;
use crate::host::disk::private_dir::PrivateDir;

/// The folders of this user on this machine where witnesses of all stores of the network lie.
///
/// There are several, because none is there everywhere. A witness is made in the first that can be used and is looked for
/// in all of them, so that a service, a cron job and a login shell of one user find each other's although one of them
/// cannot write where another can. Nothing is made before there is a witness to be made. Each is opened anew by its path
/// whenever it is used: what was removed meanwhile may have been made anew by others.
#[derive(Debug)]
pub(super) struct MachineDirs {
    paths: Vec<PathBuf>,
    boot: String,
    /// The folder that the latest witness was made in: all of them share one descriptor.
    latest: Mutex<Weak<WitnessFolder>>,
    swept: AtomicBool,
}

impl MachineDirs {
    /// Those of this user, in this boot.
    pub(super) fn of_this_user(boot: String) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Self::new(paths(user, named), boot)
    }

    pub(super) fn new(paths: Vec<PathBuf>, boot: String) -> Self {
        Self { paths, boot, latest: Mutex::default(), swept: AtomicBool::new(false) }
    }

    /// Whether a record with this boot id can name a witness that lies here.
    pub(super) fn is_of(&self, boot: Option<&str>) -> bool {
        boot == Some(&*self.boot)
    }

    /// Those that are there, and that nobody else can have put something in.
    pub(super) fn folders(&self) -> impl Iterator<Item = Arc<WitnessFolder>> {
        let own = self.paths.iter().filter_map(|path| PrivateDir::open_if_there(path).ok().flatten());
        own.map(|own| self.folder(own))
    }

    /// Makes a witness in the first folder where that is possible.
    pub(super) fn create(&self, random: u128) -> io::Result<Lock> {
        let made = self.paths.iter().filter(|path| is_folder(path.parent())).find_map(|path| {
            let folder = self.folder(PrivateDir::open_or_make(path).ok()?);
            let lock = folder.create(random).ok()?;
            *self.latest() = Arc::downgrade(&folder);
            Some(lock)
        });
        made.ok_or_else(|| Errno::NOENT.into())
    }

    /// Removes what dead holders left behind, once in the life of this process and not before it has made a witness:
    /// whoever only looks has nothing to tidy up.
    pub(super) fn sweep(&self) {
        if self.latest().strong_count() > 0 && !self.swept.swap(true, Ordering::Relaxed) {
            let seconds = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
            // A courtesy: what stays does no harm.
            self.folders().for_each(|folder| drop(folder.sweep(seconds)));
        }
    }

    fn folder(&self, own: PrivateDir) -> Arc<WitnessFolder> {
        let opened = WitnessFolder::at(own.descriptor, &own.status, Some(self.boot.clone()));
        let latest = self.latest().upgrade();
        latest.filter(|latest| latest.is(&opened)).unwrap_or_else(|| Arc::new(opened))
    }

    fn latest(&self) -> std::sync::MutexGuard<'_, Weak<WitnessFolder>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the witnesses of a user lie, the best place first.
///
/// * What `XDG_RUNTIME_DIR` names, if somebody has set it on purpose, as for a service. Not the one that comes with a login,
///   below `/run/user`: it goes with the last login, which for a cron job is its own, and with it every witness.
/// * Root's own folder in `/run`.
/// * `/tmp` and `/dev/shm`, in a folder named by the number of the user, so that it is the same one for everybody who is
///   that user. `/tmp` is better for people: what they have in `/dev/shm` goes with their last login (`RemoveIPC=`).
///   `/dev/shm` is better for the users of services, of which that does not hold: a service may have a `/tmp` of its own
///   (`PrivateTmp=`), which goes when it ends.
fn paths(user: u32, named: Option<PathBuf>) -> Vec<PathBuf> {
    let named = named.filter(|path| path.is_absolute() && !path.starts_with("/run/user"));
    let run = (user == 0).then(|| PathBuf::from("/run/tenure"));
    let shared = match user < FIRST_PERSON {
        true => ["/dev/shm", "/tmp"],
        false => ["/tmp", "/dev/shm"],
    };
    let shared = shared.map(|folder| Path::new(folder).join(format!("tenure-{user}")));
    named.map(|path| path.join("tenure")).into_iter().chain(run).chain(shared).collect()
}

/// What a login, a mount or a package makes is not made here.
fn is_folder(path: Option<&Path>) -> bool {
    path.is_some_and(Path::is_dir)
}

/// Users with smaller numbers are services, as systemd and the distributions have it.
const FIRST_PERSON: u32 = 1000;
