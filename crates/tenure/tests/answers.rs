//! Every answer of a store to every kind of write, and the reaction of the lease.

mod support;

use std::time::Duration;

use tenure::store::memory::{GetFault, PutFault};
use tenure::{ErrorKind, Key, Lost, record};
use tenure_store::{Reason, StoreClock};

use support::{World, spawn};

const TTL: Duration = Duration::from_secs(15);

/// Every answer except success.
const PUT_FAULTS: [PutFault; 11] = [
    PutFault::LoseRequest,
    PutFault::LoseAnswer,
    PutFault::Late,
    PutFault::Twice,
    PutFault::Refuse(Reason::Unreachable),
    PutFault::Throttle(None),
    PutFault::Throttle(Some(Duration::from_secs(1))),
    PutFault::ThrottleAfterApplying(None),
    PutFault::ThrottleLate(None),
    PutFault::Hang,
    PutFault::HangAfterApplying,
];

fn key() -> Key {
    Key::parse("k").unwrap()
}

fn record_of(world: &World) -> record::Record {
    record::decode(&world.memory.contents(&key()).expect("there is a record")).expect("it is one of ours")
}

#[tokio::test]
async fn no_single_fault_of_any_kind_costs_a_grant() {
    for fault in PUT_FAULTS {
        // The first write is the plant, the second the grant.
        for which in 0..2 {
            let world = World::new();
            let a = world.process("a").await;
            let faults = world.memory.faults();
            if which == 1 {
                faults.next_put(PutFault::SlowAnswer(Duration::from_millis(1)));
            }
            faults.next_put(fault);
            let (lease, ()) = tokio::join!(a.lease("k").unwrap().ttl(TTL).acquire(), async {
                world.pass(TTL / 2).await;
                faults.deliver_late();
                world.pass(2 * TTL).await;
            });
            let lease = lease.unwrap_or_else(|error| panic!("{fault:?} at write {which}: {error}"));
            assert!(lease.check().is_ok(), "{fault:?} at write {which}");
            assert_eq!(record_of(&world).token, lease.token(), "{fault:?} at write {which}");
        }
    }
}

#[tokio::test]
async fn no_single_fault_of_any_kind_costs_a_healthy_term() {
    for fault in PUT_FAULTS {
        let world = World::new();
        let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        world.memory.faults().next_put(fault);
        world.pass(TTL / 2).await;
        world.memory.faults().deliver_late();
        world.pass(3 * TTL).await;
        assert!(lease.check().is_ok(), "{fault:?}: {:?}", lease.check());
    }
}

#[tokio::test]
async fn no_single_fault_of_any_kind_prevents_a_release() {
    for fault in PUT_FAULTS {
        let world = World::new();
        let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        world.memory.faults().next_put(fault);
        let (released, ()) = tokio::join!(lease.release(), world.pass(TTL / 2));
        released.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(record_of(&world).state, record::State::Vacant, "{fault:?}");
        let next = world.process("b").await.lease("k").unwrap().try_acquire().await.unwrap();
        world.memory.faults().deliver_late();
        world.pass(TTL).await;
        assert!(next.check().is_ok(), "{fault:?}: a late vacate of an earlier term ended the next one");
    }
}

#[tokio::test]
async fn a_lease_survives_an_outage_as_long_as_the_timing_promises() {
    let timing = tenure::Timing::new(TTL).unwrap();
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().timing(timing).acquire().await.unwrap();
    world.pass(timing.period() * 9 / 10).await;
    world.memory.faults().every_put(Some(PutFault::Hang));
    world.memory.faults().every_get(Some(GetFault::Hang));
    world.pass(timing.rides_out()).await;
    world.memory.faults().clear();
    world.pass(TTL).await;
    assert!(lease.check().is_ok());
}

#[tokio::test]
async fn a_renewal_that_lands_after_the_deadline_revives_nothing_and_is_vacated() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    world.pass(TTL * 8 / 10).await;
    world.memory.faults().every_put(Some(PutFault::Late));
    world.memory.faults().every_get(Some(GetFault::Hang));
    let (renewed, ()) = tokio::join!(lease.renew(), async {
        world.pass(TTL / 4).await;
        world.memory.faults().clear();
        world.memory.faults().deliver_late();
        world.pass(TTL / 4).await;
    });
    assert_eq!(renewed.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(lease.lost().await, Lost::Expired);
    assert_eq!(record_of(&world).state, record::State::Vacant, "what landed is vacated");
}

#[tokio::test]
async fn a_strict_lease_ends_at_the_first_failed_renewal() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).strict().acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::LoseAnswer);
    world.pass(TTL / 2).await;
    assert_eq!(lease.lost().await, Lost::RenewalFailed);
}

#[tokio::test]
async fn a_deleted_record_ends_the_term_and_the_next_token_is_still_greater() {
    let world = World::with_store_clock(StoreClock::Floors);
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    assert!(world.memory.delete(&key()));
    world.pass(TTL / 2).await;
    assert_eq!(lease.lost().await, Lost::Deleted);
    let stranger = world.process("b").await.lease("k").unwrap().acquire().await.unwrap();
    assert!(stranger.token() > lease.token());
}

/// A bucket shows whole seconds, and an operator deletes the record within one. Each process is a new one, which has
/// seen no token.
#[tokio::test]
async fn a_record_that_is_deleted_within_a_tick_of_the_stores_clock_repeats_no_token() {
    const TICK: Duration = Duration::from_secs(1);
    // The fault of the plant: its answer is lost, or a balancer sends it twice.
    for fault in [None, Some(PutFault::LoseAnswer), Some(PutFault::Twice), Some(PutFault::LoseRequest)] {
        let world = World::built(|builder| builder.declare(|guarantees| guarantees.clock_tick = TICK));
        let mut latest = None;
        for round in 0..6 {
            let process = world.process("another one each time").await;
            if let Some(fault) = fault {
                world.memory.faults().next_put(fault);
            }
            // Time passes only until the lease is granted.
            let wanting = spawn(process.lease("k").unwrap().ttl(TTL).acquire());
            world.settle().await;
            while !wanting.is_finished() {
                world.pass(TICK / 5).await;
            }
            let lease = wanting.await.unwrap().unwrap();
            assert!(Some(lease.token()) > latest, "{fault:?}, round {round}: {} again", lease.token());
            lease.release().await.unwrap();
            // A second grant within the same tick is one above the clock.
            let lease = process.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
            latest = Some(lease.token());
            lease.release().await.unwrap();
            assert!(world.memory.delete(&key()));
        }
    }
}

/// The clock of memory and of files counts writes.
#[tokio::test]
async fn a_clock_that_counts_writes_needs_no_wait_after_a_deletion() {
    let world = World::new();
    let mut latest = None;
    for _ in 0..6 {
        let lease = world.process("another one each time").await.lease("k").unwrap().acquire().await.unwrap();
        assert!(Some(lease.token()) > latest, "{} after {latest:?}, and no time has passed", lease.token());
        latest = Some(lease.token());
        lease.release().await.unwrap();
        assert!(world.memory.delete(&key()));
    }
}

#[tokio::test]
async fn without_a_store_clock_a_token_that_went_back_is_corruption_and_nothing_is_granted() {
    let world = World::with_store_clock(StoreClock::Nothing);
    let a = world.process("a").await;
    let early = world.memory.snapshot();
    a.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    a.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    world.pass(Duration::from_millis(1)).await;
    world.memory.restore(&early);
    // The cached version is gone. Tenure reads the record back after the conflict, and sees that the token went back.
    let error = a.lease("k").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("token 2 was seen before"), "{error}");
    assert_eq!(world.memory.contents(&key()), None, "nothing was overwritten");
}

#[tokio::test]
async fn with_a_store_clock_tokens_grow_across_a_restore() {
    let world = World::with_store_clock(StoreClock::Floors);
    let a = world.process("a").await;
    a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap().release().await.unwrap();
    let early = world.memory.snapshot();
    world.pass(3 * TTL).await;
    let held = world.process("b").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let highest = held.token();
    held.release().await.unwrap();
    world.pass(Duration::from_millis(1)).await;
    world.memory.restore(&early);
    for name in ["a", "c"] {
        let process = if name == "a" { a.clone() } else { world.process(name).await };
        let lease = process.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        assert!(lease.token() > highest, "{name}");
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_holder_whose_store_was_restored_stops_and_reports_it() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let early = world.memory.snapshot();
    world.pass(TTL / 2).await;
    world.memory.restore(&early);
    world.pass(TTL / 2).await;
    let lost = lease.lost().await;
    assert!(lost.to_string().contains("an earlier record is back"), "{lost}");
}

#[tokio::test]
async fn no_caller_sees_an_older_token_after_a_newer_one() {
    let world = World::new();
    let a = world.process("a").await;
    a.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    let early = world.memory.snapshot();
    world.pass(TTL).await;
    a.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    let newer = a.record("k").await.unwrap().unwrap().token;
    world.memory.restore(&early);
    let error = a.record("k").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let lease = a.lease("k").unwrap().acquire().await.unwrap();
    assert!(a.record("k").await.unwrap().unwrap().token > newer);
    drop(lease);
}

#[tokio::test]
async fn a_revoked_holder_stops_acknowledges_and_learns_who_and_why() {
    let world = World::new();
    let old = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let b = world.process("b").await;
    let request = b.lease("k").unwrap().ttl(TTL).revoke("maintenance tonight");
    let (new, ()) = tokio::join!(request.acquire(), world.pass(TTL * 2 / 3));
    let new = new.unwrap();
    assert!(new.token() > old.token());
    let why = Lost::Revoked { by: "b".into(), because: "maintenance tonight".into() };
    assert_eq!(old.lost().await, why);
    let history = record_of(&world).history;
    assert!(matches!(&history.last().unwrap().end, record::End::Revoked { by, .. } if &**by == "b"));
}

#[tokio::test]
async fn the_value_stays_when_the_lease_is_released() {
    let world = World::new();
    let a = world.process("a").await;
    a.lease("k").unwrap().value("checkpoint 17").acquire().await.unwrap().release().await.unwrap();
    let record = a.record("k").await.unwrap().unwrap();
    assert_eq!((&*record.value, record.holder.is_none()), ("checkpoint 17", true));
    let lease = world.process("b").await.lease("k").unwrap().acquire().await.unwrap();
    assert_eq!(&*a.record("k").await.unwrap().unwrap().value, "checkpoint 17");
    assert_eq!(a.holders(&tenure::Prefix::all()).await.unwrap().len(), 1);
    drop(lease);
}
