use std::io;
use std::sync::Arc;

use tenure_store::{Reach, Store};

use super::folder::Folder;
use super::lock::Lock;
use super::runtime::Runtime;
use crate::clock::boot_id;
use crate::inotify::Changes;
use crate::machine::Sighting;
use crate::record::{Nonce, Witness};

/// Where the witnesses of a store lie on this machine.
#[derive(Debug)]
pub(crate) struct Shelf(Place);

#[derive(Debug)]
enum Place {
    /// In a folder that the store names.
    OfStore(Arc<Folder>),
    /// In folders of this machine, since the store knows nothing of it.
    OfMachine(Runtime),
}

impl Shelf {
    /// The witnesses of a store, if there is a place for them. Without one everything is as safe, and the death of a
    /// holder costs its ttl.
    pub(crate) fn of_store(store: &dyn Store) -> Option<Self> {
        // Records that other machines see name the boot of this one: those may have a copy of a witness, inode and all.
        let boot = match store.guarantees().reach {
            Reach::Network | Reach::Nothing => Some(boot_id()?),
            Reach::Machine | Reach::Process => None,
        };
        Some(Self(match (store.witness_folder(), boot) {
            (Some(path), boot) => Place::OfStore(Arc::new(Folder::open(&path, boot).ok()?)),
            (None, Some(boot)) => Place::OfMachine(Runtime::of_this_user(boot)),
            (None, None) => return None,
        }))
    }

    /// Makes a witness.
    pub(crate) fn create(&self, random: u128) -> io::Result<Lock> {
        match &self.0 {
            Place::OfStore(folder) => folder.create(random),
            Place::OfMachine(runtime) => runtime.create(random),
        }
    }

    /// What there is to see of the witness that a record names. Every error means that nothing is known.
    pub(crate) fn look(&self, named: &Witness, nonce: Nonce) -> Sighting {
        self.find(named, |folder| Some(folder.look(named, nonce)).filter(|sighting| sighting.found))
            .unwrap_or_default()
    }

    /// Changes of the witness that a record names: somebody has written to it, or died.
    pub(crate) fn watch(&self, named: &Witness) -> Option<Changes> {
        self.find(named, |folder| folder.watch(named))
    }

    /// Removes a witness that nobody has locked. Whoever still wanted to look at it waits out the ttl instead.
    pub(crate) fn remove_dead(&self, named: &Witness) {
        self.find(named, |folder| folder.remove_dead(named).ok());
    }

    /// Removes what dead holders left behind. A store that has witnesses in its own folder does that by itself.
    pub(crate) fn sweep(&self) {
        if let Place::OfMachine(runtime) = &self.0 {
            runtime.sweep();
        }
    }

    /// What the first folder gives where there is something.
    fn find<T>(&self, named: &Witness, mut find: impl FnMut(&Folder) -> Option<T>) -> Option<T> {
        match &self.0 {
            Place::OfStore(folder) => find(folder),
            // A record of another machine names nothing that lies here.
            Place::OfMachine(runtime) if !runtime.is_of(named.boot.as_deref()) => None,
            Place::OfMachine(runtime) => runtime.folders().find_map(|folder| find(&folder)),
        }
    }
}
