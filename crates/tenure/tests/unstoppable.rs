//! Work that its holder cannot stop: the record says so, stealers receive an error, and the holder keeps the record
//! until the work has ended.

mod support;

use std::sync::Arc;
use std::time::Duration;

use tenure::record::{self, Record, State};
use tenure::store::memory::PutFault;
use tenure::{Coordinator, ErrorKind, Key, Lease, Lost, WorkGuard};

use support::{World, eventually, spawn};

const TTL: Duration = Duration::from_secs(15);
const WHY: &str = "process 4711 (sudo) runs as another user";

fn record_of(world: &World) -> Record {
    let bytes = world.memory.contents(&Key::parse("k").unwrap()).expect("there is a record");
    record::decode(&bytes).expect("it is one of ours")
}

async fn held(world: &World) -> (Lease, WorkGuard) {
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let acting = lease.work_guard().unwrap();
    (lease, acting)
}

fn is_revoked(world: &World) -> bool {
    matches!(record_of(world).state, State::Revoked(_))
}

/// A stealer that waits, and the task that returns its lease.
async fn steals(world: &World) -> (Coordinator, tokio::task::JoinHandle<Result<Lease, tenure::Error>>) {
    let thief = world.process("thief").await;
    let request = thief.lease("k").unwrap().ttl(TTL).revoke("maintenance");
    let stealing = spawn(request.acquire());
    (thief, stealing)
}

#[tokio::test]
async fn a_stealer_learns_that_the_work_cannot_be_stopped_and_revokes_nothing() {
    let world = World::new();
    let (lease, acting) = held(&world).await;
    acting.cannot_stop(WHY);
    acting.cannot_stop("another reason");
    eventually("the record says so", || record_of(&world).cannot_stop().is_some()).await;
    assert_eq!(&**record_of(&world).cannot_stop().unwrap(), WHY, "the first reason stays");
    let before = record_of(&world);
    let (_thief, stealing) = steals(&world).await;
    let error = stealing.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held);
    let token = format!("is held by a (token {})", before.token);
    for words in ["lease k on memory:", &token, WHY, "Stop that work"] {
        assert!(error.to_string().contains(words), "{error} lacks {words:?}");
    }
    assert_eq!(record_of(&world).nonce, before.nonce, "nothing was written");
    lease.check().expect("it is held as before");
}

#[tokio::test]
async fn a_holder_that_was_revoked_before_it_knew_keeps_the_record_until_its_work_has_ended() {
    let world = World::new();
    let (lease, acting) = held(&world).await;
    let (_thief, mut stealing) = steals(&world).await;
    eventually("it is revoked", || is_revoked(&world)).await;
    world.pass(TTL / 3).await;
    assert!(matches!(lease.lost().await, Lost::Revoked { .. }));
    acting.cannot_stop(WHY);
    let sequence = record_of(&world).sequence;
    for _ in 0..6 {
        world.pass(TTL).await;
        assert!(is_revoked(&world), "{:?}", record_of(&world));
        assert!(!stealing.is_finished(), "the stealer was granted while the work went on");
        assert!(lease.check().is_err(), "belief never comes back");
    }
    assert!(record_of(&world).sequence > sequence + 12, "it was renewed");
    let kept = record_of(&world);
    assert_eq!(kept.holders_nonce(), kept.nonce, "the witness lists the nonce of the renewal");
    drop(acting);
    world.pass(TTL / 3).await;
    let granted = (&mut stealing).await.unwrap().expect("the next one is granted");
    assert!(granted.token() > lease.token());
    assert_eq!(record_of(&world).cannot_stop(), None, "the next term says nothing of the kind");
}

#[tokio::test]
async fn an_expired_term_is_kept_too_even_if_cannot_stop_is_declared_after_the_expiry() {
    for late in [false, true] {
        let world = World::new();
        let (lease, acting) = held(&world).await;
        world.memory.faults().every_put(Some(PutFault::LoseRequest));
        if !late {
            acting.cannot_stop(WHY);
        }
        world.pass(TTL * 2).await;
        assert_eq!(lease.lost().await, Lost::Expired);
        if late {
            acting.cannot_stop(WHY);
        }
        world.memory.faults().every_put(None);
        world.pass(TTL).await;
        assert_eq!(record_of(&world).state, State::Held);
        assert_eq!(record_of(&world).token, lease.token());
        let other = world.process("b").await;
        let contending = other.lease("k").unwrap().ttl(TTL).wait(TTL * 3);
        let contending = spawn(contending.acquire());
        world.pass(TTL * 3).await;
        assert_eq!(contending.await.unwrap().unwrap_err().kind(), ErrorKind::Held, "late: {late}");
        assert!(lease.check().is_err());
        drop(acting);
        eventually("it is vacated", || record_of(&world).state == State::Vacant).await;
        assert_eq!(record_of(&world).cannot_stop(), None);
    }
}

#[tokio::test]
async fn a_strict_lease_that_was_lost_by_one_failed_renewal_is_kept_too() {
    let world = World::new();
    let a = world.process("a").await;
    let lease = a.lease("k").unwrap().ttl(TTL).strict().acquire().await.unwrap();
    let acting = lease.work_guard().unwrap();
    world.memory.faults().next_put(PutFault::LoseAnswer);
    world.pass(TTL / 2).await;
    assert_eq!(lease.lost().await, Lost::RenewalFailed);
    acting.cannot_stop(WHY);
    world.pass(TTL * 3).await;
    let kept = record_of(&world);
    assert!(kept.cannot_stop().is_some() && kept.sequence > 8, "{kept:?}");
    assert!(lease.check().is_err());
    drop(acting);
    eventually("it is vacated", || record_of(&world).state == State::Vacant).await;
}

#[tokio::test]
async fn a_record_of_another_holder_is_not_kept() {
    let world = World::new();
    let (lease, acting) = held(&world).await;
    let other = world.process("b").await;
    let taken = other.lease("k").unwrap().ttl(TTL).take_now("hurry").acquire().await.unwrap();
    acting.cannot_stop(WHY);
    world.pass(TTL * 2).await;
    assert!(matches!(lease.lost().await, Lost::Superseded { .. }));
    taken.check().expect("the other holds it");
    assert_eq!((record_of(&world).token, record_of(&world).cannot_stop()), (taken.token(), None));
}

#[tokio::test]
async fn releasing_waits_for_work_that_cannot_be_stopped_however_long_it_takes() {
    let world = World::new();
    let (lease, acting) = held(&world).await;
    acting.cannot_stop(WHY);
    let lease = Arc::new(lease);
    let releasing = spawn({
        let lease = Arc::clone(&lease);
        async move { lease.release().await }
    });
    eventually("belief has ended", || lease.check().is_err()).await;
    world.pass(TTL * 5).await;
    assert_eq!(record_of(&world).state, State::Held);
    assert!(!releasing.is_finished());
    drop(acting);
    releasing.await.unwrap().expect("it is released in order");
    assert_eq!(record_of(&world).state, State::Vacant);
}

#[tokio::test]
async fn a_reason_that_no_record_could_carry_is_cut_to_fit() {
    let world = World::new();
    let (lease, acting) = held(&world).await;
    acting.cannot_stop(&format!("a\nb\u{1b}[2J{}", "é".repeat(300)));
    eventually("the record says so", || record_of(&world).cannot_stop().is_some()).await;
    let record = record_of(&world);
    let said = record.cannot_stop().unwrap();
    assert!(said.starts_with("a b [2Jé") && said.len() <= 200, "{said}");
    lease.check().expect("the keeper lives");
}
