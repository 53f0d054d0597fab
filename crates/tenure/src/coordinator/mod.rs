//! What users connect to a store: the coordinator.

mod forget;
mod forgotten;
mod handles;

pub use forgotten::{Forgotten, WhyKept};

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tenure_core::record::Record;
use tenure_core::{Holder, check};
use tenure_store::{Guarantees, Key, Prefix, Store, StoreError};
use tokio::sync::oneshot;

use crate::clock::{BootClock, Clock, timeout};
use crate::host::fork::Incarnation;
use crate::host::witness::{Shelf, Survivors};
use crate::keeper::logbook_client::LogbookClient;
use crate::keeper::{Command, Connection, HostState, Keeper, KeeperHandle, Recorder, Reporter};
use crate::lease::Request;
use crate::observe::{Observation, Observations, Observers, Watch, keys};
use crate::store::guarded::Guarded;
use crate::trust::Trust;
use crate::{Error, Kind, Logbook, Verdicts};

/// A connection to a store, and the keeper of all leases taken through it. Cheap to clone.
///
/// When the last clone and the last lease are dropped, the keeper vacates what is left and ends.
#[derive(Clone, Debug)]
pub struct Coordinator {
    connection: Connection,
    observers: Arc<Observers>,
    logbook: Option<Arc<LogbookClient>>,
}

/// Connects a coordinator with choices.
#[derive(Debug, Default)]
#[must_use = "a builder connects nothing until connect() is awaited"]
pub struct Builder {
    clock: Option<Arc<dyn Clock>>,
    holder: Option<Holder>,
    recorder: Option<Arc<dyn Recorder>>,
    logbook: Option<Logbook>,
    verdicts: Option<Verdicts>,
    again: bool,
    unchecked: bool,
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
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A lease of this key, to be acquired.
    pub fn lease(&self, key: impl TryInto<Key, Error: Into<Error>>) -> Result<Request, Error> {
        Ok(Request::new(self.connection.clone(), key.try_into().map_err(Into::into)?))
    }

    /// The record of a key as it is now, whoever holds it; `None` if there is none.
    pub async fn look(
        &self,
        key: impl TryInto<Key, Error: Into<Error>>,
    ) -> Result<Option<Arc<Record>>, Error> {
        self.observe(key).await?.into_record(&self.connection.store)
    }

    /// How a key stands now: who holds it, and for how much longer at most.
    ///
    /// What this coordinator saw of the same version before counts, as it does for a contender.
    pub async fn observe(&self, key: impl TryInto<Key, Error: Into<Error>>) -> Result<Observation, Error> {
        let key = key.try_into().map_err(Into::into)?;
        let observers = Arc::clone(&self.observers);
        self.connection
            .visit(move |store| {
                Box::pin(async move {
                    let observed = observers.observe(&*store, &key).await;
                    observers.settle().await;
                    observed
                })
            })
            .await
    }

    /// The processes of this machine that are alive under a record, as far as this process may see them. For people: nothing
    /// is decided by it.
    pub async fn survivors(&self, record: &Record) -> Survivors {
        self.observers.survivors(record).await
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
                    observers.settle().await;
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
                Err(Error::new(Kind::Unavailable, sentence).because(error))
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
        self.logbook.as_ref()?.trouble()
    }
}

impl Builder {
    /// Counts leases on this clock instead of the machine's boot-time clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Takes leases in this name.
    pub fn holder(mut self, holder: Holder) -> Self {
        self.holder = Some(holder);
        self
    }

    /// Reports every attempt and every event to this recorder.
    pub fn recorder(mut self, recorder: Arc<dyn Recorder>) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// What this machine saw earlier counts, and what is seen here counts for whoever looks next: needed where the store
    /// cannot tell how old a version is and a program does not stay to see for itself.
    pub fn logbook(mut self, logbook: Logbook) -> Self {
        self.logbook = Some(logbook);
        self
    }

    /// A store of the network that was found sound in the last day is not checked again, and one that is found sound here
    /// need not be by whoever connects next. Where it is seen to break a promise, that is over at once.
    ///
    /// It counts for stores that name their [place](tenure_store::Store::place).
    pub fn verdicts(mut self, verdicts: Verdicts) -> Self {
        self.verdicts = Some(verdicts);
        self
    }

    /// Checks the store whatever the [verdicts](Self::verdicts) say, and lets them know.
    pub fn check_again(mut self) -> Self {
        self.again = true;
        self
    }

    /// Connects to a store that is made already.
    pub async fn connect(self, store: impl Store) -> Result<Coordinator, Error> {
        self.connect_with(move || async move { Ok(store) }).await
    }

    /// Connects to a store that is made on the keeper's own runtime, where its connections will live: a socket that was
    /// connected on a blocked executor answers nobody.
    pub async fn connect_with<S, F>(
        self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Coordinator, Error>
    where
        S: Store,
        F: Future<Output = Result<S, StoreError>> + Send + 'static,
    {
        let clock = self.clock.unwrap_or_else(|| Arc::new(BootClock::new()));
        let holder = match self.holder {
            Some(holder) => holder,
            None => crate::host::process_holder(std::process::id())?,
        };
        let thread = Thread {
            clock: Arc::clone(&clock),
            recorder: self.recorder,
            logbook: self.logbook,
            verdicts: self.verdicts,
            again: self.again,
            unchecked: self.unchecked,
        };
        let Started { keeper, store, guarantees, local } = thread.start(make).await?;
        let logbook = local.notes.clone();
        let observers = Arc::new(Observers::new(store.clone(), Arc::clone(&clock), local));
        let connection =
            Connection { keeper, store: store.into(), guarantees, clock, holder: Arc::new(holder) };
        Ok(Coordinator { connection, observers, logbook })
    }

    /// Connects without testing the store live. What it declares is still required, and believed.
    pub async fn connect_dangerously_unchecked(mut self, store: impl Store) -> Result<Coordinator, Error> {
        self.unchecked = true;
        self.connect(store).await
    }
}

/// The keeper's thread before it runs.
struct Thread {
    clock: Arc<dyn Clock>,
    recorder: Option<Arc<dyn Recorder>>,
    logbook: Option<Logbook>,
    verdicts: Option<Verdicts>,
    again: bool,
    unchecked: bool,
}

/// The keeper's thread when it runs.
struct Started {
    keeper: KeeperHandle,
    store: String,
    guarantees: Guarantees,
    local: HostState,
}

impl Thread {
    #[expect(clippy::disallowed_methods, reason = "the keeper owns its thread")]
    async fn start<S, F>(self, make: impl FnOnce() -> F + Send + 'static) -> Result<Started, Error>
    where
        S: Store,
        F: Future<Output = Result<S, StoreError>> + Send + 'static,
    {
        let cannot = |error: std::io::Error| {
            let sentence = "there is no keeper: this process gets no thread, descriptor or memory for it. Look at its limits, \
                            and try again";
            Error::new(Kind::Unavailable, sentence).because(error)
        };
        let incarnation = Incarnation::present().map_err(cannot)?;
        let reporter = Reporter::start(self.recorder).map_err(cannot)?;
        let (handle, commands) = KeeperHandle::new(incarnation);
        let (connected, connection) = oneshot::channel();
        let keep = move |connected: oneshot::Sender<_>| async move {
            let (clock, checks) = (Arc::clone(&self.clock), (self.again, self.unchecked));
            let connecting = connect(make(), &clock, self.verdicts, checks);
            let (store, trust) =
                match timeout(&*clock, CONNECT_MAX, "connecting to the store", connecting).await {
                    Ok(connected) => connected,
                    Err(error) => return drop(connected.send(Err(error))),
                };
            let notes =
                self.logbook.map(|book| LogbookClient::new(book, store.to_string(), Arc::clone(&clock)));
            let shelf = Shelf::of_store(&*store).map(Arc::new);
            let local = HostState { shelf, notes: notes.map(Arc::new), trust: Arc::new(trust) };
            let known = (store.to_string(), store.guarantees(), local.clone());
            if connected.send(Ok(known)).is_ok() {
                Keeper::new(store, clock, incarnation, reporter, local).run(commands).await;
            }
        };
        thread::Builder::new()
            .name("tenure-keeper".into())
            .spawn(move || {
                // Made here: where no thread can be had it would be dropped in async code, which panics.
                match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                    Ok(runtime) => runtime.block_on(keep(connected)),
                    Err(error) => drop(connected.send(Err(cannot(error)))),
                }
            })
            .map_err(cannot)?;
        let gone =
            |_| Error::new(Kind::Unavailable, "the keeper ended while it connected: see its panic message");
        let (store, guarantees, local) = connection.await.map_err(gone)??;
        Ok(Started { keeper: handle, store, guarantees, local })
    }
}

async fn connect<S: Store>(
    make: impl Future<Output = Result<S, StoreError>>,
    clock: &Arc<dyn Clock>,
    verdicts: Option<Verdicts>,
    (again, unchecked): (bool, bool),
) -> Result<(Arc<dyn Store>, Trust), Error> {
    let store = make.await.map_err(|error| {
        Error::new((&error).into(), format!("the store could not be connected: {error}")).because(error)
    })?;
    let store: Arc<dyn Store> = Arc::new(Guarded::new(store));
    let trust = Trust::new(verdicts, &*store, clock);
    match unchecked {
        true => check::check_declared(&*store)?,
        false => trust.establish(&*store, again).await?,
    }
    Ok((store, trust))
}

/// How many keys of a listing are read at the same time: enough to keep a disk or a connection busy, and few enough to
/// leave room for renewals.
const LOOKS_AT_ONCE: usize = 16;

/// How long connecting may take, the live check included: longer than any healthy store needs.
const CONNECT_MAX: Duration = Duration::from_secs(30);
