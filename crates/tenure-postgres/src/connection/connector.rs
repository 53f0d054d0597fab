use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_store::StoreError;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Connection, Socket};

use super::connected::{Connected, OnNotification, drive};
use super::inspection::Inspection;
use super::notices::ServerNotices;
use super::process;
use super::task::{AbortOnDrop, spawn, within};
use crate::calls::CallCounters;
use crate::open::{Host, Route, Tables, Target};
use crate::statements::Statements;
use crate::words;

/// Opens connections: to the first server that can be reached and may be used.
#[derive(Debug)]
pub(crate) struct Connector {
    target: Target,
    tables: Tables,
    pub(crate) statements: Statements,
    pub(crate) counters: CallCounters,
    fsync_off: bool,
    /// True if the last connection went through a pooler.
    is_pooled: AtomicBool,
    /// True if the tables existed when the last connection was opened.
    has_tables: AtomicBool,
}

impl Connector {
    pub(crate) fn new(target: Target, tables: Tables, fsync_off: bool) -> Self {
        Self {
            target,
            statements: Statements::of(&tables),
            tables,
            counters: CallCounters::default(),
            fsync_off,
            is_pooled: AtomicBool::new(false),
            has_tables: AtomicBool::new(false),
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// True if connections are known to go through a pooler.
    pub(crate) fn is_pooled(&self) -> bool {
        self.is_pooled.load(Ordering::Relaxed)
    }

    /// True if the tables existed when the last connection was opened.
    pub(crate) fn has_tables(&self) -> bool {
        self.has_tables.load(Ordering::Relaxed)
    }

    /// Opens a connection, and reads the settings of its server.
    ///
    /// Tries every server, and the next one as soon as one has failed. After a while of silence it tries the next one beside
    /// the silent one, and after the last one each server for a second time: a connection may be lost on its way, and all
    /// calls wait for this attempt.
    pub(crate) async fn open(&self, on_notification: OnNotification) -> Result<Connected, StoreError> {
        let routes: Vec<_> = self.target.routes().collect();
        let mut attempts = FuturesUnordered::new();
        let mut errors = BTreeMap::new();
        let (mut order, mut is_next) = (0, true);
        loop {
            if is_next && order < 2 * routes.len() {
                let (at, route) = routes[order % routes.len()];
                let attempt = self.open_route(route, Arc::clone(&on_notification));
                attempts.push(attempt.map(move |opened| (order, at, opened)));
                order += 1;
            }
            match within(HEAD_START, attempts.next()).await {
                Some(Some((_, at, Ok(connected)))) => {
                    self.target.start_at(at);
                    self.is_pooled.store(connected.is_pooled, Ordering::Relaxed);
                    self.has_tables.store(connected.inspection.has_tables(), Ordering::Relaxed);
                    return Ok(connected);
                }
                Some(Some((order_of_it, _, Err(error)))) => {
                    errors.insert(order_of_it, error);
                    // A server that has answered with an error is not tried again.
                    is_next = order < routes.len();
                }
                Some(None) => break,
                None => is_next = true,
            }
        }
        Err(errors.pop_first().expect("a store has a server").1)
    }

    /// The servers that accept writes, each with one of its hosts. Two hosts may be two ways to one server. Empty if the
    /// store has only one host.
    pub(crate) async fn primaries(&self) -> Vec<String> {
        let routes: Vec<_> = self.target.routes().map(|(_, route)| route).collect();
        if routes.len() < 2 {
            return Vec::new();
        }
        let primary = async |route: &Route| {
            let connected = self.open_route(route, Arc::new(|_| ())).await.ok()?;
            let _guard = connected.abort_on_drop();
            let rows = connected.client.query_typed(&self.statements.followers, &[]).await.ok()?;
            let server: String = rows.first()?.try_get(3).ok()?;
            Some((server, route.host.to_string()))
        };
        let found = join_all(routes.into_iter().map(primary)).await;
        let servers: BTreeMap<_, _> = found.into_iter().flatten().collect();
        servers.into_values().collect()
    }

    /// Opens a connection to one server, within its limit.
    async fn open_route(
        &self,
        route: &Route,
        on_notification: OnNotification,
    ) -> Result<Connected, StoreError> {
        let opened = within(route.limit, async {
            let (mut config, password) = (self.target.config(route), self.target.password(&route.host).await);
            if let Ok(Some(password)) = &password {
                config.password(password);
            }
            match config.connect(route.tls.clone()).await {
                Ok((client, connection)) => {
                    self.inspected(client, connection, &route.host, on_notification).await
                }
                // A password file that cannot be used is a problem only if the server asks for a password.
                Err(error) if words::asks_for_password(&error) => {
                    Err(words::no_password(&route.host, &self.target, password.err()))
                }
                Err(error) => Err(words::not_connected(&error, &route.host, &self.target)),
            }
        });
        opened.await.unwrap_or_else(|| Err(words::silent(&route.host, route.limit)))
    }

    async fn inspected<T: TlsStream + Unpin + Send + 'static>(
        &self,
        client: Client,
        connection: Connection<Socket, T>,
        host: &Host,
        on_notification: OnNotification,
    ) -> Result<Connected, StoreError> {
        let notices = Arc::new(ServerNotices::default());
        let driver = spawn(drive(connection, Arc::clone(&notices), on_notification));
        // A connection that is not used in the end must not wait for a stopped server.
        let abandoned = AbortOnDrop::new(driver.abort_handle());
        let names = [self.tables.schema_name(), self.tables.record_name(), &self.tables.token_name()];
        let [schema, record, token] = &names;
        let parameters: super::Parameters<'_> =
            &[(schema, Type::TEXT), (record, Type::TEXT), (token, Type::TEXT)];
        let rows = client.query_typed(&self.statements.inspect, parameters).await;
        let inspection = rows.and_then(|rows| rows.first().map(Inspection::of).transpose());
        let inspection = match inspection {
            Ok(Some(inspection)) => inspection,
            Ok(None) => return Err(words::not_postgres(host)),
            Err(error) => return Err(words::not_inspected(&error, host, &notices, &self.target)),
        };
        inspection.check(&self.tables, self.fsync_off)?;
        let is_pooled = process::announced(&client).await != Some(inspection.process);
        if !is_pooled && !inspection.is_read_committed() {
            // The session is ours alone. Through a pooler, the setting would stay behind for others.
            let set = client
                .batch_execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED");
            set.await.map_err(|error| words::not_inspected(&error, host, &notices, &self.target))?;
        }
        abandoned.keep();
        Ok(Connected { client, inspection, notices, driver, is_pooled })
    }
}

/// Silence of a server after which another attempt begins beside it.
const HEAD_START: Duration = Duration::from_secs(1);
