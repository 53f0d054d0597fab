//! A store behind a TCP connection: a memory store served on loopback, one JSON line per request and answer.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tenure::store::Memory;
use tenure_store::{
    Applied, BoxFuture, BoxStream, Conflict, Entry, Expect, Guarantees, Identity, Key, Prefix, Put, Reading,
    Reason, Store, StoreError, StoreTime, Version, Write,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, oneshot};

/// Serves a memory store on a free loopback port, on a thread of its own, until dropped.
#[derive(Debug)]
pub(crate) struct TcpServer {
    address: SocketAddr,
    memory: Memory,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl TcpServer {
    #[expect(clippy::disallowed_methods, reason = "the server stands for another program")]
    pub(crate) fn start() -> Self {
        let memory = Memory::builder().reach(tenure_store::Reach::Network).build();
        let (stop, stopped) = oneshot::channel();
        let (bound, address) = std::sync::mpsc::channel();
        let served = memory.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                bound.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! { () = serve(listener, served) => {}, _ = stopped => {} }
            });
        });
        Self { address: address.recv().unwrap(), memory, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "the server stands for another program")]
async fn serve(listener: TcpListener, memory: Memory) {
    while let Ok((connection, _)) = listener.accept().await {
        tokio::task::spawn(answer(BufStream::new(connection), memory.clone()));
    }
}

async fn answer(mut connection: BufStream<TcpStream>, memory: Memory) {
    let mut line = String::new();
    while connection.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let request: Value = serde_json::from_str(&line).unwrap();
        let key = Key::from_stored(request["key"].as_str().unwrap()).unwrap();
        let answer = match request["value"].as_str() {
            None => {
                let reading = memory.get(&key).await.unwrap();
                let entry = reading.entry.map(|entry| {
                    json!({"value": str::from_utf8(&entry.value).unwrap(), "version": entry.version.as_str()})
                });
                json!({"entry": entry, "time": reading.time.map(StoreTime::as_micros)})
            }
            Some(value) => {
                let expect = match request["expect"].as_str() {
                    None => Expect::Absent,
                    Some(version) => Expect::Version(Version::new(version)),
                };
                match memory.put(&key, Bytes::from(value.to_owned()), expect).await.unwrap() {
                    Put::Applied(it) => {
                        json!({"version": it.version.as_str(), "time": it.time.map(StoreTime::as_micros)})
                    }
                    Put::Conflict(_) => json!({}),
                }
            }
        };
        line.clear();
        if connection.write_all(format!("{answer}\n").as_bytes()).await.is_err()
            || connection.flush().await.is_err()
        {
            return;
        }
    }
}

/// The client: one connection, opened at connect.
#[derive(Debug)]
pub(crate) struct TcpStore {
    address: SocketAddr,
    connection: Mutex<BufStream<TcpStream>>,
}

impl TcpStore {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self, StoreError> {
        let connection = TcpStream::connect(address).await;
        let connection = connection.map_err(|error| StoreError::refused(Reason::Unreachable, error))?;
        Ok(Self { address, connection: Mutex::new(BufStream::new(connection)) })
    }

    async fn call(&self, request: Value) -> Result<Value, StoreError> {
        let mut connection = self.connection.lock().await;
        let mut line = String::new();
        let exchange = async {
            connection.write_all(format!("{request}\n").as_bytes()).await?;
            connection.flush().await?;
            connection.read_line(&mut line).await
        };
        exchange.await.map_err(StoreError::unknown)?;
        serde_json::from_str(&line).map_err(StoreError::unknown)
    }
}

impl fmt::Display for TcpStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tcp://{}", self.address)
    }
}

impl Store for TcpStore {
    fn guarantees(&self) -> Guarantees {
        let mut guarantees = Guarantees::default();
        guarantees.atomic_create = true;
        guarantees.atomic_replace = true;
        guarantees.linearizable_reads = true;
        guarantees.keeps_acknowledged = true;
        guarantees.reach = tenure_store::Reach::Network;
        guarantees.clock = tenure_store::StoreClock::Floors;
        guarantees.clock_tick = std::time::Duration::ZERO;
        guarantees.write_interval = Duration::ZERO;
        guarantees.value_max = 1 << 20;
        guarantees
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        Box::pin(async move {
            let answer = self.call(json!({"key": key.as_str()})).await?;
            let entry = answer["entry"].as_object().map(|entry| {
                let value = entry["value"].as_str().unwrap().to_owned();
                Entry::new(value.into(), Version::new(entry["version"].as_str().unwrap()))
            });
            Ok(Reading::new(entry).with_time(answer["time"].as_u64().map(StoreTime::from_micros)))
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            let expect = match &write.expect {
                Expect::Absent => None,
                Expect::Version(version) => Some(version.as_str()),
            };
            let value = str::from_utf8(&write.value).unwrap();
            let answer = self.call(json!({"key": key.as_str(), "value": value, "expect": expect})).await?;
            Ok(match answer["version"].as_str() {
                None => Put::Conflict(Conflict),
                Some(version) => {
                    let time = answer["time"].as_u64().map(StoreTime::from_micros);
                    Put::Applied(Applied::new(Version::new(version)).with_time(time))
                }
            })
        })
    }

    fn list<'a>(&'a self, _: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        futures_util::stream::empty().boxed()
    }

    fn identity(&self) -> Identity {
        Identity::new(Version::new("0"))
    }
}
