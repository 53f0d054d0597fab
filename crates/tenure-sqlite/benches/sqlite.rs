//! Cost of a fenced transaction in SQLite, next to the same transaction without a fence in the same run.
//!
//! Times depend on the machine; compare the ratios. A missed goal is printed, and does not fail the run.
//! `TENURE_BENCH_EFFORT=10` repeats everything ten times as often.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};
use tenure_fence::FencingToken;
use tenure_sqlite::SqliteFence;
use tenure_testkit::{Effort, Samples, print_ratio};

fn main() {
    let effort = Effort::from_environment();
    let directory = std::env::temp_dir().join(format!("tenure-sqlite-bench-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    println!("on SQLite {}", rusqlite::version());
    println!("{}", Samples::heading());
    for (journal, synchronous) in [("WAL", "FULL"), ("DELETE", "FULL"), ("WAL", "NORMAL")] {
        compare(&directory, journal, synchronous, effort.rounds * 2);
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Times one row in each kind of transaction.
fn compare(directory: &Path, journal: &str, synchronous: &str, rounds: usize) {
    let mut connection = Connection::open(directory.join(format!("{journal}-{synchronous}.db"))).unwrap();
    connection.pragma_update(None, "journal_mode", journal).unwrap();
    connection.pragma_update(None, "synchronous", synchronous).unwrap();
    connection.execute_batch("CREATE TABLE free (text TEXT); CREATE TABLE guarded (text TEXT)").unwrap();
    SqliteFence::install(&connection).unwrap();
    let fence = SqliteFence::new("free").unwrap();
    let guarding = SqliteFence::new("guarded").unwrap().with_guarded_tables();
    guarding.guard(&connection, "guarded").unwrap();
    let token: FencingToken = "billing=1762000000000001".parse().unwrap();
    fence.seal(&mut connection, &token).unwrap();
    guarding.seal(&mut connection, &token).unwrap();

    let name = format!("journal {journal}, synchronous {synchronous}");
    let mut bare = Samples::new("a bare transaction with one row");
    let mut fenced = Samples::new("the same, fenced");
    let mut guarded = Samples::new("the same, fenced, into a guarded table");
    for _ in 0..rounds {
        // Interleaved, so that other load on the machine affects all of them equally.
        bare.take(|| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
            insert(&transaction, FREE).unwrap();
            transaction.commit().unwrap();
        });
        fenced.take(|| fence.transaction(&mut connection, &token, |work| insert(work, FREE)).unwrap());
        guarded.take(|| guarding.transaction(&mut connection, &token, |work| insert(work, GUARDED)).unwrap());
    }
    println!("{name}\n{bare}\n{fenced}\n{guarded}");
    print_ratio("a fenced transaction, to the bare one", fenced.at(50), bare.at(50), Some(1.3));
    print_ratio("into a guarded table, to the bare one", guarded.at(50), bare.at(50), None);
    println!();
}

fn insert(connection: &Connection, statement: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(statement)?.execute(["a line of a ledger, about one hundred bytes"]).map(drop)
}

const FREE: &str = "INSERT INTO free VALUES (?1)";
const GUARDED: &str = "INSERT INTO guarded VALUES (?1)";
