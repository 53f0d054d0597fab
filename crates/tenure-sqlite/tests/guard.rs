//! Guarded tables: a write path that forgets the token is refused by the database, whatever program it is in.

mod support;

use std::process::Command;

use rusqlite::{Connection, TransactionBehavior};
use support::{Database, Journal, ledger, token};
use tenure_fence::{FenceError, FencingToken};
use tenure_sqlite::SqliteFence;
use tenure_store::Reason;

fn guarded(journal: Journal) -> (Database, SqliteFence) {
    let database = Database::new(journal);
    let fence = ledger().with_guarded_tables();
    let mut connection = database.connect();
    connection.execute_batch("CREATE TABLE plain (id INTEGER PRIMARY KEY)").unwrap();
    fence.guard(&connection, "entries").unwrap();
    fence
        .transaction(&mut connection, &token(1), |transaction| {
            transaction.execute("INSERT INTO entries VALUES (1, 1)", ())
        })
        .unwrap();
    (database, fence)
}

/// All ways to change the table.
const CHANGES: [&str; 9] = [
    "INSERT INTO entries VALUES (9, 9)",
    "INSERT OR IGNORE INTO entries VALUES (9, 9)",
    "INSERT OR REPLACE INTO entries (rowid, token, number) VALUES (1, 9, 9)",
    "INSERT INTO entries (rowid, token, number) VALUES (1, 9, 9) ON CONFLICT (rowid) DO UPDATE SET number = 9",
    "REPLACE INTO entries (rowid, token, number) VALUES (1, 9, 9)",
    "UPDATE entries SET number = 9",
    "UPDATE OR IGNORE entries SET number = 9",
    "DELETE FROM entries WHERE number = 1",
    "DELETE FROM entries",
];

#[test]
fn a_write_that_forgets_the_token_is_refused_on_every_connection() {
    for journal in Journal::ALL {
        let (database, _fence) = guarded(journal);
        // It knows nothing of the fence, and enforces no foreign keys, like most programs.
        let stranger = database.connect();
        stranger.pragma_update(None, "foreign_keys", false).unwrap();
        stranger.pragma_update(None, "recursive_triggers", false).unwrap();
        for change in CHANGES {
            let refused = stranger.execute(change, ()).unwrap_err();
            assert_eq!(
                refused.to_string(),
                "table entries is fenced: the transaction was not admitted to the resource ledger with a token",
                "{change}"
            );
            let batch = format!("BEGIN IMMEDIATE; INSERT INTO plain VALUES (NULL); {change}; COMMIT;");
            stranger.execute_batch(&batch).unwrap_err();
            stranger.execute_batch("ROLLBACK").unwrap();
        }
        assert_eq!(database.entries(), [(1, 1)]);
        stranger.execute("INSERT INTO plain VALUES (NULL)", ()).expect("other tables are free");
    }
}

/// Another program with another build of SQLite.
#[test]
fn a_program_in_another_language_is_refused_too() {
    let (database, _fence) = guarded(Journal::Wal);
    let script = "import sqlite3, sys\n\
                  c = sqlite3.connect(sys.argv[1])\n\
                  print('SQLite', sqlite3.sqlite_version)\n\
                  c.execute(\"INSERT INTO plain VALUES (NULL)\")\n\
                  c.execute(\"INSERT INTO entries VALUES (9, 9)\")\n\
                  c.commit()";
    let Ok(ran) = Command::new("python3").args(["-c", script]).arg(database.path()).output() else {
        return tenure_testkit::skipped("python3 is not installed");
    };
    let (output, error) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if error.contains("No module named") {
        return tenure_testkit::skipped("python3 has no module sqlite3");
    }
    println!("{output}");
    assert!(!ran.status.success() && error.contains("table entries is fenced"), "{error}");
    assert_eq!(database.entries(), [(1, 1)]);
}

#[test]
fn an_admitted_transaction_writes_and_leaves_the_table_closed() {
    for journal in Journal::ALL {
        for change in CHANGES {
            let (database, fence) = guarded(journal);
            let mut connection = database.connect();
            fence
                .transaction(&mut connection, &token(2), |transaction| transaction.execute(change, ()))
                .unwrap();
            connection.execute("INSERT INTO entries VALUES (9, 9)", ()).expect_err("it is closed again");
            let error = fence
                .transaction(&mut connection, &token(1), |transaction| transaction.execute(change, ()))
                .unwrap_err();
            assert!(error.is_stale(), "{error}");
        }
    }
}

#[test]
fn sqlite_refuses_to_commit_a_transaction_that_is_still_open() {
    for journal in Journal::ALL {
        let (database, fence) = guarded(journal);
        let mut connection = database.connect();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        fence.admit(&transaction, &token(2)).unwrap();
        transaction.pragma_update(None, "foreign_keys", false).unwrap();
        transaction.execute("INSERT INTO entries VALUES (2, 2)", ()).unwrap();
        let refused = transaction.execute_batch("COMMIT").unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(rusqlite::ErrorCode::ConstraintViolation), "{refused}");
        fence.close(&transaction).unwrap();
        transaction.execute("INSERT INTO entries VALUES (2, 3)", ()).expect_err("it is closed");
        transaction.commit().unwrap();
        assert_eq!(database.entries(), [(1, 1), (2, 2)]);
    }
}

#[test]
fn a_connection_that_would_commit_the_admission_is_refused() {
    let (database, fence) = guarded(Journal::Wal);
    let mut connection = database.connect();
    connection.pragma_update(None, "foreign_keys", false).unwrap();
    let error = fence.seal(&mut connection, &token(2)).unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Unsupported, .. }), "{error}");
    assert!(error.to_string().contains("PRAGMA foreign_keys = ON"), "{error}");
    assert_eq!(fence.mark(&connection).unwrap(), Some(token(1)));
    // Another program has opened the tables by hand, and committed that.
    connection.execute("INSERT INTO tenure_fence_admission (resource) VALUES ('ledger')", ()).unwrap();
    let error = fence.seal(&mut database.connect(), &token(2)).unwrap_err();
    assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("tenure_fence_admission"), "{error}");
}

#[test]
fn an_admission_opens_the_tables_of_its_own_resource_only() {
    let (database, _fence) = guarded(Journal::Wal);
    let other = SqliteFence::new("it's another").unwrap().with_guarded_tables();
    let mut connection = database.connect();
    connection.execute_batch("CREATE TABLE \"odd \"\" name\" (id)").unwrap();
    other.guard(&connection, "odd \" name").unwrap();
    other.guard(&connection, "odd \" name").expect("twice is once");
    let of_other: FencingToken = "payroll=1".parse().unwrap();
    other
        .transaction(&mut connection, &of_other, |transaction| {
            transaction.execute("INSERT INTO \"odd \"\" name\" VALUES (1)", ())?;
            transaction.execute("INSERT INTO entries VALUES (1, 1)", ()).expect_err("not its table");
            Ok(())
        })
        .unwrap();
    connection.execute("DELETE FROM \"odd \"\" name\"", ()).unwrap_err();
    other.unguard(&connection, "odd \" name").unwrap();
    connection.execute("DELETE FROM \"odd \"\" name\"", ()).unwrap();
}

#[test]
fn a_cascade_from_another_table_is_refused_too() {
    let database = Database::new(Journal::Wal);
    let connection = database.connect();
    connection
        .execute_batch(
            "CREATE TABLE parent (id INTEGER PRIMARY KEY);
             CREATE TABLE child (parent REFERENCES parent (id) ON DELETE CASCADE);
             INSERT INTO parent VALUES (1); INSERT INTO child VALUES (1);",
        )
        .unwrap();
    ledger().guard(&connection, "child").unwrap();
    connection.execute("DELETE FROM parent", ()).unwrap_err();
    assert_eq!(
        connection.query_row("SELECT count(*) FROM parent", (), |row| row.get::<_, i64>(0)).unwrap(),
        1
    );
}

#[test]
fn what_cannot_be_guarded_is_refused_in_words() {
    let connection = Connection::open_in_memory().unwrap();
    SqliteFence::install(&connection).unwrap();
    connection.execute_batch("CREATE TABLE entries (id); CREATE VIEW seen AS SELECT * FROM entries").unwrap();
    for (table, word) in [
        ("missing", "has no table"),
        ("seen", "is a view"),
        ("tenure_fence", "is a table of the fence"),
        ("sqlite_master", "has no table"),
    ] {
        let error = ledger().guard(&connection, table).unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    ledger().guard(&connection, "ENTRIES").unwrap();
    connection.execute("INSERT INTO entries VALUES (1)", ()).unwrap_err();
}
