//! The connections of a store.

mod attempt;
mod connected;
mod connector;
mod inspection;
mod notices;
mod open_connection;
mod pending_call;
mod process;
mod task;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attempt::Attempt;
use tenure_store::{Reason, StoreError};
use tokio::runtime::{Handle, Id};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};

pub(crate) use connected::OnNotification;
pub(crate) use connector::Connector;
pub(crate) use inspection::STANDBY;
pub(crate) use notices::ServerNotices;
use open_connection::OpenConnection;
pub(crate) use pending_call::PendingCall;
pub(crate) use task::{in_thread, spawn};

use crate::calls::count;

/// The open connections of a store. A call uses one that exists and is free for it, or opens another.
///
/// * Reads and renewals share one connection. The server carries them out in order.
/// * All other calls may wait for a lock: of a row, of a table, or of the queue of notifications. So they never use a
///   connection on which a read or a renewal could end up behind them, as long as there may be more connections.
/// * A call that was given up makes its connection suspect. No other call uses it.
pub(crate) struct Connections {
    connector: Connector,
    open: Mutex<Vec<Arc<OpenConnection>>>,
    /// Each runtime opens one connection at a time: calls that wait for it can often share it. Runtimes do not wait for
    /// each other, because one may be blocked.
    attempts: Mutex<HashMap<Id, Attempt>>,
}

/// Parameters of a statement, with their types: the server need not be asked for them first.
pub(crate) type Parameters<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

impl Connections {
    pub(crate) fn new(connector: Connector) -> Self {
        Self { connector, open: Mutex::default(), attempts: Mutex::default() }
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Begins a call on a connection. Opens one if none is free. Nothing has been sent for the call before it returns.
    /// `may_wait` is true if the server may have to wait for a lock.
    pub(crate) async fn begin(self: &Arc<Self>, may_wait: bool) -> Result<PendingCall, StoreError> {
        let runtime = Handle::try_current()
            .map_err(|_| StoreError::refused(Reason::Invalid, "a call on PostgreSQL needs a Tokio runtime"))?
            .id();
        for _ in 0..ATTEMPTS_MAX {
            if let Some(call) = self.pick(runtime, may_wait) {
                return Ok(call);
            }
            // Another call may be faster and use the connection that this one waited for.
            self.attempt(runtime).outcome().await?;
        }
        Err(StoreError::refused(Reason::Unreachable, "each new connection ended before it could be used"))
    }

    /// The attempt to open a connection that runs on this runtime, or a new one.
    fn attempt(self: &Arc<Self>, runtime: Id) -> Attempt {
        let mut attempts = lock(&self.attempts);
        attempts.retain(|_, attempt| !attempt.is_over());
        let start = || {
            let connections = Arc::clone(self);
            Attempt::start(async move {
                let connected = connections.connector.open(Arc::new(|_| ())).await?;
                count(&connections.connector.counters.connections);
                connections.open().push(Arc::new(OpenConnection::new(connected, runtime)));
                Ok(())
            })
        };
        attempts.entry(runtime).or_insert_with(start).clone()
    }

    /// Sends one statement and waits for its answer: one round trip.
    pub(crate) async fn send(
        &self,
        call: &PendingCall,
        statement: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, Error> {
        call.connection().client.query_typed(statement, parameters).await
    }

    /// Sends statements without parameters, which form one transaction.
    pub(crate) async fn execute(&self, call: &PendingCall, statements: &str) -> Result<(), Error> {
        call.connection().client.batch_execute(statements).await
    }

    fn pick(&self, runtime: Id, may_wait: bool) -> Option<PendingCall> {
        let mut open = self.open();
        open.retain(|one| !one.is_lost());
        let mut idle = 0;
        // After a burst, two connections of this runtime remain: one for calls that may wait.
        open.retain(|one| {
            let is_idle = one.is_idle() && one.is_usable(runtime);
            idle += usize::from(is_idle);
            idle <= IDLE_MAX || !is_idle
        });
        let usable: Vec<_> = open.iter().filter(|one| one.is_usable(runtime)).collect();
        let free: Vec<_> = usable.iter().copied().filter(|one| one.waiting() == 0).collect();
        let picked = if !may_wait {
            free.first().copied()
        } else if let [only] = usable.as_slice() {
            Some(*only).filter(|only| only.is_idle())
        } else {
            // The first free one is for all other calls.
            let idle = free.iter().skip(1).copied().find(|one| one.is_idle());
            idle.or_else(|| {
                let full = usable.len() >= CONNECTIONS_MAX;
                let busy = usable.iter().copied().filter(|one| one.waiting() > 0);
                full.then(|| busy.min_by_key(|one| one.waiting()).or(free.last().copied())).flatten()
            })
        };
        picked.map(|one| PendingCall::on(one, may_wait))
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<OpenConnection>>> {
        lock(&self.open)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("open", &self.open().len()).finish_non_exhaustive()
    }
}

/// Most connections of a store on one runtime, besides the one that listens.
const CONNECTIONS_MAX: usize = 4;

/// Most connections that remain open without a call.
const IDLE_MAX: usize = 2;

/// Most connections that one call waits for. A server may end each of them at once.
const ATTEMPTS_MAX: usize = 8;
