use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use redis::{Value, cmd};
use tenure_store::{
    Applied, BoxStream, Conflict, Entry, Expect, Guarantees, Identity, Key, Prefix, Purpose, Put, Reading,
    Reason, Scratch, Store, StoreError, StoreFuture, StoreTime, Version, Write,
};

use crate::cluster::{ClusterNodes, Redirect};
use crate::connection::{Connection, Pool};
use crate::fence::{FenceAnswer, FencedWrite};
use crate::names::Names;
use crate::open::{Address, OpenError, RedisBuilder, Settings, StoreName};
use crate::promises::VALUE_MAX;
use crate::quarantine::{IMPOSSIBLE_VERSION, WriteDecision};
use crate::scripts::Operation;
use crate::unconfirmed::UnconfirmedWrites;
use crate::watch::Listener;
use crate::{classify, promises, quarantine, stamp, words};

/// A store on a Redis or Valkey server. Clones are the same store.
///
/// It must be polled inside a tokio runtime that has io and time enabled. The first call of a runtime connects, and a
/// call sends one command, whatever its result (a listing: one for each page). It is sent again only if the server has
/// answered that it did nothing, because it lacks the script.
#[derive(Clone)]
pub struct Redis(Arc<Inner>);

struct Inner {
    pool: Arc<Pool>,
    names: Names,
    nodes: ClusterNodes,
    unconfirmed: UnconfirmedWrites,
    listener: Listener,
    url: String,
}

impl Redis {
    /// Returns a builder for the store at `host` or `host:port`. Several addresses, separated by commas, are entries to
    /// one cluster.
    pub fn builder(address: &str) -> RedisBuilder {
        RedisBuilder::new(address)
    }

    /// Returns a builder for the store at the primary server that these sentinels watch under this name. The addresses are
    /// separated by commas.
    pub fn by_sentinel(addresses: &str, master: &str) -> RedisBuilder {
        RedisBuilder::by_sentinel(addresses, master)
    }

    /// Returns a builder for the store at this socket.
    pub fn at_socket(path: &str) -> RedisBuilder {
        RedisBuilder::at_socket(path)
    }

    /// Maximum size of a value, in bytes: the maximum size of a record.
    pub const VALUE_MAX: usize = VALUE_MAX;

    /// Name of the Redis key that stores this key, for operators.
    pub fn record_of(&self, key: &Key) -> String {
        self.0.names.of(key)
    }

    /// Number of connections that this store has opened so far.
    pub fn connections_opened(&self) -> u64 {
        self.0.pool.opened()
    }

    /// Risks of the server that are known and not refused, each in a sentence. Connects if there is no connection yet.
    pub async fn risks(&self) -> Result<Vec<String>, StoreError> {
        let connection = self.0.pool.connection(None).await?;
        Ok(words::risks(&connection.server, self.0.settings()))
    }

    /// Names of the Redis keys of this store.
    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }

    /// True if a write waits until replicas have confirmed it.
    pub(crate) fn waits_for_replicas(&self) -> bool {
        self.0.settings().confirmation.is_some()
    }

    /// Sends a fenced write once, and waits for the replicas if the settings require it.
    pub(crate) async fn run_fenced(&self, write: &FencedWrite<'_>) -> Result<FenceAnswer, StoreError> {
        let (connection, outcome) = self.0.call(write.mark, &Request::Fenced(write)).await?;
        let CallOutcome::Answered(answer) = outcome else { return Err(unreadable()) };
        let answer = FenceAnswer::of(answer).ok_or_else(unreadable)?;
        match &answer {
            FenceAnswer::Applied(_) => self.0.await_replicas(&connection).await?,
            FenceAnswer::Failed { error, .. } if classify::outdates_the_connection_inside(error) => {
                connection.suspect();
            }
            _ => {}
        }
        Ok(answer)
    }

    pub(crate) fn new(settings: Settings) -> Result<Self, OpenError> {
        let (names, url) = (Names::with(&settings.prefix), StoreName(&settings).to_string());
        let pool = Arc::new(Pool::new(settings)?);
        let listener = Listener::new(Arc::clone(&pool), names.clone());
        Ok(Self(Arc::new(Inner {
            pool,
            names,
            nodes: ClusterNodes::default(),
            unconfirmed: UnconfirmedWrites::default(),
            listener,
            url,
        })))
    }
}

impl Inner {
    fn settings(&self) -> &Settings {
        self.pool.settings()
    }

    async fn read(&self, key: &Key) -> Result<Reading, StoreError> {
        let name = self.names.of(key);
        let unconfirmed = self.unconfirmed.of(&name);
        let request = if unconfirmed.is_some() { Request::Confirm } else { Request::Read };
        let (connection, outcome) = self.call(&name, &request).await?;
        let CallOutcome::Answered(Value::Array(parts)) = outcome else { return Err(unreadable()) };
        let [seconds, micros, stamp, value, exists] =
            <[Value; 5]>::try_from(parts).map_err(|_| unreadable())?;
        let time = time(&seconds, &micros);
        let entry = match (stamp, value, exists) {
            (Value::BulkString(stamp), Value::BulkString(value), _) => {
                let stamp = String::from_utf8(stamp).map_err(|_| damaged(&name))?;
                if stamp.is_empty() {
                    return Err(damaged(&name));
                }
                if let Some(number) = unconfirmed {
                    self.await_replicas(&connection).await?;
                    self.unconfirmed.confirm(&name, number);
                }
                Some(Entry::new(Bytes::from(value), connection.quarantine().version(&stamp)))
            }
            (Value::Nil, Value::Nil, Value::Int(0)) => None,
            _ => return Err(damaged(&name)),
        };
        Ok(Reading::new(entry).with_time(time))
    }

    async fn write(&self, key: &Key, write: Write) -> Result<Put, StoreError> {
        if write.value.len() > VALUE_MAX {
            let what =
                format!("a value has at most {VALUE_MAX} bytes, and this one has {}", write.value.len());
            return Err(StoreError::refused(Reason::Invalid, what));
        }
        let name = self.names.of(key);
        let number = self.settings().confirmation.map(|_| self.unconfirmed.add(&name));
        let put = self.send_write(key, &name, &write, number).await;
        let had_no_effect = match &put {
            Ok(Put::Conflict(_)) | Err(StoreError::Refused(_) | StoreError::Throttled(_)) => true,
            Ok(Put::Applied(_)) | Err(StoreError::Unknown(_)) => false,
        };
        if let Some(number) = number.filter(|_| had_no_effect) {
            self.unconfirmed.cancel(&name, number);
        }
        put
    }

    /// Sends a write of this Redis key, and waits for the replicas if the write has a `number` among the unconfirmed ones.
    async fn send_write(
        &self,
        key: &Key,
        name: &str,
        write: &Write,
        number: Option<u64>,
    ) -> Result<Put, StoreError> {
        let next = stamp();
        let request = Request::Write { key, write, next: &next };
        let (connection, outcome) = self.call(name, &request).await?;
        let CallOutcome::Answered(answer) = outcome else { return Ok(Put::Conflict(Conflict)) };
        match WriteOutcome::of(&answer).ok_or_else(unreadable)? {
            WriteOutcome::Applied(time) => {
                if let Some(number) = number {
                    self.await_replicas(&connection).await?;
                    self.unconfirmed.confirm(name, number);
                }
                let version = connection.quarantine().version(&next);
                Ok(Put::Applied(Applied::new(version).with_time(time)))
            }
            WriteOutcome::Conflict => Ok(Put::Conflict(Conflict)),
            WriteOutcome::NotCleared => Err(quarantine::forgotten(&connection)),
        }
    }

    /// Makes one attempt on one connection.
    async fn attempt(
        &self,
        connection: &Connection,
        asked: Asked,
        name: &str,
        request: &Request<'_>,
    ) -> Attempt {
        let answer = match request {
            Request::Read => run(connection, asked, Operation::Read, &[name], &[]).await,
            Request::Confirm => run(connection, asked, Operation::Confirm, &[name], &[]).await,
            Request::Delete => {
                let command = cmd("DEL").arg(name).clone();
                match asked {
                    Asked::Plainly => connection.send(&command).await,
                    Asked::AfterRedirection => connection.send_redirected(command).await,
                }
            }
            Request::Fenced(write) => {
                if connection.server.mode == "cluster"
                    && let Err(error) = write.must_be_in_one_slot()
                {
                    return Attempt::Failed(error);
                }
                run(connection, asked, Operation::Fence, &write.keys(), &write.arguments()).await
            }
            Request::Write { key, write, next } => {
                let needs_cleared_run = match quarantine::decide(connection, &self.names, key, write).await {
                    Ok(WriteDecision::Send) => false,
                    Ok(WriteDecision::SendIfCleared) => true,
                    Ok(WriteDecision::Conflict) => return self.conflict(connection, asked, name).await,
                    Err(error) => return Attempt::Failed(error),
                };
                let expected = match &write.expect {
                    Expect::Absent => "",
                    Expect::Version(version) => stamp_in(version),
                };
                let restart = self.names.restart();
                let keys: &[&str] = if needs_cleared_run { &[name, &restart] } else { &[name] };
                let cleared = if needs_cleared_run { connection.server.run.as_str() } else { "" };
                // Renewals would wake every contender for nothing.
                let has_hints = !matches!(write.purpose, Purpose::Renewal | Purpose::Resumption);
                let channels = if has_hints { self.names.channels(key) } else { Vec::new() };
                let mut arguments: Vec<&[u8]> =
                    vec![expected.as_bytes(), next.as_bytes(), &write.value, cleared.as_bytes()];
                arguments.extend(channels.iter().map(|channel| channel.as_bytes()));
                run(connection, asked, Operation::Write, keys, &arguments).await
            }
        };
        Attempt::Answered(answer)
    }

    /// Result of a write whose condition names a version of another run. In a cluster, that may be the run of the node
    /// to which this one redirects the call.
    async fn conflict(&self, connection: &Connection, asked: Asked, name: &str) -> Attempt {
        if connection.server.mode == "cluster" {
            let answer = run(connection, asked, Operation::Read, &[name], &[]).await;
            if let Ok(Value::ServerError(error)) = &answer
                && Redirect::of(error, &connection.address).is_some()
            {
                return Attempt::Answered(answer);
            }
        }
        Attempt::Conflict
    }

    /// Waits until enough replicas have the latest write on this connection, if the settings require it.
    async fn await_replicas(&self, connection: &Connection) -> Result<(), StoreError> {
        let Some(confirmation) = self.settings().confirmation else { return Ok(()) };
        let confirmed = match connection.await_replicas(confirmation).await {
            Ok(Value::Int(confirmed)) => confirmed,
            Ok(Value::ServerError(error)) => return Err(StoreError::unknown(words::of(&error))),
            Ok(_) => 0,
            Err(error) => return Err(classify::unanswered(&error)),
        };
        if confirmed >= i64::from(confirmation.replicas) {
            return Ok(());
        }
        Err(StoreError::unknown(format!(
            "the primary server has the write, but {confirmed} of {} replicas confirmed it{} in time",
            confirmation.replicas,
            if confirmation.on_disk { " on disk" } else { "" }
        )))
    }

    /// Makes a call on the connection for this Redis key. Follows a cluster to the node that serves it: a server that
    /// names another node has done nothing.
    async fn call(
        &self,
        name: &str,
        request: &Request<'_>,
    ) -> Result<(Arc<Connection>, CallOutcome), StoreError> {
        let mut node = self.nodes.node(name);
        let mut asked = Asked::Plainly;
        for _ in 0..REDIRECTS_MAX {
            let connection = self.connection(node.as_ref()).await?;
            let answer = match self.attempt(&connection, asked, name, request).await {
                Attempt::Answered(answer) => answer.map_err(|error| classify::unanswered(&error))?,
                Attempt::Conflict => return Ok((connection, CallOutcome::Conflict)),
                Attempt::Failed(error) => return Err(error),
            };
            let Value::ServerError(error) = &answer else {
                return Ok((connection, CallOutcome::Answered(answer)));
            };
            let Some(redirect) = Redirect::of(error, &connection.address) else {
                if classify::outdates_the_connection(error) {
                    self.nodes.forget(&connection.address);
                }
                if classify::code(error) == "WRONGTYPE" && !matches!(request, Request::Fenced(_)) {
                    return Err(self.of_another_type(name));
                }
                return Err(classify::answered(error));
            };
            if !redirect.once {
                self.nodes.moved(redirect.slot, &redirect.node);
            }
            asked = if redirect.once { Asked::AfterRedirection } else { Asked::Plainly };
            node = Some(redirect.node);
        }
        Err(StoreError::refused(
            Reason::Unreachable,
            "the nodes of the cluster redirect the call in a circle",
        ))
    }

    /// The error of a call that met a Redis key of another type: the record, or the restart record.
    fn of_another_type(&self, name: &str) -> StoreError {
        let restart = self.names.restart();
        let what =
            format!("the Redis key {name:?} or {restart:?} is not a hash of Tenure: inspect both with TYPE");
        StoreError::refused(Reason::Damaged, what)
    }

    async fn connection(&self, node: Option<&Address>) -> Result<Arc<Connection>, StoreError> {
        let Some(node) = node else { return Ok(self.pool.connection(None).await?) };
        match self.pool.connection(Some(node)).await {
            Ok(connection) => Ok(connection),
            // The others know which node took over its slots.
            Err(_) => {
                self.nodes.forget(node);
                Ok(self.pool.connection(None).await?)
            }
        }
    }

    /// One page of a listing: the keys, and the cursor of the next page, if there is one.
    async fn page(
        &self,
        connection: &Connection,
        prefix: &Prefix,
        cursor: &str,
    ) -> Result<(Vec<Key>, Option<String>), StoreError> {
        let mut command = cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(self.names.pattern(prefix)).arg("COUNT").arg(SCANNED_AT_ONCE);
        let answer = match connection.send(&command).await.map_err(|error| classify::unanswered(&error))? {
            Value::ServerError(error) => return Err(classify::answered(&error)),
            answer => answer,
        };
        let Value::Array(parts) = answer else { return Err(unreadable()) };
        let [Value::BulkString(next), Value::Array(names)] = &parts[..] else { return Err(unreadable()) };
        let keys = names.iter().filter_map(|name| match name {
            Value::BulkString(name) => self.names.key(name),
            _ => None,
        });
        let keys = keys.filter(|key| prefix.covers(key)).collect();
        let next = String::from_utf8(next.clone()).map_err(|_| unreadable())?;
        Ok((keys, (next != "0").then_some(next)))
    }

    /// The connections whose keys make up the complete store: one, or those of all primary servers of a cluster.
    async fn all_connections(&self) -> Result<Vec<Arc<Connection>>, StoreError> {
        let entry = self.pool.connection(None).await?;
        if entry.server.mode != "cluster" {
            return Ok(vec![entry]);
        }
        let command = cmd("CLUSTER").arg("SLOTS").clone();
        let answer = match entry.send(&command).await.map_err(|error| classify::unanswered(&error))? {
            Value::ServerError(error) => return Err(classify::answered(&error)),
            answer => answer,
        };
        let mut connections = Vec::new();
        for node in primaries(&answer, &entry.address) {
            connections.push(self.pool.connection(Some(&node)).await?);
        }
        Ok(connections)
    }

    async fn remove(&self, key: &Key) -> Result<(), StoreError> {
        key.must_be_sweepable()?;
        self.call(&self.names.of(key), &Request::Delete).await.map(drop)
    }
}

/// A call on one Redis key.
enum Request<'a> {
    Read,
    /// A read that also sends the record to the replicas once more.
    Confirm,
    Write {
        key: &'a Key,
        write: &'a Write,
        /// The stamp of the new record.
        next: &'a str,
    },
    Delete,
    Fenced(&'a FencedWrite<'a>),
}

/// Result of one attempt on one connection.
enum Attempt {
    Answered(Result<Value, redis::RedisError>),
    /// The condition names a version of another run, so nothing was sent: the caller must read before it writes.
    Conflict,
    Failed(StoreError),
}

/// Result of a call that did not fail.
enum CallOutcome {
    Answered(Value),
    /// The condition of the write names a version of another run, so it was not sent.
    Conflict,
}

/// Result of the script that writes.
enum WriteOutcome {
    /// Applied, at this time of the server.
    Applied(Option<StoreTime>),
    Conflict,
    /// Not applied, because the run is not cleared.
    NotCleared,
}

impl WriteOutcome {
    /// The result in an answer; `None` if it is not an answer of the script. A proxy may have given it, and the write may
    /// have been applied.
    fn of(answer: &Value) -> Option<Self> {
        let Value::Array(parts) = answer else { return None };
        match &parts[..] {
            [Value::Int(1), seconds, micros] => Some(Self::Applied(time(seconds, micros))),
            [Value::Int(0), _, _] => Some(Self::Conflict),
            [Value::Int(-1), _, _] => Some(Self::NotCleared),
            _ => None,
        }
    }
}

/// Way in which a node of a cluster is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Plainly,
    /// Another node has redirected this call, while the slot moves.
    AfterRedirection,
}

async fn run(
    connection: &Connection,
    asked: Asked,
    operation: Operation,
    keys: &[impl AsRef<[u8]>],
    arguments: &[&[u8]],
) -> Result<Value, redis::RedisError> {
    match asked {
        Asked::Plainly => connection.run(operation, keys, arguments).await,
        // The text: the server would answer the second command after `NOSCRIPT` with a redirection back.
        Asked::AfterRedirection => connection.send_redirected(operation.by_text(keys, arguments)).await,
    }
}

/// The stamp in a version, behind the run. A version without one gets a stamp that no record has: an empty one would mean
/// that there must be no record.
fn stamp_in(version: &Version) -> &str {
    let stamp = version.as_str().split_once(':').map(|(_, stamp)| stamp);
    stamp.filter(|stamp| !stamp.is_empty()).unwrap_or("0")
}

/// The primary servers in an answer to `CLUSTER SLOTS`, each once.
fn primaries(answer: &Value, from: &Address) -> Vec<Address> {
    let Value::Array(ranges) = answer else { return Vec::new() };
    let mut primaries = Vec::new();
    for range in ranges {
        let Value::Array(range) = range else { continue };
        let Some(Value::Array(primary)) = range.get(2) else { continue };
        let (Some(Value::BulkString(host)), Some(Value::Int(port))) = (primary.first(), primary.get(1))
        else {
            continue;
        };
        let host = match (&host[..], from) {
            (b"" | b"?", Address::Tcp(host, _)) => host.clone(),
            (host, _) => String::from_utf8_lossy(host).into_owned(),
        };
        let address = Address::Tcp(host, u16::try_from(*port).unwrap_or_default());
        if !primaries.contains(&address) {
            primaries.push(address);
        }
    }
    primaries
}

fn time(seconds: &Value, micros: &Value) -> Option<StoreTime> {
    let number = |value: &Value| match value {
        Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
        _ => None,
    };
    Some(StoreTime::from_micros(number(seconds)?.checked_mul(1_000_000)?.checked_add(number(micros)?)?))
}

fn unreadable() -> StoreError {
    StoreError::unknown("the answer of the server cannot be read")
}

fn damaged(name: &str) -> StoreError {
    StoreError::refused(
        Reason::Damaged,
        format!("the Redis key {name:?} is not a Tenure record: inspect it with HGETALL"),
    )
}

impl Store for Redis {
    fn guarantees(&self) -> Guarantees {
        promises::of(self.0.settings())
    }

    fn identity(&self) -> Identity {
        Identity::new(Version::new(IMPOSSIBLE_VERSION)).with_place(&self.0.url)
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(self.0.read(key))
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(self.0.write(key, write))
    }

    /// Scans the complete database of the server, a thousand names per command.
    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        let inner = &*self.0;
        let begun = stream::once(inner.all_connections()).map_ok(move |connections| {
            // A scan may return a name twice.
            let seen = HashSet::new();
            let first =
                connections.into_iter().map(|connection| (connection, "0".to_owned())).collect::<Vec<_>>();
            stream::try_unfold((first, seen), async move |(mut remaining, mut seen)| {
                let Some((connection, cursor)) = remaining.pop() else { return Ok::<_, StoreError>(None) };
                let (mut keys, next) = inner.page(&connection, prefix, &cursor).await?;
                keys.retain(|key| seen.insert(key.clone()));
                if let Some(next) = next {
                    remaining.push((connection, next));
                }
                Ok(Some((stream::iter(keys.into_iter().map(Ok)), (remaining, seen))))
            })
            .try_flatten()
        });
        begun.try_flatten().boxed()
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        Some(self.0.listener.watch(prefix))
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        Some(self)
    }
}

impl Scratch for Redis {
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()> {
        Box::pin(self.0.remove(key))
    }
}

impl fmt::Display for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.url)
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("url", &self.0.url).finish_non_exhaustive()
    }
}

/// A cluster that moves slots redirects a call once or twice.
const REDIRECTS_MAX: usize = 5;

/// Names that the server inspects for one page of a listing.
const SCANNED_AT_ONCE: usize = 1000;
