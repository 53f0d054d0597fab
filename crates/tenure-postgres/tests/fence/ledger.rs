//! A table that keeps all its writes, under the property test of every fence.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::Token;
use tenure_fence::suite::{Resource, Shown, Writer};
use tenure_fence::{Fence, FenceError, FencingToken, Seal};
use tenure_postgres::PostgresFence;
use tenure_store::Reason;
use tokio_postgres::{Client, IsolationLevel, Transaction};

use crate::database::Database;
use crate::{user, user_at};

/// A ledger with one resource. Each writer has a connection of its own.
pub(crate) struct Ledger<'d> {
    pub(crate) database: &'d Database,
    pub(crate) address: SocketAddr,
    pub(crate) resource: String,
    pub(crate) check: Check,
    pub(crate) faults: Faults,
    pub(crate) counts: Arc<FaultCounts>,
}

/// The check that the writers make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Fence,
    /// The fence of a lease in the same database. A writer with the newest token writes its grant first.
    Granted,
    /// An unlocked read, and then the write: a hope.
    Unlocked,
}

/// The faults that the writers make, besides their crashes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// Uses all isolation levels.
    pub(crate) mixed_isolation: bool,
    /// Rolls back some transactions after the write.
    pub(crate) rollbacks: bool,
    /// Terminates some connections before the commit, and some at the same time.
    pub(crate) kills: bool,
}

/// Faults that happened.
#[derive(Debug, Default)]
pub(crate) struct FaultCounts {
    pub(crate) rollbacks: AtomicU64,
    pub(crate) kills: AtomicU64,
    /// Transactions that PostgreSQL rolled back because of another one, and that ran again.
    pub(crate) repeated: AtomicU64,
    writers: AtomicU64,
}

impl<'d> Resource for Ledger<'d> {
    type Writer = LedgerWriter<'d>;

    async fn writer(&self) -> LedgerWriter<'d> {
        let fence = PostgresFence::new(&self.resource);
        let seed = self.counts.writers.fetch_add(1, Ordering::Relaxed);
        LedgerWriter {
            database: self.database,
            address: self.address,
            fence: if self.check == Check::Granted { fence.lease_here() } else { fence },
            check: self.check,
            faults: self.faults,
            counts: Arc::clone(&self.counts),
            client: user_at(self.database, self.address).await,
            chance: fastrand::Rng::with_seed(seed),
        }
    }

    async fn shown(&self) -> Vec<Shown> {
        shown(&user(self.database).await, &self.resource).await
    }
}

/// All writes of a resource, in their order.
pub(crate) async fn shown(client: &Client, resource: &str) -> Vec<Shown> {
    let all = "SELECT token, number FROM ledger WHERE resource = $1 ORDER BY id";
    let rows = client.query(all, &[&resource]).await.unwrap();
    let shown = rows.iter().map(|row| Shown {
        token: Token::try_from(row.get::<_, i64>(0)).ok(),
        number: row.get::<_, i64>(1).unsigned_abs(),
    });
    shown.collect()
}

/// One process that writes.
pub(crate) struct LedgerWriter<'d> {
    database: &'d Database,
    address: SocketAddr,
    fence: PostgresFence,
    check: Check,
    faults: Faults,
    counts: Arc<FaultCounts>,
    client: Client,
    chance: fastrand::Rng,
}

impl Writer for LedgerWriter<'_> {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        if self.check == Check::Granted {
            self.grant(token).await;
        }
        if self.faults.rollbacks && self.chance.u8(..8) == 0 {
            // The suite never sent such a number, so the ledger must not show it.
            let _ = self.transact(token, GHOST + number, End::Rollback).await;
            count(&self.counts.rollbacks);
        }
        let kill = self.faults.kills && self.chance.u8(..30) == 0;
        let end = match kill {
            true if self.chance.bool() => End::KillBeforeCommit,
            true => End::KillDuringCommit,
            false => End::Commit,
        };
        for _ in 0..TRIES {
            match self.transact(token, number, end).await {
                Err(Failure::Again) => count(&self.counts.repeated),
                Err(Failure::Fence(error)) => {
                    if self.client.is_closed() {
                        self.client = user_at(self.database, self.address).await;
                    }
                    return Err(error);
                }
                Ok(()) => return Ok(()),
            }
        }
        panic!("the transaction was in the way of others {TRIES} times")
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        match self.check {
            Check::Unlocked => None,
            Check::Granted => {
                self.grant(token).await;
                Some(self.fence.seal_on(&self.client).seal(token).await)
            }
            Check::Fence => Some(self.fence.seal_on(&self.client).seal(token).await),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
    KillBeforeCommit,
    KillDuringCommit,
}

#[derive(Debug)]
enum Failure {
    /// The server rolled the transaction back because of another one.
    Again,
    Fence(FenceError),
}

impl From<FenceError> for Failure {
    fn from(error: FenceError) -> Self {
        if error.to_string().contains("run the transaction again (40") {
            Self::Again
        } else {
            Self::Fence(error)
        }
    }
}

impl LedgerWriter<'_> {
    /// One transaction: the check, the write, the end.
    async fn transact(&mut self, token: &FencingToken, number: u64, end: End) -> Result<(), Failure> {
        let isolation = match self.chance.u8(..3) {
            1 if self.faults.mixed_isolation => IsolationLevel::RepeatableRead,
            2 if self.faults.mixed_isolation => IsolationLevel::Serializable,
            _ => IsolationLevel::ReadCommitted,
        };
        let resource = self.fence.resource().to_owned();
        let lost = |error: tokio_postgres::Error| match error.code().map(|code| code.code()) {
            Some("40001" | "40P01") => Failure::Again,
            _ => Failure::Fence(FenceError::refused(&resource, Reason::Unreachable, error)),
        };
        let process = match end {
            End::KillBeforeCommit | End::KillDuringCommit => Some(process(&self.client).await.map_err(lost)?),
            End::Commit | End::Rollback => None,
        };
        let begun = self.client.build_transaction().isolation_level(isolation).start().await;
        let transaction = begun.map_err(lost)?;
        match self.check {
            Check::Fence | Check::Granted => self.fence.write(token, &transaction).await?,
            Check::Unlocked => hope(&transaction, &resource, token).await?,
        }
        let (offered, number) = (token.token().get().cast_signed(), number.cast_signed());
        transaction.execute(INSERT, &[&resource, &offered, &number]).await.map_err(lost)?;
        let committed = match end {
            End::Rollback => return transaction.rollback().await.map_err(lost),
            End::Commit => transaction.commit().await,
            End::KillBeforeCommit => {
                kill(self.database, process).await;
                transaction.commit().await
            }
            End::KillDuringCommit => tokio::join!(transaction.commit(), kill(self.database, process)).0,
        };
        if process.is_some() {
            count(&self.counts.kills);
        }
        committed.map_err(|error| match error.code().map(|code| code.code()) {
            Some("40001" | "40P01") => Failure::Again,
            // The connection ended, and the answer with it.
            _ => Failure::Fence(FenceError::unknown(&resource, error)),
        })
    }

    /// Writes the row of the token as a grant does, unless a greater one is there.
    async fn grant(&self, token: &FencingToken) {
        let grant = "INSERT INTO tenure.token AS t (key, token, granted_at) VALUES ($1, $2, now()) \
                     ON CONFLICT (key) DO UPDATE SET token = excluded.token WHERE t.token < excluded.token";
        let offered = token.token().get().cast_signed();
        self.client.execute(grant, &[&token.name().as_str(), &offered]).await.unwrap();
    }
}

/// Reads the mark, and writes a new one, without a lock in between.
async fn hope(transaction: &Transaction<'_>, resource: &str, token: &FencingToken) -> Result<(), Failure> {
    let failed = |error: tokio_postgres::Error| {
        Failure::Fence(FenceError::refused(resource, Reason::Unreachable, error))
    };
    let mark = transaction.query("SELECT token FROM hope WHERE resource = $1", &[&resource]).await;
    let mark = mark.map_err(failed)?.first().map(|row| Token::try_from(row.get::<_, i64>(0)).unwrap());
    let mark = mark.map(|mark| FencingToken::new(token.name().clone(), mark).unwrap());
    token.check(resource, mark.as_ref()).map_err(Failure::Fence)?;
    let write =
        "INSERT INTO hope VALUES ($1, $2) ON CONFLICT (resource) DO UPDATE SET token = excluded.token";
    let offered = token.token().get().cast_signed();
    transaction.execute(write, &[&resource, &offered]).await.map_err(failed)?;
    Ok(())
}

async fn process(client: &Client) -> Result<i32, tokio_postgres::Error> {
    Ok(client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0))
}

/// Terminates the connection of this server process.
async fn kill(database: &Database, process: Option<i32>) {
    let admin = user(database).await;
    admin.execute("SELECT pg_terminate_backend($1)", &[&process]).await.unwrap();
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The tables of the ledger, of a fence that only hopes, and of the grants.
pub(crate) const TABLES: &str = "CREATE TABLE ledger (id bigserial PRIMARY KEY, resource text, token bigint, number bigint); \
     CREATE TABLE hope (resource text PRIMARY KEY, token bigint); \
     CREATE TABLE tenure.token (key text COLLATE \"C\" PRIMARY KEY, token bigint NOT NULL, granted_at timestamptz NOT NULL)";

pub(crate) const INSERT: &str = "INSERT INTO ledger (resource, token, number) VALUES ($1, $2, $3)";

/// Numbers that no plan has.
const GHOST: u64 = 1_000_000_000;

/// Attempts of a transaction that was in the way of others.
const TRIES: u32 = 200;
