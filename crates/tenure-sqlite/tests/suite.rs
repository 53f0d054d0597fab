//! The property test of fences, with writers on threads of their own.
#![allow(clippy::disallowed_methods, reason = "the writers are threads")]

mod support;

use std::path::PathBuf;
use std::sync::mpsc;

use rusqlite::Connection;
use support::{Database, Journal, connect, ledger};
use tenure_core::Token;
use tenure_fence::suite::{self, Counts, Plan, Resource, Shown, Writer};
use tenure_fence::{FenceError, FencingToken};
use tenure_sqlite::SqliteFence;
use tenure_testkit::quota;
use tokio::sync::oneshot;

/// A table that a fence guards, or should: it keeps all writes.
struct Entries {
    database: Database,
    write: WriteEntry,
}

/// Writes an entry, or seals without a number.
type WriteEntry = fn(&SqliteFence, &mut Connection, &FencingToken, Option<u64>) -> Result<(), FenceError>;

type Job = (FencingToken, Option<u64>, oneshot::Sender<Result<(), FenceError>>);

/// A thread with a connection and a fence of its own, which ends when this is dropped.
struct EntriesWriter(mpsc::Sender<Job>);

impl EntriesWriter {
    fn start(path: PathBuf, write: WriteEntry) -> Self {
        let (sender, jobs) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            let (mut connection, fence) = (connect(path), ledger().with_guarded_tables());
            for (token, number, answer) in jobs {
                let _ = answer.send(write(&fence, &mut connection, &token, number));
            }
        });
        Self(sender)
    }

    async fn ask(&self, token: &FencingToken, number: Option<u64>) -> Result<(), FenceError> {
        let (sender, answer) = oneshot::channel();
        self.0.send((token.clone(), number, sender)).unwrap();
        answer.await.unwrap()
    }
}

impl Writer for EntriesWriter {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        self.ask(token, Some(number)).await
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(self.ask(token, None).await)
    }
}

impl Resource for Entries {
    type Writer = EntriesWriter;

    async fn writer(&self) -> EntriesWriter {
        EntriesWriter::start(self.database.path(), self.write)
    }

    async fn shown(&self) -> Vec<Shown> {
        let shown = |(token, number)| Shown { token: Token::new(token), number };
        self.database.entries().into_iter().map(shown).collect()
    }
}

fn insert(connection: &Connection, token: &FencingToken, number: Option<u64>) -> rusqlite::Result<()> {
    let Some(number) = number else { return Ok(()) };
    let row = (token.token().get() as i64, number as i64);
    connection.execute("INSERT INTO entries VALUES (?1, ?2)", row).map(drop)
}

fn fenced(
    fence: &SqliteFence,
    connection: &mut Connection,
    token: &FencingToken,
    number: Option<u64>,
) -> Result<(), FenceError> {
    fence.transaction(connection, token, |transaction| insert(transaction, token, number))
}

/// Checks the token in one transaction, and writes in the next.
fn check_then_write(
    _: &SqliteFence,
    connection: &mut Connection,
    token: &FencingToken,
    number: Option<u64>,
) -> Result<(), FenceError> {
    ledger().seal(connection, token)?;
    std::thread::yield_now();
    insert(connection, token, number).unwrap();
    Ok(())
}

async fn passes(journal: Journal, runs: u64) {
    let mut total = Counts::default();
    for seed in 0..runs {
        let entries = Entries { database: Database::new(journal), write: fenced };
        ledger().guard(&entries.database.connect(), "entries").unwrap();
        let counts = suite::run(&entries, Plan::new(seed).calls(250).keeps_all()).await;
        let counts = counts.unwrap_or_else(|why| panic!("{journal:?}, seed {seed}: {why}"));
        total.admitted += counts.admitted;
        total.refused += counts.refused;
        total.unknown += counts.unknown;
        total.crashes += counts.crashes;
    }
    println!("{journal:?}: {total}");
    assert_eq!(total.admitted + total.refused, runs * 8 * 250, "no call failed for another reason: {total}");
    assert!(total.admitted > 1_000 && total.refused > 1_000, "{total}");
}

#[tokio::test]
async fn tens_of_thousands_of_writes_never_go_back_with_a_wal() {
    passes(Journal::Wal, quota(10, 100)).await;
}

#[tokio::test]
async fn tens_of_thousands_of_writes_never_go_back_with_a_rollback_journal() {
    passes(Journal::Rollback, quota(10, 100)).await;
}

#[tokio::test]
async fn a_fence_that_checks_in_another_transaction_is_caught() {
    for seed in 0..50 {
        let entries = Entries { database: Database::new(Journal::Wal), write: check_then_write };
        if let Err(why) = suite::run(&entries, Plan::new(seed).calls(250).keeps_all()).await {
            println!("found with seed {seed}: {why}");
            return;
        }
    }
    panic!("not found");
}
