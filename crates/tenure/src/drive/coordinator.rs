use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tenure_core::check;
use tenure_store::{BoxFuture, Guarantees, Key, Prefix, Store, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::caught::Caught;
use super::command::{Command, KeeperHandle};
use super::guarded::Guarded;
use super::keeper::Keeper;
use super::local::Local;
use super::notes::Notes;
use super::observation::{Observation, Observations};
use super::observers::Observers;
use super::recorder::Recorder;
use super::reporter::Reporter;
use super::trust::Trust;
use super::watching::{Watch, WatchEvent, Watcher};
use super::within::within;
use crate::clock::{BootClock, Clock};
use crate::lease::Request;
use crate::lease::fork::Incarnation;
use tenure_core::record::Record;
use tenure_core::Holder;
use crate::witness::{Shelf, Survivors};
use crate::{Error, Kind, Logbook, Verdicts};

/// A connection to a store, and the keeper of all leases taken through it. Cheap to clone.
///
/// When the last clone and the last lease are dropped, the keeper vacates what is left and ends.
#[derive(Clone, Debug)]
pub struct Coordinator {
    keeper: KeeperHandle,
    shared: Arc<Connected>,
}

#[derive(Debug)]
struct Connected {
    store: String,
    guarantees: Guarantees,
    clock: Arc<dyn Clock>,
    holder: Arc<Holder>,
    observers: Arc<Observers>,
    notes: Option<Arc<Notes>>,
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
        Ok(Request::new(self.clone(), key.try_into().map_err(Into::into)?))
    }

    /// The record of a key as it is now, whoever holds it; `None` if there is none.
    pub async fn look(
        &self,
        key: impl TryInto<Key, Error: Into<Error>>,
    ) -> Result<Option<Arc<Record>>, Error> {
        self.observe(key).await?.into_record(&self.shared.store)
    }

    /// How a key stands now: who holds it, and for how much longer at most.
    ///
    /// What this coordinator saw of the same version before counts, as it does for a contender.
    pub async fn observe(&self, key: impl TryInto<Key, Error: Into<Error>>) -> Result<Observation, Error> {
        let key = key.try_into().map_err(Into::into)?;
        let observers = Arc::clone(&self.shared.observers);
        self.visit(move |store| {
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
        self.shared.observers.survivors(record).await
    }

    /// How every key under a prefix stands, in the order of the keys; each is read once, several at a time.
    ///
    /// A key that cannot be read is an error of its own. The whole fails only if the keys cannot be listed. It takes as
    /// long as it takes: there may be any number of keys.
    pub async fn observe_all(&self, prefix: &Prefix) -> Result<Observations, Error> {
        let (name, prefix) = (self.shared.store.clone(), prefix.clone());
        let clock = Arc::clone(&self.shared.clock);
        let observers = Arc::clone(&self.shared.observers);
        self.visit(move |store| {
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
        Watch::new(self.clone(), prefix.clone())
    }

    /// The records under a prefix that somebody holds, by key.
    ///
    /// A record that is not one of ours is an error that names its key.
    pub async fn holders(&self, prefix: &Prefix) -> Result<Vec<(Key, Arc<Record>)>, Error> {
        let mut found = Vec::new();
        for (key, observed) in self.observe_all(prefix).await? {
            if let Some(record) = observed?.into_record(&self.shared.store)?
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
        let errors =
            self.keeper.ask(|reply| Command::ShutDown { reply }).await.map_err(|_| self.gone_error())?;
        let count = errors.len();
        match errors.into_iter().next() {
            None => Ok(()),
            Some(error) if count == 1 => Err(error),
            Some(error) => {
                let sentence =
                    format!("{count} leases on {} could not be vacated, and have lapsed", self.shared.store);
                Err(Error::new(Kind::Unavailable, sentence).because(error))
            }
        }
    }

    /// The name of the store.
    pub fn store_name(&self) -> &str {
        &self.shared.store
    }

    /// What the store guarantees.
    pub fn guarantees(&self) -> &Guarantees {
        &self.shared.guarantees
    }

    /// Who takes leases here unless a request says otherwise.
    pub fn holder(&self) -> &Arc<Holder> {
        &self.shared.holder
    }

    /// Why nothing could be remembered in the logbook, in a sentence; `None` if there was no trouble, or nothing to
    /// remember. Nothing else fails because of it.
    pub fn logbook_trouble(&self) -> Option<String> {
        self.shared.notes.as_ref()?.trouble()
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    pub(crate) fn keeper(&self) -> &KeeperHandle {
        &self.keeper
    }

    pub(crate) fn gone_error(&self) -> Error {
        let store = &self.shared.store;
        Error::new(
            Kind::Unavailable,
            format!(
                "the keeper of {store} has ended, or lives in the process that this one was forked from: connect again"
            ),
        )
    }

    /// Watches on the keeper's own runtime, until nobody reads what is told.
    pub(super) fn start_watch(&self, prefix: Prefix, renewals: bool, out: mpsc::Sender<WatchEvent>) {
        let (clock, observers) = (Arc::clone(&self.shared.clock), Arc::clone(&self.shared.observers));
        self.keeper.send(Command::Visit(Box::new(move |store| {
            let watcher = Watcher::new(store, clock, observers, prefix, renewals, out);
            Box::pin(watcher.run())
        })));
    }

    /// Makes calls on the store, on the keeper's own runtime. Each call has a limit of its own.
    pub(super) async fn visit<T: Send + 'static>(
        &self,
        visit: impl FnOnce(Arc<dyn Store>) -> BoxFuture<'static, Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let name = self.shared.store.clone();
        self.keeper.send(Command::Visit(Box::new(move |store| {
            let visit: BoxFuture<'static, _> = Box::pin(async move { visit(store).await });
            Box::pin(async move {
                let visited = Caught::new(visit).await.unwrap_or_else(|panicked| {
                    let sentence = format!(
                        "the call on {name} was not finished: its code {panicked}. Leases that are held here go on; report \
                         this bug"
                    );
                    Err(Error::new(Kind::Unavailable, sentence))
                });
                let _ = reply.send(visited);
            })
        })));
        answer.await.map_err(|_| self.gone_error())?
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
            None => crate::process_holder(std::process::id())?,
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
        let notes = local.notes.clone();
        let observers = Arc::new(Observers::new(store.clone(), Arc::clone(&clock), local));
        let shared = Connected { store, guarantees, clock, holder: Arc::new(holder), observers, notes };
        Ok(Coordinator { keeper, shared: Arc::new(shared) })
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
    local: Local,
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
                match within(&*clock, CONNECT_MAX, "connecting to the store", connecting).await {
                    Ok(connected) => connected,
                    Err(error) => return drop(connected.send(Err(error))),
                };
            let notes = self.logbook.map(|book| Notes::new(book, store.to_string(), Arc::clone(&clock)));
            let shelf = Shelf::of_store(&*store).map(Arc::new);
            let local = Local { shelf, notes: notes.map(Arc::new), trust: Arc::new(trust) };
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

/// The keys that people see, in order.
pub(super) async fn keys(
    clock: &dyn Clock,
    store: &dyn Store,
    name: &str,
    prefix: &Prefix,
) -> Result<Vec<Key>, Error> {
    let mut listing = store.list(prefix);
    let mut keys = Vec::new();
    loop {
        let next = async { Ok(listing.next().await) };
        let Some(key) = within(clock, LIST_STEP_MAX, "listing the leases", next).await? else { break };
        let key = key.map_err(|error| {
            Error::new(
                (&error).into(),
                match prefix.as_str() {
                    "" => format!("the leases on {name} could not be listed: {error}"),
                    prefix => format!("the leases under {prefix} on {name} could not be listed: {error}"),
                },
            )
            .because(error)
        })?;
        if !key.is_reserved() {
            keys.push(key);
        }
    }
    keys.sort();
    Ok(keys)
}

/// How many keys of a listing are read at the same time: enough to keep a disk or a connection busy, and few enough to
/// leave room for renewals.
const LOOKS_AT_ONCE: usize = 16;

/// How long a listing may take to its next key: it may have any number of them, but it must go on.
const LIST_STEP_MAX: Duration = Duration::from_secs(60);

/// How long connecting may take, the live check included: longer than any healthy store needs.
const CONNECT_MAX: Duration = Duration::from_secs(30);
