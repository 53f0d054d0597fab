//! Transactions that are admitted with a token, on real database files.

mod support;

use std::fs;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use support::{Database, Journal, ledger, token};
use tenure_core::Token;
use tenure_fence::{FenceError, FencingToken};
use tenure_sqlite::SqliteFence;
use tenure_store::Reason;

fn insert(connection: &Connection, token: u64, number: u64) -> rusqlite::Result<usize> {
    connection.execute("INSERT INTO entries VALUES (?1, ?2)", (token as i64, number as i64))
}

fn begin(connection: &mut Connection) -> rusqlite::Transaction<'_> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap()
}

#[test]
fn an_equal_token_is_the_same_holder_writing_again_and_a_stale_transaction_leaves_no_trace() {
    for journal in Journal::ALL {
        let database = Database::new(journal);
        let (mut old, mut new) = (database.connect(), database.connect());
        let (of_old, of_new) = (ledger(), ledger());
        for number in [1, 2] {
            let transaction = begin(&mut old);
            of_old.admit(&transaction, &token(7)).unwrap();
            insert(&transaction, 7, number).unwrap();
            transaction.commit().unwrap();
        }
        of_new.seal(&mut new, &token(9)).unwrap();
        let transaction = begin(&mut old);
        insert(&transaction, 7, 3).unwrap();
        let error = of_old.admit(&transaction, &token(7)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ledger refused token 7 of lease billing: token 9 has been there. A newer holder writes: stop for good"
        );
        drop(transaction);
        let other: FencingToken = "payroll=99".parse().unwrap();
        for fence in [&of_new, &ledger()] {
            let error = fence.seal(&mut new, &other).unwrap_err();
            assert!(matches!(error, FenceError::OtherLease { .. }), "{error}");
        }
        assert_eq!(database.entries(), [(7, 1), (7, 2)]);
        assert_eq!(of_new.mark(&old).unwrap(), Some(token(9)));
        of_new.seal(&mut new, &token(Token::MAX.get())).unwrap();
        assert!(of_new.seal(&mut new, &token(Token::MAX.get() - 1)).unwrap_err().is_stale());
    }
}

#[test]
fn a_transaction_that_is_rolled_back_does_not_raise_the_fence() {
    for journal in Journal::ALL {
        let database = Database::new(journal);
        let mut connection = database.connect();
        let fence = ledger();
        fence.seal(&mut connection, &token(3)).unwrap();
        let transaction = begin(&mut connection);
        fence.admit(&transaction, &token(5)).unwrap();
        drop(transaction);
        let failed = fence.transaction(&mut connection, &token(6), |transaction| {
            insert(transaction, 6, 1)?;
            transaction.execute("INSERT INTO missing VALUES (1)", ())
        });
        let error = failed.unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
        fence.transaction(&mut connection, &token(4), |transaction| insert(transaction, 4, 2)).unwrap();
        assert_eq!(database.entries(), [(4, 2)]);
    }
}

/// The check is a read. SQLite refuses the first write of a transaction whose reads are outdated.
#[test]
fn an_admitted_deferred_transaction_keeps_a_newer_holder_waiting_and_one_that_has_read_before_is_refused() {
    let database = Database::new(Journal::Wal);
    let (mut old, mut new) = (database.connect(), database.connect());
    let fence = ledger();
    fence.seal(&mut old, &token(7)).unwrap();
    new.busy_timeout(Duration::from_millis(50)).unwrap();
    let transaction = old.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    // With an equal token, too. Otherwise the transaction could write to an attached database after the seal.
    fence.admit(&transaction, &token(7)).unwrap();
    let error = ledger().seal(&mut new, &token(8)).unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Unreachable, .. }), "{error}");
    insert(&transaction, 7, 1).unwrap();
    transaction.commit().unwrap();
    ledger().seal(&mut new, &token(8)).unwrap();
    let transaction = old.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    transaction.query_row("SELECT count(*) FROM entries", (), |row| row.get::<_, i64>(0)).unwrap();
    ledger().seal(&mut new, &token(9)).unwrap();
    let error = ledger().admit(&transaction, &token(10)).unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Unreachable, .. }), "{error}");
    assert!(error.to_string().contains("begin again with BEGIN IMMEDIATE"), "{error}");
    drop(transaction);
    assert_eq!(database.entries(), [(7, 1)]);
}

/// The same with a rollback journal: a reader keeps others from committing.
#[test]
fn a_checked_reader_keeps_a_newer_commit_waiting_in_a_rollback_journal() {
    let database = Database::new(Journal::Rollback);
    let (mut old, mut new) = (database.connect(), database.connect());
    new.busy_timeout(Duration::from_millis(50)).unwrap();
    let fence = ledger();
    fence.seal(&mut old, &token(7)).unwrap();
    let transaction = old.transaction_with_behavior(TransactionBehavior::Deferred).unwrap();
    fence.admit(&transaction, &token(7)).unwrap();
    let error = ledger().seal(&mut new, &token(8)).unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Unreachable, .. }), "{error}");
    assert!(error.to_string().contains("Another connection writes"), "{error}");
    insert(&transaction, 7, 1).unwrap();
    transaction.commit().unwrap();
    ledger().seal(&mut new, &token(8)).unwrap();
    assert_eq!(database.entries(), [(7, 1)]);
}

#[test]
fn a_busy_database_is_refused_in_words() {
    for journal in Journal::ALL {
        let database = Database::new(journal);
        let (mut holder, mut waiting) = (database.connect(), database.connect());
        waiting.busy_timeout(Duration::ZERO).unwrap();
        let transaction = begin(&mut holder);
        let error = ledger().seal(&mut waiting, &token(1)).unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Unreachable, .. }), "{error}");
        assert!(error.to_string().contains("ledger was not written: database is locked"), "{error}");
        drop(transaction);
        ledger().seal(&mut waiting, &token(1)).unwrap();
    }
}

#[test]
fn bad_input_is_refused_and_nothing_is_written() {
    for name in ["", "a\nb", &"x".repeat(513)] {
        let error = SqliteFence::new(name).unwrap_err();
        assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
    }
    let mut connection = Connection::open_in_memory().unwrap();
    let error = ledger().seal(&mut connection, &token(1)).unwrap_err();
    assert!(error.to_string().contains("Call SqliteFence::install once"), "{error}");
    SqliteFence::install(&connection).unwrap();
    SqliteFence::install(&connection).unwrap();
    // A table of the connection with the same name hides nothing.
    connection.execute_batch("CREATE TEMP TABLE tenure_fence (resource, lease, token)").unwrap();
    ledger().seal(&mut connection, &token(5)).unwrap();
    assert!(ledger().seal(&mut connection, &token(4)).unwrap_err().is_stale());
    let transaction = connection.unchecked_transaction().unwrap();
    transaction.execute_batch("ROLLBACK").unwrap();
    let error = ledger().admit(&transaction, &token(5)).unwrap_err();
    assert!(error.to_string().contains("has ended already"), "{error}");
    drop(transaction);
    let error =
        ledger().transaction(&mut connection, &token(5), |work| work.execute_batch("COMMIT")).unwrap_err();
    assert!(matches!(error, FenceError::Unknown { .. }), "{error}");
}

#[test]
fn what_is_not_a_mark_is_never_overwritten() {
    for table in [
        "CREATE TABLE tenure_fence (id INTEGER)",
        "CREATE TABLE tenure_fence_admission (resource TEXT, never_committed TEXT)",
        "CREATE VIEW tenure_fence AS SELECT 1 AS resource, 2 AS lease, 3 AS token",
    ] {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(table).unwrap();
        let error = SqliteFence::install(&connection).unwrap_err();
        assert!(matches!(error, FenceError::Foreign { .. } | FenceError::Refused { .. }), "{table}: {error}");
    }
    let mut connection = Connection::open_in_memory().unwrap();
    SqliteFence::install(&connection).unwrap();
    connection.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    for (lease, number) in [("billing", 0_i64), ("billing", -1), ("billing", 1 << 53), ("", 7)] {
        connection.execute("REPLACE INTO tenure_fence VALUES ('ledger', ?1, ?2)", (lease, number)).unwrap();
        let error = ledger().seal(&mut connection, &token(8)).unwrap_err();
        assert!(matches!(error, FenceError::Foreign { .. }), "{error}");
    }
    let row = "INSERT OR REPLACE INTO tenure_fence VALUES ('ledger', x'00', 'text')";
    connection.execute(row, ()).unwrap();
    assert!(ledger().seal(&mut connection, &token(8)).is_err());
}

#[test]
fn a_database_that_was_restored_from_a_backup_is_refused_until_it_is_acknowledged() {
    let database = Database::new(Journal::Rollback);
    let fence = ledger();
    let path = database.path();
    let backup = path.with_extension("backup");
    fence.seal(&mut database.connect(), &token(3)).unwrap();
    fs::copy(&path, &backup).unwrap();
    fence.transaction(&mut database.connect(), &token(5), |transaction| insert(transaction, 5, 1)).unwrap();
    fs::copy(&backup, &path).unwrap();
    for offered in [3, 4, 5, 6] {
        let error = fence.seal(&mut database.connect(), &token(offered)).unwrap_err();
        let FenceError::WentBack { seen, shown, .. } = error else { panic!("{error}") };
        assert_eq!((seen.get(), shown.get()), (5, 3));
    }
    fence.acknowledge(Token::new(3).unwrap());
    fence.seal(&mut database.connect(), &token(6)).unwrap();
    assert!(fence.seal(&mut database.connect(), &token(5)).unwrap_err().is_stale());
    database.connect().execute("DELETE FROM tenure_fence", ()).unwrap();
    let error = fence.seal(&mut database.connect(), &token(7)).unwrap_err();
    assert!(matches!(&error, FenceError::WentBack { shown, .. } if *shown == Token::ZERO), "{error}");
}

#[test]
fn a_read_only_database_is_refused() {
    let database = Database::new(Journal::Rollback);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let mut connection = Connection::open_with_flags(database.path(), flags).unwrap();
    let error = ledger().seal(&mut connection, &token(1)).unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Denied, .. }), "{error}");
}
