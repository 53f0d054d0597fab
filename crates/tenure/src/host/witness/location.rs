use std::io;
use std::sync::Arc;

use rustix::io::Errno;
use tenure_core::machine::Sighting;
use tenure_core::record::{Nonce, Witness};
use tenure_store::{BoxStream, Reach, Store};

use super::directory::WitnessDirectory;
use super::files::WitnessFiles;
use super::lock::Lock;
use super::machine_dirs::MachineDirs;
use super::survivors::Survivors;
use crate::clock::boot_id;
use crate::host::simulation::simulated;

/// Directories of the witnesses of a store on this machine.
#[derive(Debug)]
pub(crate) struct WitnessLocation {
    /// The directory that the store names. Witnesses are created there first.
    of_store: Option<Arc<dyn WitnessFiles>>,
    /// Directories of this machine, for stores that name none, and for witnesses that cannot be created in theirs.
    of_machine: Option<MachineDirs>,
}

impl WitnessLocation {
    /// The witnesses of a store, if there is a directory for them. Without one the protocol is as safe, but contenders
    /// wait for the ttl of a dead holder.
    pub(crate) fn of_store(store: &dyn Store) -> Option<Self> {
        let reach = store.guarantees().reach;
        if reach == Reach::Process {
            return None;
        }
        if let Some(of_store) = simulated(|host| host.witnesses()) {
            return of_store.map(|files| Self { of_store: Some(files), of_machine: None });
        }
        let boot = boot_id();
        // Records that other machines see also name this boot: they may have a copy of a witness with the same inode.
        let named = if reach == Reach::Machine { Some(None) } else { boot.clone().map(Some) };
        let identity = store.identity();
        let open =
            if identity.shares_witnesses { WitnessDirectory::open_shared } else { WitnessDirectory::open };
        let of_store = identity.witness_directory.zip(named);
        let of_store = of_store.and_then(|(path, boot)| open(&path, boot).ok());
        let of_store = of_store.map(|directory| Arc::new(directory) as Arc<dyn WitnessFiles>);
        let of_machine = boot.map(MachineDirs::of_this_user);
        (of_store.is_some() || of_machine.is_some()).then_some(Self { of_store, of_machine })
    }

    /// Creates a witness in the first directory where its lock is seen to hold.
    pub(crate) fn create(&self, random: u128) -> io::Result<Lock> {
        let made = self.of_store.as_ref().and_then(|files| Lock::create_in(files, random).ok());
        match (made, &self.of_machine) {
            (Some(lock), _) => Ok(lock),
            (None, Some(runtime)) => runtime.create(random),
            (None, None) => Err(Errno::NOENT.into()),
        }
    }

    /// Sighting of the witness that a record names. After an error it is empty, and proves nothing.
    pub(crate) fn look(&self, named: &Witness, nonce: Nonce) -> Sighting {
        self.find(named, |directory| Some(directory.look(named, nonce)).filter(|sighting| sighting.found))
            .unwrap_or_default()
    }

    /// Processes that are alive under the record that names this witness.
    pub(crate) fn survivors(&self, named: &Witness, nonce: Nonce) -> Survivors {
        self.find(named, |directory| directory.survivors(named, nonce)).unwrap_or_default()
    }

    /// Changes of the witness that a record names: a process has written to it, or died.
    pub(crate) fn watch(&self, named: &Witness) -> Option<BoxStream<'static, ()>> {
        self.find(named, |directory| directory.watch(named))
    }

    /// Removes an unlocked witness. A contender that still wanted to inspect it waits for the ttl instead.
    pub(crate) fn remove_dead(&self, named: &Witness) {
        self.find(named, |directory| directory.remove_dead(named).ok());
    }

    /// Removes the witnesses of dead holders. A store with witnesses in its own directory does that itself.
    pub(crate) fn sweep(&self) {
        if let Some(runtime) = &self.of_machine {
            runtime.sweep();
        }
    }

    /// The first result of a directory that has one.
    fn find<T>(&self, named: &Witness, mut find: impl FnMut(&dyn WitnessFiles) -> Option<T>) -> Option<T> {
        self.of_store.as_deref().and_then(&mut find).or_else(|| {
            // A record of another boot, or without one, names no witness in these directories.
            let runtime = self.of_machine.as_ref().filter(|runtime| runtime.is_of(named.boot.as_deref()))?;
            runtime.directories().find_map(|directory| find(&*directory))
        })
    }
}
