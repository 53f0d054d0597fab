//! The coordinator: a user's connection to a store.

mod builder;
mod connect;
mod forget;
mod forgotten;
mod handles;

pub use builder::CoordinatorBuilder;
pub use forgotten::{Forgotten, WhyKept};

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tenure_core::Holder;
use tenure_core::record::Record;
use tenure_store::{Guarantees, Key, Prefix, Store};

use crate::election::Election;
use crate::fence::FencedValue;
use crate::host::witness::Survivors;
use crate::keeper::logbook_client::LogbookClient;
use crate::keeper::{Command, Connection, SHUTDOWN_MAX};
use crate::keys::{KeyMemory, Keys};
use crate::lease::Request;
use crate::observe::{Observation, Observations, Observers, Watch, keys};
use crate::set::SetRequest;
use crate::slots::{SlotGroup, Slots};
use crate::{Error, ErrorKind};

/// A connection to a store, and the keeper of all leases acquired through it. Cheap to clone.
///
/// When the last clone and the last lease are dropped, the keeper vacates the remaining leases and ends.
#[derive(Clone, Debug)]
pub struct Coordinator {
    connection: Connection,
    observers: Arc<Observers>,
    keys: Arc<KeyMemory>,
    logbook: Option<Arc<LogbookClient>>,
}

impl Coordinator {
    /// Connects to a store, with the machine's clock and a holder named after host and process.
    ///
    /// Fails if the store lacks a required guarantee. A networked store is also tested first, with writes that it must
    /// refuse.
    pub async fn connect(store: impl Store) -> Result<Self, Error> {
        Self::builder().connect(store).await
    }

    /// Returns a builder with more options.
    pub fn builder() -> CoordinatorBuilder {
        CoordinatorBuilder::default()
    }

    /// A request for the lease of this key.
    pub fn lease(&self, key: impl AsRef<str>) -> Result<Request, Error> {
        Ok(Request::new(self.connection.clone(), Key::parse(key.as_ref())?))
    }

    /// A request for the leases of all these keys at once, all or nothing. Contenders of overlapping sets never wait for
    /// each other, whatever order they write.
    ///
    /// Fails if there is no key, a key occurs twice, or there are more than
    /// [`SetRequest::MEMBERS_MAX`](crate::SetRequest::MEMBERS_MAX).
    pub fn all_of<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<SetRequest, Error> {
        // One more than allowed is enough to refuse it, so an endless iterator ends.
        let keys = keys.into_iter().take(SetRequest::MEMBERS_MAX + 1);
        let keys = keys.map(|key| Key::parse(key.as_ref())).collect::<Result<_, _>>()?;
        SetRequest::new(self.connection.clone(), keys)
    }

    /// The plain keys of the store, for a new owner with a random secret. [`Keys::owner`] sets another one.
    pub fn keys(&self) -> Keys {
        Keys::new(self.connection.clone(), Arc::clone(&self.keys))
    }

    /// The fenced value with this name: content that is written under a lease, and that refuses the writes of an earlier
    /// holder.
    ///
    /// The name follows the rules of keys. It is no key: a lease or a plain key of the same name is another thing.
    pub fn fenced(&self, name: impl AsRef<str>) -> Result<FencedValue, Error> {
        let key = Key::fenced_value(&Key::parse(name.as_ref())?)?;
        Ok(FencedValue::through(self.connection.clone(), self.keys.trust(), key))
    }

    /// An election with this name: the nodes compete for the lease of this key.
    pub fn election(&self, name: impl AsRef<str>) -> Result<Election, Error> {
        Ok(Election::new(self.lease(name)?, Arc::clone(&self.observers)))
    }

    /// A request for a slot of this group, which has this many slots: 1 to 1,024.
    ///
    /// The name follows the rules of keys. It is no key: a lease of the same name is another thing, and groups whose
    /// names nest are separate.
    pub fn slots(&self, group: impl AsRef<str>, slots: u32) -> Result<Slots, Error> {
        let (group, observers) = (Key::parse(group.as_ref())?, Arc::clone(&self.observers));
        Slots::new(self.connection.clone(), observers, self.keys(), group, slots)
    }

    /// A group of slots, to inspect and resize it.
    pub fn slot_group(&self, group: impl AsRef<str>) -> Result<SlotGroup, Error> {
        let (group, observers) = (Key::parse(group.as_ref())?, Arc::clone(&self.observers));
        SlotGroup::new(self.connection.clone(), observers, self.keys(), group)
    }

    /// The names of all groups of slots, in order.
    pub async fn slot_groups(&self) -> Result<Vec<Key>, Error> {
        SlotGroup::all(&self.connection).await
    }

    /// The current record of a key; `None` if there is none.
    pub async fn record(&self, key: impl AsRef<str>) -> Result<Option<Arc<Record>>, Error> {
        self.observe(key).await?.into_record(&self.connection.store)
    }

    /// The current standing of a key: its holder, and the longest time left.
    ///
    /// Earlier sightings of the same version by this coordinator count, as they do for a contender.
    pub async fn observe(&self, key: impl AsRef<str>) -> Result<Observation, Error> {
        self.observers.observe_one(&self.connection, Key::parse(key.as_ref())?).await
    }

    /// Processes of this machine that are alive under a record, as far as this process may see them. Informational: no
    /// decision depends on it.
    pub async fn survivors(&self, record: &Record) -> Survivors {
        let (observers, record) = (Arc::clone(&self.observers), record.clone());
        let looking =
            self.connection.visit(move |_| Box::pin(async move { Ok(observers.survivors(&record).await) }));
        looking.await.unwrap_or_default()
    }

    /// The standing of every key under a prefix, in the order of the keys. Each key is read once, several at a time.
    ///
    /// A key that cannot be read yields its own error. The call fails only if the keys cannot be listed. It has no time
    /// limit, because the number of keys is unlimited.
    pub async fn observe_all(&self, prefix: &Prefix) -> Result<Observations, Error> {
        let (name, prefix) = (self.connection.store.clone(), prefix.clone());
        let clock = Arc::clone(&self.connection.clock);
        let observers = Arc::clone(&self.observers);
        self.connection
            .visit(move |store| {
                Box::pin(async move {
                    let keys = keys(&*clock, &*store, &name, &prefix).await?;
                    let looks = keys.into_iter().map(|key| {
                        let (store, observers) = (Arc::clone(&store), Arc::clone(&observers));
                        async move {
                            let observed = observers.observe(&*store, &key).await;
                            (key, observed)
                        }
                    });
                    let observed = stream::iter(looks).buffered(LOOKS_AT_ONCE).collect().await;
                    observers.flush().await;
                    Ok(observed)
                })
            })
            .await
    }

    /// Watches the keys under a prefix, beginning with their current standing. [`Prefix::of`] covers one key and those
    /// below it.
    ///
    /// A held key is read up to three times per ttl, and once when its version is due to run out; every other key every
    /// ten seconds. Where the store gives hints, each hint triggers a read, too.
    pub fn watch(&self, prefix: &Prefix) -> Watch {
        Watch::new(self.connection.clone(), Arc::clone(&self.observers), prefix.clone())
    }

    /// The held leases under a prefix, by key. Plain keys are left out.
    ///
    /// A value that is not a Tenure record is an error that names its key.
    pub async fn holders(&self, prefix: &Prefix) -> Result<Vec<(Key, Arc<Record>)>, Error> {
        let mut found = Vec::new();
        for (key, observed) in self.observe_all(prefix).await? {
            if let Some(record) = observed?.into_record(&self.connection.store)?
                && record.is_held()
                && !record.is_key()
            {
                found.push((key, record));
            }
        }
        Ok(found)
    }

    /// Longest duration of [`shutdown`](Self::shutdown): 10 s. It is independent of the ttl, and shorter than the time that
    /// service managers give a program to stop.
    pub const SHUTDOWN_MAX: Duration = SHUTDOWN_MAX;

    /// Releases all leases, as [`Lease::release`](crate::Lease::release) does, and grants no more.
    ///
    /// It takes at most [`SHUTDOWN_MAX`](Self::SHUTDOWN_MAX), whatever the ttl is: also if the store hangs, if work under a
    /// lease does not end, or if the disk of a witness hangs. A lease that was not vacated by then lapses, and the error says
    /// so. Nothing is vacated under running work. Until the process ends, the keeper continues to vacate the leases whose work
    /// has ended, and to keep those whose work [cannot be stopped](crate::WorkGuard::cannot_stop).
    pub async fn shutdown(&self) -> Result<(), Error> {
        let errors = self
            .connection
            .keeper
            .ask(|reply| Command::ShutDown { reply })
            .await
            .map_err(|_| self.connection.gone_error())?;
        let count = errors.len();
        match errors.into_iter().next() {
            None => Ok(()),
            Some(error) if count == 1 => Err(error),
            Some(error) => {
                let sentence = format!(
                    "{count} leases on {} could not be vacated: contenders wait until they have lapsed",
                    self.connection.store
                );
                Err(Error::new(ErrorKind::Unavailable, sentence).because(error))
            }
        }
    }

    /// Name of the store.
    pub fn store_name(&self) -> &str {
        &self.connection.store
    }

    /// Guarantees of the store.
    pub fn guarantees(&self) -> &Guarantees {
        &self.connection.guarantees
    }

    /// Default holder of requests.
    pub fn holder(&self) -> &Arc<Holder> {
        &self.connection.holder
    }

    /// Sentence about the last problem with the logbook; `None` if there was none. No other call fails because of it.
    pub fn logbook_error(&self) -> Option<String> {
        self.logbook.as_ref()?.problem()
    }
}

/// Number of concurrent reads of a listing: enough to keep a disk or a connection busy, and few enough to leave room
/// for renewals.
const LOOKS_AT_ONCE: usize = 16;
