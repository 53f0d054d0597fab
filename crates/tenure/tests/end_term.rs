//! Ending the term of another holder without acquiring its lease.

mod support;

use std::sync::Arc;
use std::time::Duration;

use tenure::record::{End, Record};
use tenure::{Coordinator, ErrorKind, Lost};

use support::{World, spawn};

const TTL: Duration = Duration::from_secs(15);

async fn record_of(coordinator: &Coordinator) -> Arc<Record> {
    coordinator.record("k").await.unwrap().expect("there is a record")
}

#[tokio::test]
async fn a_holder_that_is_asked_to_release_loses_its_term_and_the_lease_is_free_afterwards() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let record = record_of(&b).await;
    let request = b.lease("k").unwrap();
    let ending = spawn({
        let record = Arc::clone(&record);
        async move { request.end_term(&record, "the node is drained").await }
    });
    world.pass(TTL / 3).await;
    assert!(matches!(lease.lost().await, Lost::Revoked { .. }));
    ending.await.unwrap().unwrap();
    let after = record_of(&b).await;
    assert_eq!((after.is_held(), after.token), (false, record.token), "nothing was granted");
    let end = End::Revoked { by: "b".into(), because: "the node is drained".into() };
    assert_eq!(after.history[0].end, end);
    // The same record again: its term is over.
    b.lease("k").unwrap().end_term(&record, "again").await.unwrap();
    let next = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    b.lease("k").unwrap().end_term(&record, "again").await.unwrap();
    next.check().expect("a later term is left alone");
}

#[tokio::test]
async fn a_wait_that_ends_before_the_term_says_that_the_lease_is_held() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _lease = a.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    let record = record_of(&b).await;
    let request = b.lease("k").unwrap().wait(TTL / 5);
    let ending = spawn({
        let record = Arc::clone(&record);
        async move { request.end_term(&record, "soon").await }
    });
    world.pass(TTL / 4).await;
    let error = ending.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held, "{error}");
    for reason in ["", " ", "two\nlines"] {
        let error = b.lease("k").unwrap().end_term(&record, reason).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}
