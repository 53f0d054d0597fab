//! Futures are dropped at every poll. At worst this leaves one unused grant, which is gone after one ttl.

mod support;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tenure::store::Memory;
use tenure::store::memory::PutFault;
use tenure::{Coordinator, Lease};
use tenure_store::StoreError;

use support::{World, eventually, poll_times};

const TTL: Duration = Duration::from_secs(15);

/// Asserts that another contender is granted within one ttl of its own first read, with a greater token.
async fn assert_free_within_a_ttl(world: &World, least: u64) -> Lease {
    let b = world.process("b").await;
    let limit = TTL + TTL / 10;
    let (lease, ()) = tokio::join!(b.lease("k").unwrap().ttl(TTL).wait(limit).acquire(), world.pass(limit));
    let lease = lease.expect("it is gone after one ttl");
    assert!(lease.token().get() > least);
    lease
}

#[tokio::test]
async fn an_acquire_dropped_at_any_poll_leaves_nothing_that_lasts() {
    let faults = [
        None,
        Some(PutFault::LoseAnswer),
        Some(PutFault::LoseRequest),
        Some(PutFault::Late),
        Some(PutFault::Hang),
        Some(PutFault::HangAfterApplying),
        Some(PutFault::ThrottleAfterApplying(None)),
    ];
    for fault in faults {
        for at in 0..2 {
            for polls in 0..5 {
                let world = World::new();
                let a = world.process("a").await;
                if let Some(fault) = fault {
                    if at == 1 {
                        world.memory.faults().next_put(PutFault::SlowAnswer(Duration::ZERO));
                    }
                    world.memory.faults().next_put(fault);
                }
                drop(poll_times(&world, a.lease("k").unwrap().ttl(TTL).acquire(), polls).await);
                world.memory.faults().deliver_late();
                drop(assert_free_within_a_ttl(&world, 0).await);
            }
        }
    }
}

#[tokio::test]
async fn a_waiting_acquire_dropped_at_any_poll_never_takes_the_lease() {
    for polls in 0..6 {
        let world = World::new();
        let held = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        let b = world.process("b").await;
        assert!(poll_times(&world, b.lease("k").unwrap().ttl(TTL).acquire(), polls).await.is_none());
        held.release().await.unwrap();
        world.pass(2 * TTL).await;
        assert!(a_third_one_gets_it_at_once(&world).await);
    }
}

async fn a_third_one_gets_it_at_once(world: &World) -> bool {
    world.process("c").await.lease("k").unwrap().ttl(TTL).try_acquire().await.is_ok()
}

#[tokio::test]
async fn a_release_dropped_at_any_poll_continues_without_its_future() {
    for polls in 1..4 {
        let world = World::new();
        let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        let token = lease.token().get();
        drop(poll_times(&world, lease.release(), polls).await);
        assert!(lease.check().is_err(), "belief ends at the first poll");
        std::mem::forget(lease);
        world.settle().await;
        assert!(a_third_one_gets_it_at_once(&world).await);
        assert!(token > 0);
    }
}

#[tokio::test]
async fn a_release_that_was_never_polled_has_not_begun() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    drop(lease.release());
    assert!(lease.check().is_ok());
}

#[tokio::test]
async fn a_renewal_dropped_at_any_poll_neither_ends_nor_endangers_the_lease() {
    for fault in [None, Some(PutFault::LoseAnswer), Some(PutFault::LoseRequest)] {
        for polls in 0..4 {
            let world = World::new();
            let lease =
                world.process("a").await.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
            if let Some(fault) = fault {
                world.memory.faults().next_put(fault);
            }
            drop(poll_times(&world, lease.renew(), polls).await);
            assert!(lease.check().is_ok());
            lease.renew().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_release_does_not_wait_for_work_dropped_at_any_poll() {
    for polls in 0..3 {
        let world = World::new();
        let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        assert!(poll_times(&world, lease.run(std::future::pending::<()>()), polls).await.is_none());
        lease.release().await.unwrap();
    }
}

/// A caller with a shorter limit than the library's must not leave a thread behind with each attempt.
#[tokio::test]
async fn a_connect_that_is_dropped_stops_connecting() {
    let world = World::new();
    let alive = Arc::new(());
    let connecting = Arc::clone(&alive);
    let connect = Coordinator::builder().connect_with(move || async move {
        let _connecting = connecting;
        pending::<Result<Memory, StoreError>>().await
    });
    assert!(poll_times(&world, connect, 3).await.is_none());
    eventually("the keeper stops connecting", || Arc::strong_count(&alive) == 1).await;
}
