//! What users connect to a store: the coordinator.

mod builder;
mod connect;
mod forget;
mod forgotten;
mod handles;

pub use builder::CoordinatorBuilder;
pub use forgotten::{Forgotten, WhyKept};

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tenure_core::Holder;
use tenure_core::record::Record;
use tenure_store::{Guarantees, Key, Prefix, Store};

use crate::host::witness::Survivors;
use crate::keeper::logbook_client::LogbookClient;
use crate::keeper::{Command, Connection};
use crate::lease::Request;
use crate::observe::{Observation, Observations, Observers, Watch, keys};
use crate::{Error, ErrorKind};

/// A connection to a store, and the keeper of all leases taken through it. Cheap to clone.
///
/// When the last clone and the last lease are dropped, the keeper vacates what is left and ends.
#[derive(Clone, Debug)]
pub struct Coordinator {
    connection: Connection,
    observers: Arc<Observers>,
    logbook: Option<Arc<LogbookClient>>,
}

impl Coordinator {
    /// Connects to a store, with the machine's clock and a holder named after host and process.
    ///
    /// A store that lacks a needed guarantee is refused; one of network reach is also tested, with writes that it must
    /// refuse, before it is believed.
    pub async fn connect(store: impl Store) -> Result<Self, Error> {
        Self::builder().connect(store).await
    }

    /// Makes choices first.
    pub fn builder() -> CoordinatorBuilder {
        CoordinatorBuilder::default()
    }

    /// A lease of this key, to be acquired.
    pub fn lease(&self, key: impl AsRef<str>) -> Result<Request, Error> {
        Ok(Request::new(self.connection.clone(), Key::parse(key.as_ref())?))
    }

    /// The record of a key as it is now, whoever holds it; `None` if there is none.
    pub async fn record(&self, key: impl AsRef<str>) -> Result<Option<Arc<Record>>, Error> {
        self.observe(key).await?.into_record(&self.connection.store)
    }

    /// How a key stands now: who holds it, and for how much longer at most.
    ///
    /// What this coordinator saw of the same version before counts, as it does for a contender.
    pub async fn observe(&self, key: impl AsRef<str>) -> Result<Observation, Error> {
        let key = Key::parse(key.as_ref())?;
        let observers = Arc::clone(&self.observers);
        self.connection
            .visit(move |store| {
                Box::pin(async move {
                    let observed = observers.observe(&*store, &key).await;
                    observers.flush().await;
                    observed
                })
            })
            .await
    }

    /// The processes of this machine that are alive under a record, as far as this process may see them. For people: nothing
    /// is decided by it.
    pub async fn survivors(&self, record: &Record) -> Survivors {
        let (observers, record) = (Arc::clone(&self.observers), record.clone());
        let looking =
            self.connection.visit(move |_| Box::pin(async move { Ok(observers.survivors(&record).await) }));
        looking.await.unwrap_or_default()
    }

    /// How every key under a prefix stands, in the order of the keys; each is read once, several at a time.
    ///
    /// A key that cannot be read is an error of its own. The whole fails only if the keys cannot be listed. It takes as
    /// long as it takes: there may be any number of keys.
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

    /// Tells what happens to the keys under a prefix, beginning with how they stand. [`Prefix::of`] covers one key, and
    /// those below it.
    ///
    /// A key that somebody holds is looked at up to three times per ttl and once when its version is to run out, any other
    /// every ten seconds; where the store gives hints, also at each of them.
    pub fn watch(&self, prefix: &Prefix) -> Watch {
        Watch::new(self.connection.clone(), Arc::clone(&self.observers), prefix.clone())
    }

    /// The records under a prefix that somebody holds, by key.
    ///
    /// A record that is not one of ours is an error that names its key.
    pub async fn holders(&self, prefix: &Prefix) -> Result<Vec<(Key, Arc<Record>)>, Error> {
        let mut found = Vec::new();
        for (key, observed) in self.observe_all(prefix).await? {
            if let Some(record) = observed?.into_record(&self.connection.store)?
                && record.is_held()
            {
                found.push((key, record));
            }
        }
        Ok(found)
    }

    /// Lets all leases go, as [`Lease::release`](crate::Lease::release) does, and grants no more.
    ///
    /// It takes little more than one ttl at worst: what cannot be vacated until then has lapsed, and the error says so.
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
                    "{count} leases on {} could not be vacated, and have lapsed",
                    self.connection.store
                );
                Err(Error::new(ErrorKind::Unavailable, sentence).because(error))
            }
        }
    }

    /// The name of the store.
    pub fn store_name(&self) -> &str {
        &self.connection.store
    }

    /// What the store guarantees.
    pub fn guarantees(&self) -> &Guarantees {
        &self.connection.guarantees
    }

    /// Who takes leases here unless a request says otherwise.
    pub fn holder(&self) -> &Arc<Holder> {
        &self.connection.holder
    }

    /// Why nothing could be remembered in the logbook, in a sentence; `None` if there was no trouble, or nothing to
    /// remember. Nothing else fails because of it.
    pub fn logbook_trouble(&self) -> Option<String> {
        self.logbook.as_ref()?.problem()
    }
}

/// How many keys of a listing are read at the same time: enough to keep a disk or a connection busy, and few enough to
/// leave room for renewals.
const LOOKS_AT_ONCE: usize = 16;
