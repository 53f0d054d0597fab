//! Locks that users of PostgreSQL pick instead of Tenure, and Tenure's lease in the same form.

mod advisory;
mod shed_lock;
mod skip_locked;
mod tenure_lease;

use std::time::Duration;

use advisory::AdvisoryLock;
use shed_lock::ShedLock;
use skip_locked::SkipLockedRow;
use tenure_lease::TenureLease;
pub(crate) use tenure_lease::store;
use tenure_store::BoxFuture;
use tenure_testkit::{ComparedLock, Comparison, LockKind, OpenedLock};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

pub(crate) const PEERS: Comparison = Comparison {
    kinds: &[
        LockKind { name: TENURE, has_ttl: true },
        LockKind { name: ADVISORY, has_ttl: false },
        LockKind { name: SKIP_LOCKED, has_ttl: false },
        LockKind { name: SHED_LOCK, has_ttl: true },
    ],
    open,
    write,
};

fn open<'a>(url: &'a str, kind: &'a str, name: &'a str, ttl: Duration) -> OpenedLock<'a> {
    Box::pin(async move {
        let lock: Box<dyn ComparedLock> = match kind {
            TENURE => Box::new(TenureLease::open(url, name, ttl).await),
            ADVISORY => Box::new(AdvisoryLock::new(connect(url).await, name)),
            SKIP_LOCKED => Box::new(SkipLockedRow::new(connect(url).await, name)),
            SHED_LOCK => Box::new(ShedLock::new(connect(url).await, name, ttl)),
            _ => panic!("{kind}"),
        };
        lock
    })
}

/// Writes a row that keeps the largest token it has seen, as the resource of a user would.
fn write<'a>(url: &'a str, name: &'a str, token: Option<u64>) -> BoxFuture<'a, bool> {
    Box::pin(async move {
        let sql = "INSERT INTO resource AS r (name, token) VALUES ($1, $2) \
                   ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE r.token <= excluded.token";
        // The locks without a token write to a resource of their own.
        let (name, token) = (format!("{}:{name}", token.is_some()), token.unwrap_or_default() as i64);
        let parameters: &[Parameter<'_>] = &[(&name, Type::TEXT), (&token, Type::INT8)];
        connect(url).await.execute_typed(sql, parameters).await.unwrap() == 1
    })
}

/// Creates the tables of the peers.
pub(crate) const TABLES: &str = "
    CREATE TABLE resource (name text PRIMARY KEY, token bigint NOT NULL);
    CREATE TABLE held_row (name text PRIMARY KEY);
    CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, lock_until timestamp NOT NULL, locked_at timestamp NOT NULL, \
        locked_by varchar(255) NOT NULL);
";

/// A connection of the bare client, of the same kind as those of the store.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A parameter of a statement that is sent in one round trip.
pub(crate) type Parameter<'a> = (&'a (dyn tokio_postgres::types::ToSql + Sync), Type);

const TENURE: &str = "Tenure";
const ADVISORY: &str = "pg_advisory_lock";
const SKIP_LOCKED: &str = "row with SKIP LOCKED";
const SHED_LOCK: &str = "ShedLock's JDBC scheme";
