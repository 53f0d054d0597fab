//! A lease from acquire to release, as its holder sees it.

mod support;

use std::time::Duration;

use tenure::{ErrorKind, LeaseState, Lost};

use support::World;

const TTL: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_lease_is_acquired_used_and_released() {
    let world = World::new();
    let coordinator = world.process("a").await;
    let lease = coordinator.lease("billing/nightly").unwrap().ttl(TTL).acquire().await.unwrap();
    assert!(lease.check().is_ok());
    assert_eq!(lease.key().as_str(), "billing/nightly");
    assert_eq!(lease.run(async { 7 }).await.unwrap(), 7);
    lease.release().await.unwrap();
    assert_eq!(lease.check().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(lease.lost().await, Lost::Released);
}

#[tokio::test]
async fn release_keeps_the_token_so_the_next_grant_is_newer() {
    let world = World::new();
    let mut latest = 0;
    for name in ["a", "b", "a", "c"] {
        let lease = world.process(name).await.lease("k").unwrap().acquire().await.unwrap();
        assert!(lease.token().get() > latest);
        latest = lease.token().get();
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_second_contender_learns_who_holds_the_lease() {
    let world = World::new();
    let lease = world.process("host-a").await.lease("k").unwrap().acquire().await.unwrap();
    let error = world.process("host-b").await.lease("k").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held);
    let expected = format!(
        "lease k on memory: is held by host-a (token {}), at most 16s left: wait, or do something else",
        lease.token()
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn an_error_of_a_held_lease_carries_the_holder_the_token_and_the_time_left_without_another_read() {
    let world = World::new();
    let lease = world.process("host-a").await.lease("k").unwrap().manual().acquire().await.unwrap();
    let contender = world.process("host-b").await;
    let refused = async |wait: Duration| {
        let error = contender.lease("k").unwrap().wait(wait).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Held);
        let reads = world.memory.calls().gets;
        let held = error.held().expect("a holder is in the way");
        assert_eq!((held.holder(), held.token()), ("host-a", lease.token()));
        assert_eq!(world.memory.calls().gets, reads);
        held.remaining
    };
    let first = refused(Duration::ZERO).await;
    assert!(!first.judged, "the version was seen for the first time, and the store tells no age");
    assert!(first.at_most >= lease.remaining(), "{first:?}");
    world.pass(Duration::from_secs(5)).await;
    let second = refused(Duration::ZERO).await;
    assert!(second.judged && second.at_most <= first.at_most - Duration::from_secs(5), "{second:?}");
    assert!(second.at_most >= lease.remaining(), "never less than what the holder believes: {second:?}");
}

#[tokio::test]
async fn the_keeper_renews_for_many_ttls() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.pass(10 * TTL).await;
    assert!(lease.check().is_ok());
    assert!(lease.remaining() > TTL / 3);
}

#[tokio::test]
async fn a_holder_that_cannot_renew_stops_by_itself_and_then_another_is_granted() {
    use tenure::store::memory::PutFault;
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let other = world.process("b").await;
    let waiting = other.lease("k").unwrap().ttl(TTL).acquire();
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    let outlived = async {
        world.pass(TTL).await;
        assert_eq!(lease.lost().await, Lost::Expired);
        world.memory.faults().clear();
        world.pass(2 * TTL).await;
    };
    let (newer, ()) = tokio::join!(waiting, outlived);
    assert!(newer.unwrap().token() > lease.token());
}

#[tokio::test]
async fn the_states_are_held_then_at_risk_then_lost() {
    use futures_util::StreamExt;
    use tenure::store::memory::PutFault;
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let mut states = Box::pin(lease.states());
    assert_eq!(states.next().await, Some(LeaseState::Held));
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    let (state, ()) = tokio::join!(states.next(), world.pass(TTL / 2));
    assert_eq!(state, Some(LeaseState::AtRisk));
    let (state, ()) = tokio::join!(states.next(), world.pass(TTL));
    assert_eq!(state, Some(LeaseState::Lost(Lost::Expired)));
    assert_eq!(states.next().await, None);
}
