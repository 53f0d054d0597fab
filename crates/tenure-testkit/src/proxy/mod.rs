//! A proxy between a client and a server that does to requests what networks and balancers do.

mod connection;
mod counts;
mod error_answer;
mod exchange;
mod fault;
mod message;
mod rule;
mod shared;

use std::net::SocketAddr;
use std::sync::{Arc, mpsc as blocking};
use std::thread::JoinHandle;
use std::time::Duration;

use connection::Connection;
pub use counts::Counts;
pub use error_answer::ErrorAnswer;
pub use exchange::Exchange;
pub use fault::Fault;
pub(crate) use message::{HttpRequest, HttpStream};
pub use rule::Rule;
use shared::ProxyShared;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::port::Port;

/// A proxy on loopback that understands requests, so that it can cut *after the server has applied one*.
///
/// It has a thread of its own, so that tests may block; it passes everything on, byte for byte, until a [`Rule`] says otherwise.
/// Without a server behind it, clients are cut off. What is still to be delivered when it is dropped never is.
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
    orders: Option<mpsc::UnboundedSender<(ProxyOrder, blocking::SyncSender<()>)>>,
    thread: Option<JoinHandle<()>>,
}

/// A rule that was given to a proxy.
#[derive(Debug, Clone)]
pub struct InstalledRule {
    shared: Arc<ProxyShared>,
    number: usize,
}

#[derive(Debug, Clone, Copy)]
enum ProxyOrder {
    Refuse,
    Accept,
    Cut,
}

impl FaultyProxy {
    /// A proxy before this server.
    pub fn start(server: SocketAddr) -> Self {
        let (port, shared) = (Arc::new(Port::reserve()), ProxyShared::new());
        let (orders, receiver) = mpsc::unbounded_channel();
        let (ours, theirs) = (Arc::clone(&port), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("faulty proxy".to_owned());
        let thread = thread.spawn(move || crate::block_on(run(ours, server, theirs, receiver)));
        let thread = thread.expect("a thread can be started");
        let proxy = Self { port, shared, orders: Some(orders), thread: Some(thread) };
        proxy.order(ProxyOrder::Accept);
        proxy
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Gives it a rule, from the next request on. Of several rules that want a request, the one installed first has it.
    pub fn install(&self, rule: Rule) -> InstalledRule {
        InstalledRule { number: self.shared.install(rule), shared: Arc::clone(&self.shared) }
    }

    /// How often the fault of each rule happened, in the order in which they were installed; removed ones too.
    pub fn counts(&self) -> Vec<(Fault, Counts)> {
        self.shared.all_counts()
    }

    /// The requests so far, in the order in which they arrived.
    pub fn log(&self) -> Vec<Exchange> {
        self.shared.log()
    }

    /// Begins the log anew.
    pub fn clear_log(&self) {
        self.shared.clear_log();
    }

    /// Waits until nothing is under way any more, nor to be delivered late. It panics if that takes longer.
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

    /// Closes all connections, whether anything is under way on them or not; new ones are accepted.
    pub fn cut_connections(&self) {
        self.order(ProxyOrder::Cut);
    }

    /// Returns when it is done.
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
    /// How often its fault happened.
    pub fn counts(&self) -> Counts {
        self.shared.counts(self.number)
    }

    /// Ends it. What is under way goes on.
    pub fn remove(&self) {
        self.shared.remove(self.number);
    }
}

async fn run(
    port: Arc<Port>,
    server: SocketAddr,
    shared: Arc<ProxyShared>,
    mut orders: mpsc::UnboundedReceiver<(ProxyOrder, blocking::SyncSender<()>)>,
) {
    let (mut listener, mut connections, mut number) = (None, JoinSet::new(), 0);
    loop {
        tokio::select! {
            // An order counts for whoever connects after it.
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
                connections.spawn(Connection::new(client, server, Arc::clone(&shared), number).serve());
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The next client; never, if nobody listens.
async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        match listener.accept().await {
            Ok((client, _)) => return client,
            // The client has gone, or there are too many files open: neither is better at once.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
