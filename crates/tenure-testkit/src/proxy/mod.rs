//! A proxy between a client and a server that injects the faults of networks and load balancers.

mod connection;
mod counts;
mod database_connection;
mod dialogue;
mod error_answer;
mod exchange;
mod fault;
mod message;
mod postgres_dialogue;
mod redis_dialogue;
mod request;
mod rule;
mod shared;

use std::net::SocketAddr;
use std::sync::{Arc, mpsc as blocking};
use std::thread::JoinHandle;
use std::time::Duration;

use connection::Connection;
pub use counts::Counts;
use database_connection::DatabaseConnection;
use dialogue::Dialogue;
pub use error_answer::ErrorAnswer;
pub use exchange::Exchange;
pub use fault::Fault;
pub(crate) use message::{HttpAnswer, HttpRequest, HttpStream};
use postgres_dialogue::PostgresDialogue;
use redis_dialogue::RedisDialogue;
pub use rule::Rule;
use shared::ProxyShared;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::port::Port;

/// A proxy on loopback that parses requests, so that it can cut a connection *after the server has applied a request*.
///
/// It has its own thread, so tests may block. It forwards everything, byte for byte, until a [`Rule`] demands a fault.
/// Without a server behind it, clients are cut off. Dropping the proxy discards all pending late deliveries.
///
/// ```no_run
/// # use std::time::Duration;
/// use tenure_testkit::{Fault, FaultyProxy, Kind, Rule, Server};
///
/// let Some(server) = Server::shared(Kind::Minio) else { return };
/// let proxy = FaultyProxy::start(server.address());
/// let lost = proxy.install(Rule::new(Fault::CutAfter).method("PUT").chance(0.1, 7));
/// // … clients use proxy.endpoint() …
/// proxy.settle(Duration::from_secs(30));
/// assert!(lost.counts().applied >= 100, "too few answers were lost: {:?}", lost.counts());
/// let puts = proxy.log().iter().filter(|exchange| exchange.method == "PUT").count();
/// # drop(puts);
/// ```
#[derive(Debug)]
pub struct FaultyProxy {
    port: Arc<Port>,
    shared: Arc<ProxyShared>,
    protocol: ProxyProtocol,
    orders: Option<mpsc::UnboundedSender<(ProxyOrder, blocking::SyncSender<()>)>>,
    thread: Option<JoinHandle<()>>,
}

/// A rule that is installed in a proxy.
#[derive(Debug, Clone)]
pub struct InstalledRule {
    shared: Arc<ProxyShared>,
    number: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyProtocol {
    Http,
    Postgres,
    Redis,
}

#[derive(Debug, Clone, Copy)]
enum ProxyOrder {
    Refuse,
    Accept,
    Cut,
}

impl FaultyProxy {
    /// Starts a proxy in front of this server, which speaks HTTP.
    pub fn start(server: SocketAddr) -> Self {
        Self::start_for(server, ProxyProtocol::Http)
    }

    /// Starts a proxy in front of a PostgreSQL server. It forwards encrypted connections unseen.
    pub fn start_postgres(server: SocketAddr) -> Self {
        Self::start_for(server, ProxyProtocol::Postgres)
    }

    /// Starts a proxy in front of a server with the protocol of Redis. It forwards encrypted connections unseen, and those
    /// with a subscription in version 2 of the protocol, too.
    pub fn start_redis(server: SocketAddr) -> Self {
        Self::start_for(server, ProxyProtocol::Redis)
    }

    fn start_for(server: SocketAddr, protocol: ProxyProtocol) -> Self {
        let (port, shared) = (Arc::new(Port::reserve()), ProxyShared::new());
        let (orders, receiver) = mpsc::unbounded_channel();
        let (ours, theirs) = (Arc::clone(&port), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("faulty proxy".to_owned());
        let thread = thread.spawn(move || crate::block_on(run(ours, (server, protocol), theirs, receiver)));
        let thread = thread.expect("a thread can be started");
        let proxy = Self { port, shared, protocol, orders: Some(orders), thread: Some(thread) };
        proxy.order(ProxyOrder::Accept);
        proxy
    }

    /// The URL of the proxy: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Installs a rule, from the next request on. If several rules match a request, the one installed first applies.
    ///
    /// Panics if the fault cannot happen in the protocol of the server.
    #[track_caller]
    pub fn install(&self, rule: Rule) -> InstalledRule {
        assert!(self.can_inject(rule.fault), "{:?} cannot happen on a connection to a database", rule.fault);
        InstalledRule { number: self.shared.install(rule), shared: Arc::clone(&self.shared) }
    }

    /// True if this fault can happen in the protocol of the server.
    pub fn can_inject(&self, fault: Fault) -> bool {
        self.protocol == ProxyProtocol::Http || fault.fits_databases()
    }

    /// Counts of each rule's fault, in the order of installation, including removed rules.
    pub fn counts(&self) -> Vec<(Fault, Counts)> {
        self.shared.all_counts()
    }

    /// The requests so far, in the order of arrival.
    pub fn log(&self) -> Vec<Exchange> {
        self.shared.log()
    }

    /// Clears the log.
    pub fn clear_log(&self) {
        self.shared.clear_log();
    }

    /// Waits until no request and no late delivery is pending. Panics if that takes longer than `patience`.
    #[track_caller]
    pub fn settle(&self, patience: Duration) {
        assert!(self.shared.settle(patience), "requests are still under way after {patience:?}");
    }

    /// Closes all connections, and refuses new ones until [`accept_connections`](Self::accept_connections).
    pub fn refuse_connections(&self) {
        self.order(ProxyOrder::Refuse);
    }

    /// Accepts connections again, on the same port.
    pub fn accept_connections(&self) {
        self.order(ProxyOrder::Accept);
    }

    /// Closes all connections, idle or not; new ones are accepted.
    pub fn cut_connections(&self) {
        self.order(ProxyOrder::Cut);
    }

    /// Carries out an order, and returns when it is done.
    #[track_caller]
    fn order(&self, order: ProxyOrder) {
        let (done, wait) = blocking::sync_channel(1);
        let sent = self.orders.as_ref().is_some_and(|orders| orders.send((order, done)).is_ok());
        assert!(sent && wait.recv().is_ok(), "the proxy at {} has failed", self.address());
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl InstalledRule {
    /// Counts of its fault.
    pub fn counts(&self) -> Counts {
        self.shared.counts(self.number)
    }

    /// Removes the rule. Pending exchanges continue.
    pub fn remove(&self) {
        self.shared.remove(self.number);
    }
}

async fn run(
    port: Arc<Port>,
    (server, protocol): (SocketAddr, ProxyProtocol),
    shared: Arc<ProxyShared>,
    mut orders: mpsc::UnboundedReceiver<(ProxyOrder, blocking::SyncSender<()>)>,
) {
    let (mut listener, mut connections, mut number) = (None, JoinSet::new(), 0);
    loop {
        tokio::select! {
            // An order applies to every client that connects after it.
            biased;
            order = orders.recv() => {
                let Some((order, done)) = order else { return };
                match order {
                    ProxyOrder::Accept if listener.is_none() => {
                        listener = Some(TcpListener::bind(port.address()).await.expect("the port is reserved"));
                    }
                    ProxyOrder::Accept => {}
                    ProxyOrder::Refuse => {
                        listener = None;
                        connections.shutdown().await;
                    }
                    ProxyOrder::Cut => connections.shutdown().await,
                }
                let _ = done.send(());
            }
            client = accept(listener.as_ref()) => {
                number += 1;
                let shared = Arc::clone(&shared);
                let dialogue: Box<dyn Dialogue> = match protocol {
                    ProxyProtocol::Http => {
                        connections.spawn(Connection::new(client, server, shared, number).serve());
                        continue;
                    }
                    ProxyProtocol::Postgres => Box::new(PostgresDialogue::default()),
                    ProxyProtocol::Redis => Box::new(RedisDialogue::default()),
                };
                connections.spawn(DatabaseConnection::serve(client, server, dialogue, shared, number));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The next client; never, if there is no listener.
async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        match listener.accept().await {
            Ok((client, _)) => return client,
            // The client has disconnected, or too many files are open: retrying at once does not help.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
