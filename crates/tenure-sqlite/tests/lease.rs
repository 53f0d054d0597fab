//! Writes under a lease to a database that checks the token.

mod support;

use futures_util::FutureExt;
use support::{Database, Journal, ledger};
use tenure::store::Memory;
use tenure::{Coordinator, ErrorKind};
use tenure_fence::{Fence, FencingToken, Seal};
use tenure_sqlite::FencedConnection;

#[tokio::test]
async fn a_lease_of_any_store_writes_through_a_fenced_connection() {
    let database = Database::new(Journal::Wal);
    let entries = FencedConnection::new(database.connect(), ledger().with_guarded_tables());
    entries.read(|connection| entries.fence().guard(connection, "entries")).unwrap();
    let tenure = Coordinator::connect(Memory::new()).await.unwrap();
    let lease = tenure.lease("billing").unwrap().acquire().await.unwrap();
    lease.fenced(&entries).seal().await.unwrap();
    let token = lease.token().get();
    let insert = |number: u64| -> tenure_sqlite::Work<'static> {
        Box::new(move |transaction| {
            let row = (token as i64, number as i64);
            transaction.execute("INSERT INTO entries VALUES (?1, ?2)", row).map(drop)
        })
    };
    lease.fenced(&entries).write(insert(1)).await.unwrap();
    let newer = FencingToken::new(lease.key().clone(), lease.token().next().unwrap()).unwrap();
    entries.seal(&newer).await.unwrap();
    let error = lease.fenced(&entries).write(insert(2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert_eq!(database.entries(), [(token, 1)]);
}

#[tokio::test]
async fn a_write_that_panics_leaves_nothing_and_the_connection_usable() {
    let database = Database::new(Journal::Rollback);
    let entries = FencedConnection::new(database.connect(), ledger());
    let token = support::token(1);
    let work: tenure_sqlite::Work<'_> = Box::new(|transaction| {
        transaction.execute("INSERT INTO entries VALUES (1, 1)", ())?;
        panic!("a bug");
    });
    let panicking = std::panic::AssertUnwindSafe(entries.write(&token, work)).catch_unwind().await;
    assert!(panicking.is_err());
    entries.seal(&support::token(2)).await.unwrap();
    assert_eq!(database.entries(), []);
}
