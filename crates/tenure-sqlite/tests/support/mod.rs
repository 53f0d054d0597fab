//! A database in a directory of its own.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use tenure_fence::FencingToken;
use tenure_sqlite::SqliteFence;

/// The way in which SQLite makes commits atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journal {
    Rollback,
    Wal,
}

impl Journal {
    pub(crate) const ALL: [Self; 2] = [Self::Rollback, Self::Wal];
}

/// A database with the fence and the table `entries`, which is deleted when this is dropped.
pub(crate) struct Database {
    directory: PathBuf,
}

impl Database {
    pub(crate) fn new(journal: Journal) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenure-sqlite-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).unwrap();
        let database = Self { directory };
        let connection = database.connect();
        let mode = if journal == Journal::Wal { "WAL" } else { "DELETE" };
        connection.pragma_update(None, "journal_mode", mode).unwrap();
        connection.execute_batch("CREATE TABLE entries (token INTEGER, number INTEGER)").unwrap();
        SqliteFence::install(&connection).unwrap();
        database
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join("ledger.db")
    }

    pub(crate) fn connect(&self) -> Connection {
        connect(self.path())
    }

    /// The tokens and numbers of all entries, in the order of their commits.
    pub(crate) fn entries(&self) -> Vec<(u64, u64)> {
        let connection = self.connect();
        let mut read = connection.prepare("SELECT token, number FROM entries ORDER BY rowid").unwrap();
        let rows = read.query_map((), |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)));
        rows.unwrap().map(Result::unwrap).collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A connection that does not wait for the disk: no test cuts the power.
pub(crate) fn connect(path: PathBuf) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(60)).unwrap();
    connection.pragma_update(None, "synchronous", "OFF").unwrap();
    connection
}

pub(crate) fn token(number: u64) -> FencingToken {
    format!("billing={number}").parse().unwrap()
}

pub(crate) fn ledger() -> SqliteFence {
    SqliteFence::new("ledger").unwrap()
}
