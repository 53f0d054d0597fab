//! Cost of a lease, in calls on the store.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::clock::Clock;
use tenure::store::memory::{GetFault, PutFault};
use tenure::{Coordinator, Denied, ErrorKind, Timing};
use tenure_store::{Purpose, Reason, StoreClock, StoreError};

use support::odd::Odd;
use support::{World, eventually, spawn};

const TTL: Duration = Duration::from_secs(15);
const SECOND: Duration = Duration::from_secs(1);

/// (reads, writes)
type Cost = (u64, u64);

async fn cost_of(world: &World, work: impl Future) -> Cost {
    let before = world.memory.calls();
    work.await;
    world.calls_since(before)
}

#[tokio::test]
async fn the_first_use_of_a_key_costs_one_read_and_two_writes() {
    let world = World::new();
    let a = world.process("a").await;
    let cost =
        cost_of(&world, async { std::mem::forget(a.lease("k").unwrap().acquire().await.unwrap()) }).await;
    assert_eq!(cost, (1, 2), "a look, the plant and the grant");
}

/// A store like a bucket, which shows whole seconds and has no watch.
fn on_whole_seconds() -> World {
    World::built(|builder| {
        builder.declare(|guarantees| (guarantees.clock_tick, guarantees.watch) = (SECOND, false))
    })
}

#[tokio::test]
async fn on_a_clock_with_whole_seconds_the_first_use_of_a_key_waits_for_the_next_one_and_reads_once_more() {
    let world = on_whole_seconds();
    let a = world.process("a").await;
    let before = world.memory.calls();
    let request = a.lease("k").unwrap();
    let (lease, waiting) = tokio::join!(request.acquire(), async {
        world.pass(SECOND).await;
        let waiting = world.calls_since(before);
        world.pass(SECOND / 50).await;
        waiting
    });
    assert_eq!(waiting, (1, 1), "a read and the plant, and no call while it waits");
    assert_eq!(world.calls_since(before), (2, 2), "one read after the tick, and the grant");
    lease.unwrap().release().await.unwrap();
    let warm =
        cost_of(&world, async { a.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap() });
    assert_eq!(warm.await, (0, 2), "without any time passing");
    let b = world.process("b").await;
    let cold = cost_of(&world, async { std::mem::forget(b.lease("k").unwrap().acquire().await.unwrap()) });
    assert_eq!(cold.await, (1, 1), "without any time passing");
}

/// The contenders of one process share what they have seen, and wait for the same tick.
#[tokio::test]
async fn many_contenders_for_a_new_key_wait_for_the_tick_without_hammering_the_store() {
    let world = on_whole_seconds();
    let a = world.process("a").await;
    let wanting: Vec<_> = (0..8).map(|_| spawn(a.lease("k").unwrap().try_acquire())).collect();
    eventually("one has planted", || world.memory.calls().puts >= 1).await;
    world.settle().await;
    let before = world.memory.calls();
    world.pass(SECOND).await;
    assert_eq!(world.calls_since(before), (0, 0), "all of them wait");
    world.pass(SECOND / 50).await;
    let answers = futures_util::future::join_all(wanting).await;
    // A lease that is dropped is released by one more write.
    let (reads, writes) = world.calls_since(before);
    assert_eq!(answers.iter().filter(|one| one.as_ref().unwrap().is_ok()).count(), 1);
    assert!(reads <= 16 && writes <= 8, "{reads} reads and {writes} writes for 8 contenders");
}

#[tokio::test]
async fn a_cold_acquire_costs_one_read_and_one_write() {
    let world = World::new();
    world.process("a").await.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    let b = world.process("b").await;
    let cost =
        cost_of(&world, async { std::mem::forget(b.lease("k").unwrap().acquire().await.unwrap()) }).await;
    assert_eq!(cost, (1, 1));
}

#[tokio::test]
async fn a_warm_acquire_a_renewal_and_a_release_cost_one_write_each() {
    for store_clock in [StoreClock::Nothing, StoreClock::Floors, StoreClock::Ages] {
        let world = World::with_store_clock(store_clock);
        let a = world.process("a").await;
        a.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
        let before = world.memory.calls();
        let lease = a.lease("k").unwrap().manual().acquire().await.unwrap();
        assert_eq!(world.calls_since(before), (0, 1), "acquire, {store_clock:?}");
        assert_eq!(
            cost_of(&world, async { lease.renew().await.unwrap() }).await,
            (0, 1),
            "renew, {store_clock:?}"
        );
        assert_eq!(
            cost_of(&world, async { lease.release().await.unwrap() }).await,
            (0, 1),
            "release, {store_clock:?}"
        );
    }
}

#[tokio::test]
async fn an_observation_older_than_a_ttl_is_read_again_before_it_raises_a_token() {
    let world = World::with_store_clock(StoreClock::Floors);
    let a = world.process("a").await;
    a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap().release().await.unwrap();
    world.pass(2 * TTL).await;
    let before = world.memory.calls();
    let _lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    assert_eq!(world.calls_since(before), (1, 1));
}

#[tokio::test]
async fn the_keeper_renews_three_times_per_ttl_and_makes_no_other_call() {
    let world = World::new();
    let _lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let before = world.memory.calls();
    world.pass(10 * TTL).await;
    let (reads, writes) = world.calls_since(before);
    assert_eq!(reads, 0);
    assert!(
        (30..=34).contains(&writes),
        "{writes} renewals in ten ttls: jitter makes them a tenth earlier at most"
    );
}

/// `tenure status --cost` computes the price from these two numbers.
#[tokio::test]
async fn a_holder_and_a_standby_cost_what_the_timing_says() {
    const LONG: Duration = TTL.saturating_mul(100);
    let timing = Timing::new(TTL).unwrap();
    let near = |counted: u64, told: u64| counted.abs_diff(told) * 100 <= told * 6;

    let world = World::built(|builder| builder.declare(|guarantees| guarantees.watch = false));
    let _lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let before = world.memory.calls();
    world.pass(LONG).await;
    let (reads, writes) = world.calls_since(before);
    let told = timing.renewals_in(LONG);
    assert!(reads == 0 && near(writes, told), "{writes} renewals, and {told} were told");

    let standby = world.process("b").await;
    let waiting = standby.lease("k").unwrap().wait(LONG).acquire();
    let before = world.memory.calls();
    let (denied, ()) = tokio::join!(waiting, world.pass(LONG));
    assert!(denied.is_err());
    let (looks, told) = (world.calls_since(before).0, timing.looks_in(LONG));
    assert!(near(looks, told), "{looks} looks, and {told} were told");
}

#[tokio::test]
async fn a_standby_reads_about_four_times_per_ttl_and_once_per_hint() {
    for watch in [false, true] {
        let reads = reads_of_a_standby(watch).await;
        let most = if watch { 50 } else { 44 };
        assert!(reads <= most, "{reads} reads in ten ttls, watch: {watch}");
    }
}

async fn reads_of_a_standby(watch: bool) -> u64 {
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.watch = watch));
    let _lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let standby = world.process("b").await;
    let waiting = standby.lease("k").unwrap().ttl(TTL).wait(10 * TTL).acquire();
    let before = world.memory.calls();
    let (denied, ()) = tokio::join!(waiting, world.pass(10 * TTL));
    assert!(denied.is_err());
    world.calls_since(before).0
}

/// A standby that reads just after each renewal counts the ttl almost from the last one. At a random phase, half of the
/// takeovers come later than 1.19 ttl after it.
#[tokio::test]
async fn a_standby_takes_over_little_more_than_one_ttl_after_the_last_renewal() {
    let mut takeovers = Vec::new();
    for round in 0..8 {
        let world = World::built(|builder| builder.declare(|guarantees| guarantees.watch = false));
        let (is_dead, renewed) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(world.clock.now())));
        let store = Odd::new(&world.memory).at_write({
            let (is_dead, renewed, clock) = (Arc::clone(&is_dead), Arc::clone(&renewed), world.clock.clone());
            move |_, _| {
                if is_dead.load(Ordering::SeqCst) {
                    return Some(StoreError::refused(Reason::Unreachable, "it is dead"));
                }
                *renewed.lock().unwrap() = clock.now();
                None
            }
        });
        let builder = Coordinator::builder().clock(Arc::new(world.clock.clone()));
        let holder = builder.connect(store).await.unwrap();
        let _lease = holder.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        world.pass(TTL * round / 8).await;
        let standby = world.process("b").await;
        let waiting = spawn(standby.lease("k").unwrap().ttl(TTL).acquire());
        world.pass(6 * TTL + TTL * round / 20).await;
        is_dead.store(true, Ordering::SeqCst);
        while !waiting.is_finished() {
            world.pass(TTL / 100).await;
        }
        drop(waiting.await.unwrap().unwrap());
        let renewed = *renewed.lock().unwrap();
        takeovers.push(world.clock.now().since(renewed).as_secs_f64() / TTL.as_secs_f64());
    }
    takeovers.sort_by(f64::total_cmp);
    assert!(takeovers[0] > 1.0 && takeovers[4] < 1.1, "{takeovers:?}");
}

#[tokio::test]
async fn a_lost_answer_to_a_renewal_costs_one_read_and_no_second_write() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().manual().acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::LoseAnswer);
    assert_eq!(cost_of(&world, async { lease.renew().await.unwrap() }).await, (1, 1));
}

#[tokio::test]
async fn a_lost_request_of_a_renewal_costs_one_read_and_is_sent_again() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().manual().acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::LoseRequest);
    assert_eq!(cost_of(&world, async { lease.renew().await.unwrap() }).await, (1, 2));
}

#[tokio::test]
async fn a_conflict_with_our_own_write_is_read_back_and_accepted() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().manual().acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::Twice);
    assert_eq!(cost_of(&world, async { lease.renew().await.unwrap() }).await, (1, 1));
    assert!(lease.check().is_ok());
}

#[tokio::test]
async fn a_throttled_renewal_is_read_back_after_a_pause() {
    for fault in [PutFault::Throttle(None), PutFault::ThrottleAfterApplying(Some(Duration::from_secs(1)))] {
        let world = World::new();
        let lease = world.process("a").await.lease("k").unwrap().manual().acquire().await.unwrap();
        world.memory.faults().next_put(fault);
        let before = world.memory.calls();
        let (renewed, ()) = tokio::join!(lease.renew(), world.pass(TTL / 2));
        renewed.unwrap();
        let (reads, writes) = world.calls_since(before);
        assert_eq!(reads, 1);
        assert_eq!(writes, if fault == PutFault::Throttle(None) { 2 } else { 1 });
    }
}

/// The keeper remembers 10,000 keys, and the keys of its leases in addition. A key without a lease makes room for
/// another.
#[tokio::test]
async fn more_than_ten_thousand_leases_of_one_process_share_one_keeper_and_only_idle_keys_are_forgotten() {
    const CROWD: u64 = 10_100;
    let world = World::new();
    let a = world.process("a").await;
    let idle = async || a.lease("idle").unwrap().acquire().await.unwrap().release().await.unwrap();
    idle().await;
    assert_eq!(cost_of(&world, idle()).await, (0, 2), "what was seen of the key is remembered");
    let acquires = (0..CROWD).map(|n| a.lease(format!("crowd/{n}")).unwrap().ttl(TTL).acquire());
    let leases: Vec<_> = futures_util::future::try_join_all(acquires).await.unwrap();
    assert_eq!(cost_of(&world, idle()).await, (1, 2), "what was seen of the key is forgotten");
    let before = world.memory.calls();
    world.clock.advance(TTL / 3);
    eventually("every lease is renewed", || world.calls_since(before).1 >= CROWD).await;
    assert!(leases.iter().all(|lease| lease.check().is_ok()));
    a.shutdown().await.unwrap();
    assert!(leases.iter().all(|lease| lease.check().is_err()));
}

/// R2 and Google Cloud Storage accept one write of an object per second.
#[tokio::test]
async fn writes_of_one_key_are_as_far_apart_as_the_write_interval() {
    const INTERVAL: Duration = Duration::from_millis(1100);
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.write_interval = INTERVAL));
    let a = world.process("a").await;
    let request = || a.lease("k").unwrap().ttl(Duration::from_secs(30)).acquire();
    // The keeper sends the plant at once, and the grant when the write interval has passed.
    let (lease, puts) = tokio::join!(request(), async {
        world.pass(INTERVAL - Duration::from_millis(1)).await;
        let early = world.memory.calls().puts;
        world.pass(Duration::from_millis(2)).await;
        (early, world.memory.calls().puts)
    });
    assert_eq!(puts, (1, 2));
    // An early release waits as well; a grant that comes after the interval is sent at once.
    let before = world.memory.calls();
    let releasing = lease.unwrap();
    let (released, ()) = tokio::join!(releasing.release(), world.pass(INTERVAL));
    released.unwrap();
    assert_eq!(world.calls_since(before), (0, 1));
    world.pass(INTERVAL).await;
    let again = request().await.unwrap();
    assert!(again.check().is_ok(), "without any time passing");
}

/// With any number of contenders, each write waits for one interval at most. The next interval counts from the last
/// write.
#[tokio::test]
async fn of_three_writers_of_one_key_two_wait_for_one_interval_and_a_later_write_waits_for_the_next() {
    const INTERVAL: Duration = Duration::from_millis(1100);
    const MOMENT: Duration = Duration::from_millis(1);
    let world = World::built(|builder| builder.declare(|guarantees| guarantees.write_interval = INTERVAL));
    let a = world.process("a").await;
    // All of them find no record, at the same moment.
    for _ in 0..3 {
        world.memory.faults().next_get(GetFault::SlowAnswer(MOMENT));
    }
    let request = || a.lease("k").unwrap().ttl(Duration::from_secs(30)).wait(10 * INTERVAL).acquire();
    let mut wanting = Vec::from([(); 3].map(|()| spawn(request())));
    eventually("all have looked", || world.memory.calls().gets == 3).await;
    world.pass(MOMENT).await;
    let at_once = world.memory.calls().puts;
    world.pass(INTERVAL - MOMENT).await;
    let early = world.memory.calls().puts;
    world.pass(MOMENT).await;
    let puts = (at_once, early, world.memory.calls().puts);
    assert_eq!(puts, (1, 1, 4), "one plant; then two conflicts, and the grant after the first");
    eventually("one is granted", || wanting.iter().any(|one| one.is_finished())).await;
    let granted = wanting.iter().position(|one| one.is_finished()).unwrap();
    let lease = wanting.swap_remove(granted).await.unwrap().unwrap();
    wanting.iter().for_each(|waiting| waiting.abort());
    let (released, puts) = tokio::join!(lease.release(), async {
        world.pass(INTERVAL - MOMENT).await;
        let early = world.memory.calls().puts;
        world.pass(MOMENT).await;
        (early, world.memory.calls().puts)
    });
    released.unwrap();
    assert!(puts.0 == 4 && puts.1 > 4, "the release comes soon after the grant: {puts:?}");
}

/// A process, and the purposes of all writes that its store has received since the last call of the function.
async fn recorded(world: &World) -> (Coordinator, impl Fn() -> Vec<(String, Purpose)>) {
    let purposes = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&purposes);
    let store = Odd::new(&world.memory).at_write(move |key, write| {
        written.lock().unwrap().push((key.as_str().to_owned(), write.purpose));
        None
    });
    let clock = Arc::new(world.clock.clone());
    let process = Coordinator::builder().clock(clock).connect(store).await.unwrap();
    (process, move || std::mem::take(&mut *purposes.lock().unwrap()))
}

#[tokio::test]
async fn the_store_learns_which_writes_of_a_lease_grant_renew_and_release() {
    let world = World::new();
    let (a, written) = recorded(&world).await;
    let lease = a.lease("k").unwrap().acquire().await.unwrap();
    let purposes = |of: &[Purpose]| of.iter().map(|one| ("k".to_owned(), *one)).collect::<Vec<_>>();
    let granted = Purpose::Grant { token: lease.token().get() };
    assert_eq!(written(), purposes(&[Purpose::Change, granted]), "the plant and the grant");
    lease.renew().await.unwrap();
    assert_eq!(written(), purposes(&[Purpose::Renewal]));
    lease.release().await.unwrap();
    assert_eq!(written(), purposes(&[Purpose::Release]));
}

#[tokio::test]
async fn a_revocation_is_a_change_and_its_acknowledgement_a_release() {
    let world = World::new();
    let (a, written) = recorded(&world).await;
    let (b, written_by_b) = recorded(&world).await;
    let lease = a.lease("k").unwrap().acquire().await.unwrap();
    written();
    let revoker = spawn(b.lease("k").unwrap().revoke("moving").acquire());
    while !lease.cancellation_token().is_cancelled() {
        world.pass(SECOND).await;
    }
    drop(lease);
    let taken = revoker.await.unwrap().unwrap();
    let granted = Purpose::Grant { token: taken.token().get() };
    let by_b: Vec<_> = written_by_b().into_iter().map(|(_, purpose)| purpose).collect();
    assert_eq!(by_b, [Purpose::Change, granted]);
    assert_eq!(written().last().unwrap().1, Purpose::Release);
}

#[tokio::test]
async fn terms_and_slots_are_grants_and_the_size_of_a_group_is_a_change() {
    let world = World::new();
    let (a, written) = recorded(&world).await;
    let term = a.election("leader").unwrap().campaign().unwrap().next().await.unwrap();
    let led = Purpose::Grant { token: term.token().get() };
    assert!(written().contains(&("leader".to_owned(), led)));
    let slot = a.slots("group", 2).unwrap().acquire().await.unwrap();
    let taken = Purpose::Grant { token: slot.token().get() };
    let (grants, others): (Vec<_>, Vec<_>) =
        written().into_iter().partition(|(_, purpose)| matches!(purpose, Purpose::Grant { .. }));
    assert_eq!(grants, [(slot.key().as_str().to_owned(), taken)]);
    assert!(others.iter().all(|(_, purpose)| *purpose == Purpose::Change), "size and plants: {others:?}");
}

#[tokio::test]
async fn a_plain_key_is_changed_renewed_and_released_and_never_granted() {
    let world = World::new();
    let (a, written) = recorded(&world).await;
    let keys = a.keys();
    keys.create_if_absent("k", "one", Some(TTL)).await.unwrap();
    keys.renew("k").await.unwrap();
    keys.release("k").await.unwrap();
    let purposes: Vec<_> = written().into_iter().map(|(_, purpose)| purpose).collect();
    assert_eq!(purposes, [Purpose::Change, Purpose::Change, Purpose::Renewal, Purpose::Release]);
}

/// A process on a store that holds back everything but renewals and releases until this many seconds have passed.
async fn on_withholding_store(world: &World, seconds: u32) -> Coordinator {
    let clock = world.clock.clone();
    let until = clock.now() + seconds * SECOND;
    let now = clock.clone();
    let store = Odd::new(&world.memory).at_write(move |_, write| {
        let after = until.since(now.now());
        let waits = !after.is_zero() && !matches!(write.purpose, Purpose::Renewal | Purpose::Release);
        waits.then(|| StoreError::withheld(after, "the server may have forgotten leases"))
    });
    Coordinator::builder().clock(Arc::new(clock)).connect(store).await.unwrap()
}

#[tokio::test]
async fn a_grant_that_the_store_withholds_is_denied_with_the_reason_and_leaves_nothing_in_flight() {
    let world = World::new();
    let a = on_withholding_store(&world, 49).await;
    let before = world.memory.calls();
    let error = a.lease("k").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held);
    assert_eq!(error.denied(), Some(&Denied::Withheld(49 * SECOND)));
    assert!(error.held().is_none(), "no holder is in the way");
    assert!(error.to_string().contains("holds back grants: wait, or try again in 49s"), "{error}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "the server may have forgotten leases");
    world.pass(TTL).await;
    assert_eq!(world.calls_since(before), (1, 0), "nothing may have landed, so nothing is read back");
}

#[tokio::test]
async fn a_waiting_contender_is_granted_once_the_store_no_longer_withholds_grants() {
    let world = World::new();
    let a = on_withholding_store(&world, 49).await;
    let before = world.memory.calls();
    let waiting = spawn(a.lease("k").unwrap().acquire());
    world.pass(48 * SECOND).await;
    assert!(!waiting.is_finished());
    let (reads, _) = world.calls_since(before);
    assert!(reads <= 2, "{reads} reads: it waits as long as the store says");
    world.pass(4 * SECOND).await;
    drop(waiting.await.unwrap().unwrap());
}

#[tokio::test]
async fn the_size_of_a_new_group_is_withheld_as_its_slots_are() {
    let world = World::new();
    let a = on_withholding_store(&world, 49).await;
    let error = a.slots("group", 2).unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held, "{error}");
    assert_eq!(error.denied(), Some(&Denied::Withheld(49 * SECOND)));
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "the server may have forgotten leases");
    let waiting = spawn(a.slots("group", 2).unwrap().acquire());
    world.pass(48 * SECOND).await;
    assert!(!waiting.is_finished());
    world.pass(TTL).await;
    drop(waiting.await.unwrap().unwrap());
}
