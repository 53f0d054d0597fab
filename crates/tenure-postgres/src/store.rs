use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use tenure_store::{
    Applied, BoxStream, Conflict, Entry, Guarantees, Identity, Key, Listed, Prefix, Put, Reading, Reason,
    Scratch, Stamp, Store, StoreError, StoreFuture, StoreTime, Version, Write,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::Calls;
use crate::calls::count;
use crate::classify::{self, Meaning};
use crate::conditional_write::ConditionalWrite;
use crate::connection::{Connections, Connector, Parameters, PendingCall, STANDBY};
use crate::doubts::Doubts;
use crate::open::{PostgresBuilder, Tables, Target};
use crate::watch::Listeners;
use crate::{stamp, statements, words};

/// A store in a PostgreSQL database: one row for each key.
#[derive(Clone)]
pub struct Postgres(Arc<Inner>);

struct Inner {
    connections: Arc<Connections>,
    listeners: Arc<Listeners>,
    doubts: Doubts,
    guarantees: Guarantees,
    url: String,
    place: String,
    server_clock: bool,
}

/// The parts of a store that its builder found.
pub(crate) struct Parts {
    pub(crate) target: Target,
    pub(crate) tables: Tables,
    pub(crate) guarantees: Guarantees,
    /// Name of the store: the same for every caller.
    pub(crate) url: String,
    /// The store and the role: the settings of a role may differ.
    pub(crate) place: String,
    pub(crate) server_clock: bool,
    pub(crate) fsync_off: bool,
}

impl Postgres {
    /// Maximum size of a value, in bytes.
    pub const VALUE_MAX: usize = VALUE_MAX;

    /// A database on the usual server. The builder takes everything else.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::new()
    }

    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { target, tables, guarantees, url, place, server_clock, fsync_off } = parts;
        let connections = Arc::new(Connections::new(Connector::new(target, tables, fsync_off)));
        let listeners = Arc::new(Listeners::new(Arc::clone(&connections)));
        Self(Arc::new(Inner {
            connections,
            listeners,
            doubts: Doubts::default(),
            guarantees,
            url,
            place,
            server_clock,
        }))
    }

    /// Number of calls that this store has sent since it was opened.
    pub fn calls(&self) -> Calls {
        self.0.connections.connector().counters.calls()
    }

    /// Creates the schema and the tables, unless they exist.
    pub async fn create_tables(&self) -> Result<(), StoreError> {
        let mut call = self.0.connections.begin(true).await?;
        // A role that may not create tables may use those that exist.
        if self.0.connector().has_tables() {
            call.answered();
            return Ok(());
        }
        self.0.create_tables(call).await
    }

    /// Risks of the server that Tenure sees and does not refuse, each in a sentence: standbys for which no commit waits, a
    /// promotion in the past, and several servers that accept writes. A backup that is running looks like a standby, and a
    /// restored server like a promoted one.
    pub async fn risks(&self) -> Result<Vec<String>, StoreError> {
        let mut call = self.0.connections.begin(false).await?;
        let connector = self.0.connector();
        let rows = self.0.send(&call, &connector.counters.others, &connector.statements.followers, &[]).await;
        let row = self.0.first_row(&mut call, rows)?;
        let (followers, synchronous): (i64, String) = (column(&row, 0)?, column(&row, 1)?);
        let timeline: String = column(&row, 2)?;
        let mut risks = words::risks(followers, &synchronous, u32::from_str_radix(&timeline, 16).ok());
        risks.extend(words::two_primaries(&self.0.connector().primaries().await));
        Ok(risks)
    }
}

impl Inner {
    fn connector(&self) -> &Connector {
        self.connections.connector()
    }

    /// Reads a key. After a write with an unknown outcome, the read waits for the synchronous standbys.
    async fn read(&self, key: &Key) -> Result<Reading, StoreError> {
        let Some(doubt) = self.doubts.about(key) else { return self.read_by(key, Replication::Any).await };
        let reading = self.read_by(key, Replication::Synchronous).await?;
        self.doubts.settle(key, doubt);
        Ok(reading)
    }

    async fn read_by(&self, key: &Key, replication: Replication) -> Result<Reading, StoreError> {
        let name = key.as_str();
        let statements = &self.connector().statements;
        let (statement, may_wait) = match replication {
            Replication::Any => (&statements.read, false),
            Replication::Synchronous => (&statements.read_replicated, true),
        };
        let mut call = self.connections.begin(may_wait).await?;
        let parameters: Parameters<'_> = &[(&name, Type::TEXT)];
        let rows = self.send(&call, &self.connector().counters.reads, statement, parameters).await;
        let row = match rows {
            Err(error) if meaning_of(&error) == Some(Meaning::NoTable) => {
                return self.read_clock(call).await;
            }
            rows => self.first_row(&mut call, rows)?,
        };
        if may_wait && !call.answered() {
            return Err(StoreError::refused(Reason::Unreachable, UNREPLICATED));
        }
        let (version, value): (Option<String>, Option<Vec<u8>>) = (column(&row, 0)?, column(&row, 1)?);
        let time = self.time_on_primary(&row, 2)?;
        let age: Option<i64> = column(&row, 4)?;
        let entry = version.zip(value).map(|(version, value)| {
            // A clock that was set back shows an age below zero.
            let age = age.filter(|_| self.server_clock).and_then(|micros| u64::try_from(micros).ok());
            Entry::new(Bytes::from(value), Version::new(version)).with_age(age.map(Duration::from_micros))
        });
        Ok(Reading::new(entry).with_time(time))
    }

    /// Reads a key while the tables do not exist: it has no entry. A read creates nothing.
    async fn read_clock(&self, mut call: PendingCall) -> Result<Reading, StoreError> {
        let connector = self.connector();
        let rows = self.send(&call, &connector.counters.others, &connector.statements.clock, &[]).await;
        let row = self.first_row(&mut call, rows)?;
        Ok(Reading::new(None).with_time(self.time_on_primary(&row, 0)?))
    }

    /// The server's time in this column. Refuses a standby, which the next column shows.
    fn time_on_primary(&self, row: &Row, at: usize) -> Result<Option<StoreTime>, StoreError> {
        refuse_standby(row, at + 1)?;
        Ok(store_time(column(row, at)?))
    }

    async fn write(&self, key: &Key, write: Write) -> Result<Put, StoreError> {
        let doubt = self.doubts.begin(key);
        let put = self.write_once(key, &write).await;
        if !matches!(put, Err(StoreError::Unknown(_))) {
            doubt.settle();
        }
        put
    }

    async fn write_once(&self, key: &Key, write: &Write) -> Result<Put, StoreError> {
        let write = ConditionalWrite::new(key, write)?;
        let (mut call, rows) = self.send_write(&write).await?;
        if !call.answered() {
            return Err(StoreError::unknown(UNREPLICATED));
        }
        let Some(row) = rows.first() else { return Ok(Put::Conflict(Conflict)) };
        let Some(micros) = column::<Option<i64>>(row, 0)? else {
            return self.not_granted(key, &write, column(row, 2)?).await;
        };
        let version = write.version_on(column(row, 1)?);
        Ok(Put::Applied(Applied::new(version).with_time(store_time(micros))))
    }

    /// Sends a write, and creates the tables if they are missing. Returns the rows with the call that they answer.
    async fn send_write(&self, write: &ConditionalWrite<'_>) -> Result<(PendingCall, Vec<Row>), StoreError> {
        let Connector { statements, counters, .. } = self.connector();
        let (statement, parameters) = (write.statement(statements), write.parameters());
        let mut call = self.connections.begin(write.may_wait()).await?;
        let mut rows = self.send(&call, &counters.writes, statement, &parameters).await;
        // It is the first write, another server answers, or the tables were dropped.
        if rows.as_ref().is_err_and(|error| meaning_of(error) == Some(Meaning::NoTable)) {
            call.answered();
            drop(call);
            self.create_tables(self.connections.begin(true).await?).await?;
            call = self.connections.begin(write.may_wait()).await?;
            rows = self.send(&call, &counters.writes, statement, &parameters).await;
        }
        match rows {
            Ok(rows) => Ok((call, rows)),
            Err(error) => Err(self.error(&mut call, &error)),
        }
    }

    /// The answer to a grant that was not applied, with the token of its row. A greater one usually belongs to a contender
    /// that was faster, and the record shows it. If the record is still the expected one, the tables contradict each other.
    async fn not_granted(
        &self,
        key: &Key,
        write: &ConditionalWrite<'_>,
        found: Option<i64>,
    ) -> Result<Put, StoreError> {
        let number = write.token().unwrap_or_default();
        let Some(greater) = found.filter(|found| *found >= number) else {
            return Ok(Put::Conflict(Conflict));
        };
        let entry = self.read(key).await?.entry;
        if entry.as_ref().map(|entry| &entry.version) != write.expected() {
            return Ok(Put::Conflict(Conflict));
        }
        let sentence = format!(
            "{key} was granted with token {greater} before, and would now get {number}: a part of the tables was \
             restored or changed by hand"
        );
        Err(StoreError::refused(Reason::Damaged, sentence))
    }

    /// Creates the schema and the tables. Many clients may do so at once.
    async fn create_tables(&self, mut call: PendingCall) -> Result<(), StoreError> {
        let tables = self.connector().tables();
        // CREATE SCHEMA needs a right on the database, also if the schema exists.
        let mut schema_exists = true;
        let mut tries = 1;
        let created = loop {
            count(&self.connector().counters.others);
            let creation = statements::creation_lock() + &statements::creation(tables, schema_exists);
            match self.connections.execute(&call, &creation).await {
                Err(error) if meaning_of(&error) == Some(Meaning::NoTable) && schema_exists => {
                    schema_exists = false;
                }
                Err(error) if classify::was_created_by_another(&error) && tries < TRIES_MAX => tries += 1,
                created => break created,
            }
        };
        match created {
            Ok(()) => {
                call.answered();
                Ok(())
            }
            Err(error) if meaning_of(&error) == Some(Meaning::Refused(Reason::Denied)) => {
                call.answered();
                Err(words::may_not_create(&error, self.connector().target(), tables))
            }
            Err(error) => Err(self.error(&mut call, &error)),
        }
    }

    fn listing<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Listed, StoreError>> {
        let pages = stream::try_unfold(Some(String::new()), async move |after: Option<String>| {
            let Some(after) = after else { return Ok::<_, StoreError>(None) };
            let (listed, next) = self.page(prefix, &after).await?;
            Ok(Some((stream::iter(listed.into_iter().map(Ok)), next)))
        });
        pages.try_flatten().boxed()
    }

    async fn page(&self, prefix: &Prefix, after: &str) -> Result<(Vec<Listed>, Option<String>), StoreError> {
        let first = prefix.as_str();
        // All keys below the prefix continue with a slash, and the next character is a zero.
        let end = if first.is_empty() { String::new() } else { format!("{first}0") };
        let mut call = self.connections.begin(false).await?;
        let connector = self.connector();
        let parameters: Parameters<'_> = &[(&after, Type::TEXT), (&first, Type::TEXT), (&end, Type::TEXT)];
        let sent = self.send(&call, &connector.counters.pages, &connector.statements.page, parameters);
        let rows = match sent.await {
            Ok(rows) => rows,
            Err(error) if meaning_of(&error) == Some(Meaning::NoTable) => {
                return self.read_clock(call).await.map(|_| (Vec::new(), None));
            }
            Err(error) => return Err(self.error(&mut call, &error)),
        };
        call.answered();
        let mut listed = Vec::with_capacity(rows.len());
        let mut last = None;
        for row in &rows {
            refuse_standby(row, 0)?;
            let Some(name) = column::<Option<String>>(row, 1)? else { break };
            let stamp: String = column(row, 2)?;
            // A name that is not a key is not one of Tenure's rows.
            if let Some(key) = Key::from_stored(&name).ok().filter(|key| prefix.covers(key)) {
                listed.push(Listed::new(key, Stamp::new(stamp)));
            }
            last = Some(name);
        }
        Ok((listed, last.filter(|_| rows.len() == statements::PAGE)))
    }

    async fn sweep(&self, key: &Key) -> Result<(), StoreError> {
        key.must_be_sweepable()?;
        let name = key.as_str();
        let mut call = self.connections.begin(true).await?;
        let connector = self.connector();
        let parameters: Parameters<'_> = &[(&name, Type::TEXT)];
        match self.send(&call, &connector.counters.others, &connector.statements.sweep, parameters).await {
            Ok(_) => {}
            Err(error) if meaning_of(&error) == Some(Meaning::NoTable) => {}
            Err(error) => return Err(self.error(&mut call, &error)),
        }
        call.answered();
        Ok(())
    }

    /// Sends a statement, and sends it again if the server rolled it back because another transaction was in the way.
    async fn send(
        &self,
        call: &PendingCall,
        counter: &AtomicU64,
        statement: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let mut tries = 1;
        loop {
            count(counter);
            match self.connections.send(call, statement, parameters).await {
                Err(error) if meaning_of(&error) == Some(Meaning::Again) && tries < TRIES_MAX => tries += 1,
                rows => return rows,
            }
        }
    }

    fn first_row(
        &self,
        call: &mut PendingCall,
        rows: Result<Vec<Row>, tokio_postgres::Error>,
    ) -> Result<Row, StoreError> {
        match rows {
            Ok(rows) => {
                call.answered();
                rows.into_iter()
                    .next()
                    .ok_or_else(|| StoreError::unknown("the server answered without a row"))
            }
            Err(error) => Err(self.error(call, &error)),
        }
    }

    /// The error of a statement. An error that the server sent is an answer, so its connection stays in use.
    fn error(&self, call: &mut PendingCall, error: &tokio_postgres::Error) -> StoreError {
        if error.as_db_error().is_some() {
            call.answered();
        }
        let connector = self.connector();
        words::of_statement(error, call.connection().notices(), connector.target(), connector.tables())
    }
}

/// Refuses the answer of a standby, by this column: the server behind a pooler may have changed.
fn refuse_standby(row: &Row, at: usize) -> Result<(), StoreError> {
    if column(row, at)? { Err(StoreError::refused(Reason::Unsupported, STANDBY)) } else { Ok(()) }
}

fn meaning_of(error: &tokio_postgres::Error) -> Option<Meaning> {
    error.as_db_error().map(classify::meaning)
}

/// A column of an answer.
fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|error| StoreError::unknown(format!("its answer cannot be read: {error}")))
}

/// The server's time; `None` for a time before 1970: such a clock is wrong.
fn store_time(micros: i64) -> Option<StoreTime> {
    u64::try_from(micros).ok().map(StoreTime::from_micros)
}

impl Store for Postgres {
    fn guarantees(&self) -> Guarantees {
        self.0.guarantees
    }

    fn identity(&self) -> Identity {
        Identity::new(Version::new(stamp::IMPOSSIBLE)).with_place(&self.0.place)
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(self.0.read(key))
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(self.0.write(key, write))
    }

    /// Lists in the order of the bytes of the names.
    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.0.listing(prefix).map_ok(|listed| listed.key).boxed()
    }

    /// The stamp is the one in the row.
    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        Some(self.0.listing(prefix))
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        self.0.listeners.listen(prefix)
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        Some(self)
    }
}

impl Scratch for Postgres {
    fn sweep<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, ()> {
        Box::pin(self.0.sweep(key))
    }
}

impl fmt::Display for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.url)
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("url", &self.0.url).finish_non_exhaustive()
    }
}

/// The standbys that must have everything that a read shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replication {
    /// None.
    Any,
    /// The synchronous ones, if there are any.
    Synchronous,
}

/// Message for a commit that PostgreSQL reports as a success, with a warning.
const UNREPLICATED: &str = "an administrator cancelled the wait for the synchronous standbys, so a failover may undo the \
                            latest writes";

/// Maximum size of a value, in bytes: the maximum size of a record.
pub(crate) const VALUE_MAX: usize = 64 * 1024;

/// Attempts of a statement that the server rolled back because of another transaction.
const TRIES_MAX: u32 = 8;
