use std::sync::Arc;
use std::time::Duration;

use tenure_core::Holder;
use tenure_core::record::Record;
use tenure_store::{Guarantees, Key, Prefix, Store};

use super::{CoordinatorBuilder, Election, Keys, Lease, Request, SetRequest, SlotGroup, Slots, block_on};
use crate::{Error, Forgotten, Handle, Observation, Observations, Survivors};

/// A connection to a store, and the keeper of its leases, for blocking threads. Cheap to clone.
///
/// When the last clone and the last lease are dropped, the keeper vacates the remaining leases and ends.
#[derive(Clone, Debug)]
pub struct Coordinator(pub(super) crate::Coordinator);

impl Coordinator {
    /// Connects to a store, with the machine's clock and a holder named after host and process.
    ///
    /// Takes the same arguments as [`tenure::Coordinator::connect`](crate::Coordinator::connect).
    #[track_caller]
    pub fn connect(store: impl Store) -> Result<Self, Error> {
        Self::builder().connect(store)
    }

    /// Returns a builder with more options.
    pub fn builder() -> CoordinatorBuilder {
        CoordinatorBuilder::default()
    }

    /// A request for the lease of this key.
    pub fn lease(&self, key: impl AsRef<str>) -> Result<Request, Error> {
        self.0.lease(key).map(Request)
    }

    /// A request for the leases of all these keys at once: see [`Coordinator::all_of`](crate::Coordinator::all_of).
    pub fn all_of<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<SetRequest, Error> {
        self.0.all_of(keys).map(SetRequest)
    }

    /// An election with this name: see [`Coordinator::election`](crate::Coordinator::election).
    pub fn election(&self, name: impl AsRef<str>) -> Result<Election, Error> {
        self.0.election(name).map(Election)
    }

    /// A request for any slot of a group: see [`Coordinator::slots`](crate::Coordinator::slots).
    pub fn slots(&self, group: impl AsRef<str>, slots: u32) -> Result<Slots, Error> {
        self.0.slots(group, slots).map(Slots)
    }

    /// A group of slots, to inspect and resize it.
    pub fn slot_group(&self, group: impl AsRef<str>) -> Result<SlotGroup, Error> {
        self.0.slot_group(group).map(SlotGroup)
    }

    /// The plain keys of the store: see [`Coordinator::keys`](crate::Coordinator::keys).
    pub fn keys(&self) -> Keys {
        Keys(self.0.keys())
    }

    /// Continues the term of a handle in this process: see [`Coordinator::resume`](crate::Coordinator::resume).
    #[track_caller]
    pub fn resume(&self, handle: &Handle) -> Result<Lease, Error> {
        block_on(self.0.resume(handle)).map(Lease)
    }

    same! { waits of Coordinator:
        renew(handle: &Handle) -> Result<Handle, Error>;
        release(handle: &Handle) -> Result<(), Error>;
        record(key: impl AsRef<str>) -> Result<Option<Arc<Record>>, Error>;
        observe(key: impl AsRef<str>) -> Result<Observation, Error>;
        observe_all(prefix: &Prefix) -> Result<Observations, Error>;
        holders(prefix: &Prefix) -> Result<Vec<(Key, Arc<Record>)>, Error>;
        survivors(record: &Record) -> Survivors;
        list(prefix: &Prefix) -> Result<Vec<Key>, Error>;
        slot_groups() -> Result<Vec<Key>, Error>;
        forget(key: impl AsRef<str>, vacant_for: Duration) -> Result<Forgotten, Error>;
        would_forget(key: impl AsRef<str>, vacant_for: Duration) -> Result<Forgotten, Error>;
        shutdown() -> Result<(), Error>;
    }

    same! { answers of Coordinator:
        store_name() -> &str;
        guarantees() -> &Guarantees;
        holder() -> &Arc<Holder>;
        logbook_error() -> Option<String>;
    }
}
