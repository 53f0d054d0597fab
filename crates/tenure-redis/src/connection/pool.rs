use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::PubSub;
use redis::{RedisConnectionInfo, RedisError};
use tenure_store::Reason;
use tokio::runtime::Handle;

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
}

/// A runtime, and a node of a cluster; `None` for the server that the settings name.
type ConnectionKey = (tokio::runtime::Id, Option<Address>);

/// One connection, which all calls with its key share.
#[derive(Default)]
struct SharedConnection {
    current: Mutex<Option<Arc<Connection>>>,
    /// Held by the call that connects.
    connecting: tokio::sync::Mutex<()>,
    attempts: Mutex<Attempts>,
}

#[derive(Default)]
struct Attempts {
    ended: u64,
    /// The error of the last one.
    last: Option<OpenError>,
}

impl Pool {
    pub(crate) fn new(settings: Settings) -> Result<Self, OpenError> {
        let dialer = Dialer::new(&settings)?;
        Ok(Self { settings, dialer, connections: Mutex::default(), opened: AtomicU64::new(0) })
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
    pub(crate) async fn connection(&self, node: Option<&Address>) -> Result<Arc<Connection>, OpenError> {
        let shared = self.shared(node)?;
        if let Some(connection) = shared.usable() {
            return Ok(connection);
        }
        let before = lock(&shared.attempts).ended;
        let _connecting = shared.connecting.lock().await;
        if let Some(connection) = shared.usable() {
            return Ok(connection);
        }
        {
            let attempts = lock(&shared.attempts);
            if attempts.ended > before
                && let Some(error) = &attempts.last
            {
                return Err(error.clone());
            }
        }
        let opened = self.open(node).await;
        let mut attempts = lock(&shared.attempts);
        attempts.ended += 1;
        attempts.last = opened.as_ref().err().cloned();
        let connection = Arc::new(opened?);
        *lock(&shared.current) = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// A separate connection for subscriptions, to the server of the other calls.
    pub(crate) async fn subscriber(&self) -> Result<PubSub, OpenError> {
        let address = self.connection(None).await?.address.clone();
        self.within_limit(&address, self.subscribe_at(&address)).await
    }

    async fn subscribe_at(&self, address: &Address) -> Result<PubSub, OpenError> {
        let mut information = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(password) = handshake::password(&self.settings)? {
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
        connections.retain(|_, shared| {
            lock(&shared.current).as_ref().is_none_or(|connection| connection.is_usable())
        });
        Ok(Arc::clone(connections.entry(key).or_default()))
    }

    async fn open(&self, node: Option<&Address>) -> Result<Connection, OpenError> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        let address = node.unwrap_or(&self.settings.addresses[0]);
        self.within_limit(address, self.reach(node)).await
    }

    /// The result of a handshake with this server, or an error if it takes too long.
    async fn within_limit<T>(
        &self,
        address: &Address,
        handshake: impl Future<Output = Result<T, OpenError>>,
    ) -> Result<T, OpenError> {
        #[expect(clippy::disallowed_methods, reason = "a limit for a server, not a promise to a holder")]
        let limited = tokio::time::timeout(CONNECT_MAX, handshake);
        limited.await.unwrap_or_else(|_| Err(words::of_silence(CONNECT_MAX, address, &self.settings)))
    }

    async fn reach(&self, node: Option<&Address>) -> Result<Connection, OpenError> {
        if let Some(node) = node {
            return self.open_at(node).await;
        }
        if let Some(master) = &self.settings.master {
            let address = sentinel::find(&self.dialer, &self.settings.addresses, master).await?;
            return self.open_at(&address).await;
        }
        let mut last = None;
        for address in &self.settings.addresses {
            match self.open_at(address).await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| OpenError::invalid("no server is named")))
    }

    async fn open_at(&self, address: &Address) -> Result<Connection, OpenError> {
        handshake::perform(self.dialer.dial(address).await?, address, &self.settings).await
    }
}

impl SharedConnection {
    fn usable(&self) -> Option<Arc<Connection>> {
        lock(&self.current).as_ref().filter(|connection| connection.is_usable()).map(Arc::clone)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Longest wait for a connection and its handshake.
const CONNECT_MAX: Duration = Duration::from_secs(5);
