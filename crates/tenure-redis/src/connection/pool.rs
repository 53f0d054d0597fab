use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::TryFutureExt;
use redis::aio::PubSub;
use redis::{RedisConnectionInfo, RedisError};
use tenure_store::Reason;
use tokio::runtime::Handle;

use super::first_success::first_success;
use super::open_attempt::OpenAttempt;
use super::task::within;
use super::{Connection, Dialer, handshake, sentinel};
use crate::open::{Address, OpenError, Settings};
use crate::words;

/// The connections of a store: one for each runtime and server.
///
/// A connection is driven by a task on the runtime of the call that opened it. Another runtime opens its own, because
/// the first one may be blocked or end.
pub(crate) struct Pool {
    settings: Settings,
    dialer: Dialer,
    connections: Mutex<HashMap<ConnectionKey, Arc<SharedConnection>>>,
    opened: AtomicU64,
    /// Place of the address with which the next attempt begins: the one that was reached last.
    reached: AtomicUsize,
}

/// A runtime, and a node of a cluster; `None` for the server that the settings name.
type ConnectionKey = (tokio::runtime::Id, Option<Address>);

/// One connection, which all calls with its key share.
#[derive(Default)]
struct SharedConnection {
    current: Mutex<Option<Arc<Connection>>>,
    /// The latest attempt to open it.
    attempt: Mutex<Option<OpenAttempt>>,
}

impl Pool {
    pub(crate) fn new(settings: Settings) -> Result<Self, OpenError> {
        let dialer = Dialer::new(&settings)?;
        Ok(Self {
            settings,
            dialer,
            connections: Mutex::default(),
            opened: AtomicU64::new(0),
            reached: AtomicUsize::new(0),
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Number of connections that were opened so far.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// An open connection, in place of a broken or suspect one. All calls that wait for one connection share its
    /// handshake, and its error.
    pub(crate) async fn connection(
        self: &Arc<Self>,
        node: Option<&Address>,
    ) -> Result<Arc<Connection>, OpenError> {
        let shared = self.shared(node)?;
        if let Some(connection) = shared.usable() {
            return Ok(connection);
        }
        let attempt = {
            let mut attempt = lock(&shared.attempt);
            match &*attempt {
                Some(running) if !running.is_over() => running.clone(),
                _ => {
                    // An attempt that has ended in the meantime.
                    if let Some(connection) = shared.usable() {
                        return Ok(connection);
                    }
                    attempt.insert(self.start(&shared, node)).clone()
                }
            }
        };
        attempt.outcome().await
    }

    /// Starts an attempt to open this connection.
    fn start(self: &Arc<Self>, shared: &Arc<SharedConnection>, node: Option<&Address>) -> OpenAttempt {
        let (pool, shared, node) = (Arc::clone(self), Arc::clone(shared), node.cloned());
        OpenAttempt::start(async move {
            let connection = Arc::new(pool.open(node.as_ref()).await?);
            *lock(&shared.current) = Some(Arc::clone(&connection));
            Ok(connection)
        })
    }

    /// A separate connection for subscriptions, to the server of the other calls.
    pub(crate) async fn subscriber(self: &Arc<Self>) -> Result<PubSub, OpenError> {
        let address = self.connection(None).await?.address.clone();
        self.within_limit(&address, self.subscribe_at(&address)).await
    }

    async fn subscribe_at(&self, address: &Address) -> Result<PubSub, OpenError> {
        let mut information = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(password) = handshake::password(&self.settings).await? {
            information = information.set_password(password);
            if let Some(user) = &self.settings.user {
                information = information.set_username(user);
            }
        }
        let stream = self.dialer.dial(address).await?;
        let failed = |error: RedisError| OpenError::new(Reason::Unreachable, error.to_string());
        PubSub::new(&information, stream).await.map_err(failed)
    }

    fn shared(&self, node: Option<&Address>) -> Result<Arc<SharedConnection>, OpenError> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(OpenError::invalid("a Redis store must be called inside a tokio runtime"));
        };
        let key = (runtime.id(), node.cloned());
        let mut connections = lock(&self.connections);
        if let Some(shared) = connections.get(&key) {
            return Ok(Arc::clone(shared));
        }
        // The connections of runtimes that have ended.
        connections.retain(|_, shared| shared.usable().is_some() || shared.is_opening());
        Ok(Arc::clone(connections.entry(key).or_default()))
    }

    async fn open(&self, node: Option<&Address>) -> Result<Connection, OpenError> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        if let Some(node) = node {
            return self.open_at(node).await;
        }
        if let Some(master) = &self.settings.master {
            let ask = |sentinel| self.within_limit(sentinel, sentinel::ask(&self.dialer, sentinel, master));
            let primary = self.reach(ask).await?;
            let opened = self.open_at(&primary).await;
            if opened.is_err() {
                // A sentinel that has lost contact with the others may name a former primary server.
                self.reached.fetch_add(1, Ordering::Relaxed);
            }
            return opened;
        }
        self.reach(|address| self.open_at(address)).await
    }

    /// The result of the first address of the settings that can be reached.
    async fn reach<'a, T, F: Future<Output = Result<T, OpenError>>>(
        &'a self,
        attempt: impl Fn(&'a Address) -> F,
    ) -> Result<T, OpenError> {
        let addresses = &self.settings.addresses;
        let first = self.reached.load(Ordering::Relaxed);
        let places = (0..addresses.len()).map(|number| first.wrapping_add(number) % addresses.len());
        let attempts = places.map(|place| attempt(&addresses[place]).map_ok(move |reached| (place, reached)));
        let nothing = || Err(OpenError::invalid("no server is named"));
        let (place, reached) = first_success(attempts).await.unwrap_or_else(nothing)?;
        self.reached.store(place, Ordering::Relaxed);
        Ok(reached)
    }

    async fn open_at(&self, address: &Address) -> Result<Connection, OpenError> {
        let opening =
            async { handshake::perform(self.dialer.dial(address).await?, address, &self.settings).await };
        self.within_limit(address, opening).await
    }

    /// The result of an attempt to reach this server, or an error if it takes too long.
    async fn within_limit<T>(
        &self,
        address: &Address,
        attempt: impl Future<Output = Result<T, OpenError>>,
    ) -> Result<T, OpenError> {
        let limited = within(CONNECT_MAX, attempt).await;
        limited.unwrap_or_else(|| Err(words::of_silence(CONNECT_MAX, address, &self.settings)))
    }
}

impl SharedConnection {
    fn is_opening(&self) -> bool {
        lock(&self.attempt).as_ref().is_some_and(|attempt| !attempt.is_over())
    }

    fn usable(&self) -> Option<Arc<Connection>> {
        lock(&self.current).as_ref().filter(|connection| connection.is_usable()).map(Arc::clone)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest wait for one server: for the connection and its handshake, or for the answer of a sentinel.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(5);
