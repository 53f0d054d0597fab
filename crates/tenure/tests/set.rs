//! Several leases at once: all or nothing, without deadlock, and one belief that ends with the first of them.

mod file_support;
mod support;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::store::memory::PutFault;
use tenure::{Coordinator, Error, ErrorKind, Holder, LeaseSet, Lost, SetRequest};
use tenure_store::StoreClock;

use file_support::Scratch;
use support::{World, eventually, poll_times, real_pause, spawn};

const TTL: Duration = Duration::from_secs(15);

fn request(coordinator: &Coordinator, keys: &[&str]) -> SetRequest {
    coordinator.all_of(keys).unwrap().ttl(TTL)
}

/// Asserts that each key is free: another contender is granted it at once.
async fn assert_free(world: &World, keys: &[&str]) {
    let other = world.process("other").await;
    for key in keys {
        let lease = other.lease(key).unwrap().try_acquire().await.unwrap_or_else(|error| panic!("{error}"));
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_set_is_acquired_in_the_order_of_its_keys_used_and_released() {
    let world = World::new();
    let a = world.process("a").await;
    let set = request(&a, &["k/2", "k/3", "k/1"]).value("one transfer").acquire().await.unwrap();
    let keys: Vec<_> = set.leases().iter().map(|lease| lease.key().as_str()).collect();
    assert_eq!(keys, ["k/1", "k/2", "k/3"]);
    let grants: Vec<_> = set.tokens().map(|(_, token)| token).collect();
    assert_eq!(set.token("k/2"), Some(grants[1]));
    assert_eq!(set.token("k/4"), None);
    set.check().unwrap();
    assert_eq!(set.run(async { 7 }).await.unwrap(), 7);
    let first = set.leases().iter().map(|lease| lease.remaining()).min().unwrap();
    assert_eq!(set.remaining(), first);
    world.pass(10 * TTL).await;
    assert!(set.check().is_ok() && set.remaining() > TTL / 3, "the keeper renews each of them");
    assert!(format!("{set:?}").starts_with("LeaseSet(held: [Lease(k/1 on memory:, token "), "{set:?}");

    let (cancelled, lost) = (set.cancellation_token(), set.lost());
    set.release().await.unwrap();
    assert!(cancelled.is_cancelled() && set.remaining().is_zero());
    assert_eq!(lost.await.why, Lost::Released);
    let error = set.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(
        error.to_string(),
        "the set of leases k/1, k/2, k/3 of a on memory: is lost, stop acting: lease k/1: it was released"
    );
    assert_eq!(set.release().await.unwrap_err().kind(), ErrorKind::Lost, "once is enough");
    assert_free(&world, &["k/1", "k/2", "k/3"]).await;
    let value = a.record("k/3").await.unwrap().unwrap().value.clone();
    assert_eq!(&*value, "one transfer");
}

#[tokio::test]
async fn a_set_costs_what_its_leases_cost() {
    let world = World::with_store_clock(StoreClock::Floors);
    let a = world.process("a").await;
    let before = world.memory.calls();
    let set = request(&a, &["x", "y", "z"]).acquire().await.unwrap();
    assert_eq!(world.calls_since(before), (3, 6), "a look, a plant and a grant for each");
    let before = world.memory.calls();
    set.release().await.unwrap();
    assert_eq!(world.calls_since(before), (0, 3), "a vacate for each");
    let before = world.memory.calls();
    let set = request(&a, &["x", "y", "z"]).acquire().await.unwrap();
    assert_eq!(world.calls_since(before), (0, 3), "a grant for each");
    drop(set);
    world.settle().await;
    let holder = world.process("b").await.lease("z").unwrap().acquire().await.unwrap();
    let c = world.process("c").await;
    let before = world.memory.calls();
    let error = request(&c, &["x", "y", "z"]).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held);
    assert_eq!(world.calls_since(before), (3, 4), "two grants that were vacated, and a look at the third");
    drop(holder);
}

#[tokio::test]
async fn dropping_a_set_releases_all_of_it() {
    let world = World::new();
    let a = world.process("a").await;
    let token = {
        let set = request(&a, &["x", "y"]).acquire().await.unwrap();
        set.cancellation_token()
    };
    eventually("the belief ends with the set", || token.is_cancelled()).await;
    world.settle().await;
    assert_free(&world, &["x", "y"]).await;
}

#[tokio::test]
async fn no_keys_the_same_key_twice_too_many_and_hostile_names_are_refused_in_words() {
    let world = World::new();
    let a = world.process("a").await;
    let refused = |keys: &[&str]| -> Error {
        let error = a.all_of(keys).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        error
    };
    assert_eq!(refused(&[]).to_string(), "a set of leases has at least one key: name one");
    let twice = refused(&["b", "a", "b"]);
    assert_eq!(twice.to_string(), "b occurs twice in a set of leases: name each key once");
    let many: Vec<String> = (0..SetRequest::MEMBERS_MAX + 1).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(refused(&many).to_string(), "a set has at most 64 leases, not 65");
    let endless = a.all_of((0..).map(|number: u64| number.to_string())).unwrap_err();
    assert_eq!(endless.kind(), ErrorKind::Invalid);
    for hostile in ["", "/", "a//b", "../a", ".tenure/slots/g/0", "a\0b", "a\nb", &"x".repeat(2_000)] {
        refused(&["a", hostile]);
    }
    let before = world.memory.calls();
    let value = "v".repeat(100_000);
    let error = request(&a, &["x", "y"]).value(&value).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(world.calls_since(before), (0, 0), "nothing was sent");

    let full = request(&a, &many[1..]).acquire().await.unwrap();
    assert_eq!(full.leases().len(), SetRequest::MEMBERS_MAX);
    full.release().await.unwrap();
    let one = request(&a, &["x"]).acquire().await.unwrap();
    assert!(one.check().is_ok(), "a set of one is a lease");
}

#[tokio::test]
async fn if_one_is_held_elsewhere_none_is_kept_and_the_error_names_it() {
    let world = World::new();
    let (a, b) = (world.process("host-a").await, world.process("host-b").await);
    let held = b.lease("y").unwrap().ttl(TTL).acquire().await.unwrap();
    let error = request(&a, &["x", "y", "z"]).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Held);
    assert!(error.to_string().starts_with("lease y on memory: is held by host-b (token"), "{error}");
    assert_free(&world, &["x", "z"]).await;

    let waiting = request(&a, &["x", "y", "z"]).wait(2 * TTL).acquire();
    let (waited, ()) = tokio::join!(waiting, world.pass(2 * TTL + TTL / 10));
    assert_eq!(waited.unwrap_err().kind(), ErrorKind::Held);
    assert_free(&world, &["x", "z"]).await;
    held.check().unwrap();
}

#[tokio::test]
async fn a_set_waits_for_each_lease_and_keeps_the_earlier_ones() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let held = b.lease("y").unwrap().ttl(TTL).acquire().await.unwrap();
    let waiting = request(&a, &["x", "y"]).acquire();
    let releasing = async {
        world.pass(5 * TTL).await;
        let error = b.lease("x").unwrap().try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Held, "{error}");
        // The keeper pauses between two hints, and the hint of a renewal may have come just before.
        held.renew().await.unwrap();
        held.release().await.unwrap();
        world.pass(TTL / 10).await;
    };
    let (set, ()) = tokio::join!(waiting, releasing);
    set.unwrap().check().unwrap();
}

/// Counts the polls of work, and records when it is dropped.
struct Polled<'a> {
    polls: &'a AtomicU32,
    dropped: &'a AtomicBool,
}

impl Future for Polled<'_> {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.polls.fetch_add(1, Ordering::SeqCst);
        Poll::Pending
    }
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn when_one_is_lost_the_work_is_dropped_and_the_others_are_released() {
    for taken in ["x", "y", "z"] {
        let world = World::new();
        let (a, b) = (world.process("a").await, world.process("b").await);
        let set = request(&a, &["x", "y", "z"]).acquire().await.unwrap();
        let (polls, dropped) = (AtomicU32::new(0), AtomicBool::new(false));
        let work = set.run(Polled { polls: &polls, dropped: &dropped });
        let taking = async {
            world.settle().await;
            let thief = b.lease(taken).unwrap().ttl(TTL).take_now("a test").acquire().await.unwrap();
            world.pass(TTL / 2).await;
            thief
        };
        let (worked, thief) = tokio::join!(work, taking);
        let error = worked.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost);
        assert!(
            error.to_string().contains(&format!("stop acting: lease {taken}: b takes it over")),
            "{error}"
        );
        assert!(dropped.load(Ordering::SeqCst));
        let polled = polls.load(Ordering::SeqCst);
        let loss = set.lost().await;
        assert_eq!(loss.key.as_str(), taken);
        assert!(matches!(loss.why, Lost::Superseded { .. }), "{loss}");
        assert!(set.cancellation_token().is_cancelled() && set.remaining().is_zero());
        assert_eq!(set.run(async {}).await.unwrap_err().kind(), ErrorKind::Lost);
        thief.check().unwrap();
        let others: Vec<_> = ["x", "y", "z"].into_iter().filter(|key| *key != taken).collect();
        assert_free(&world, &others).await;
        assert_eq!(polls.load(Ordering::SeqCst), polled, "it is never polled again");
    }
}

/// The keeper cannot reach the store: the deadline of the first lease ends the set, whatever the others say.
#[tokio::test]
async fn without_renewals_the_set_ends_at_the_first_deadline_by_the_clock() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let held = b.lease("y").unwrap().ttl(TTL).acquire().await.unwrap();
    let waiting = request(&a, &["x", "y"]).acquire();
    let (set, ()) = tokio::join!(waiting, async {
        // In the middle between two renewals of the first lease.
        world.pass(TTL / 6).await;
        held.release().await.unwrap();
        world.pass(TTL / 100).await;
    });
    let set = set.unwrap();
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    let (first, second) = (set.leases()[0].remaining(), set.leases()[1].remaining());
    assert!(first < second, "{first:?} and {second:?}");
    assert_eq!(set.remaining(), first);
    // No keeper acts: only the clock tells.
    world.clock.advance(first);
    assert!(set.check().is_err() && set.remaining().is_zero());
    assert_eq!((set.lost().await.key.as_str(), set.lost().await.why), ("x", Lost::Expired));
    assert!(set.cancellation_token().is_cancelled());
}

#[tokio::test]
async fn a_strict_set_ends_at_the_first_failed_renewal_of_any_lease() {
    let world = World::new();
    let a = world.process("a").await;
    let set = request(&a, &["x", "y"]).strict().acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::LoseRequest);
    let (loss, ()) = tokio::join!(set.lost(), world.pass(TTL / 2));
    assert_eq!(loss.why, Lost::RenewalFailed);
    world.settle().await;
    assert!(set.leases().iter().all(|lease| lease.check().is_err()));
}

#[tokio::test]
async fn a_lease_lost_while_a_later_one_is_awaited_releases_all_and_the_set_begins_again() {
    let world = World::new();
    let (a, b, c) = (world.process("a").await, world.process("b").await, world.process("c").await);
    let held = b.lease("z").unwrap().ttl(TTL).acquire().await.unwrap();
    let waiting = spawn(request(&a, &["x", "y", "z"]).acquire());
    eventually("it holds the first two", || world.memory.calls().puts >= 6).await;
    world.settle().await;
    let thief = c.lease("x").unwrap().ttl(TTL).take_now("a test").acquire().await.unwrap();
    world.pass(TTL / 2).await;
    assert_free(&world, &["y"]).await;
    assert!(!waiting.is_finished(), "it begins again, and waits for the first");
    held.release().await.unwrap();
    thief.release().await.unwrap();
    world.pass(TTL).await;
    let set = waiting.await.unwrap().unwrap();
    assert!(set.token("x") > Some(thief.token()));
    set.check().unwrap();
}

/// The first lease is taken over, and the release of the second takes until after the limit.
#[tokio::test]
async fn a_set_that_has_no_time_to_begin_again_says_which_lease_it_lost() {
    let world = World::new();
    let (a, b, c) = (world.process("a").await, world.process("b").await, world.process("c").await);
    let held = b.lease("z").unwrap().ttl(TTL).acquire().await.unwrap();
    let waiting = spawn(request(&a, &["x", "y", "z"]).wait(TTL * 2 / 3).acquire());
    eventually("it holds the first two", || world.memory.calls().puts >= 6).await;
    world.settle().await;
    let thief = c.lease("x").unwrap().ttl(TTL).take_now("a test").acquire().await.unwrap();
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    world.pass(2 * TTL).await;
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(
        error.to_string(),
        "the set of leases x, y, z on memory: was not granted, and nothing is held: lease x was lost while the others \
         were being acquired. Try again"
    );
    drop((held, thief));
}

#[tokio::test]
async fn an_acquire_dropped_at_any_poll_leaves_nothing_that_lasts() {
    for polls in 0..10 {
        for fault in [None, Some(PutFault::LoseAnswer), Some(PutFault::LoseRequest)] {
            let world = World::new();
            let a = world.process("a").await;
            if let Some(fault) = fault {
                world.memory.faults().next_put(PutFault::SlowAnswer(Duration::ZERO));
                world.memory.faults().next_put(PutFault::SlowAnswer(Duration::ZERO));
                world.memory.faults().next_put(fault);
            }
            drop(poll_times(&world, request(&a, &["x", "y", "z"]).acquire(), polls).await);
            let b = world.process("b").await;
            let limit = TTL + TTL / 10;
            let next = request(&b, &["z", "y", "x"]).wait(limit).acquire();
            let (set, ()) = tokio::join!(next, world.pass(limit));
            set.unwrap_or_else(|error| panic!("{polls} polls, {fault:?}: {error}")).check().unwrap();
        }
    }
}

#[tokio::test]
async fn a_release_dropped_after_its_first_poll_goes_on_and_may_come_from_inside_the_work() {
    let world = World::new();
    let a = world.process("a").await;
    let set = request(&a, &["x", "y"]).acquire().await.unwrap();
    drop(set.release());
    set.check().expect("a release that was never polled has not begun");
    {
        let mut release = pin!(set.release());
        // The keeper may have vacated both leases before this poll returns.
        let _ = release.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(set.check().is_err(), "the belief ends at the first poll");
    }
    world.settle().await;
    assert_free(&world, &["x", "y"]).await;

    let set = request(&a, &["x", "y"]).acquire().await.unwrap();
    let released = set.run(async { set.release().await }).await;
    assert_eq!(released.unwrap_err().kind(), ErrorKind::Lost, "the work is dropped first");
    world.settle().await;
    assert_free(&world, &["x", "y"]).await;
}

#[tokio::test]
async fn a_shutdown_ends_the_set() {
    let world = World::new();
    let a = world.process("a").await;
    let set = request(&a, &["x", "y"]).acquire().await.unwrap();
    let lost = set.lost();
    a.shutdown().await.unwrap();
    assert_eq!(lost.await.why, Lost::Released);
    assert_eq!(request(&a, &["x", "y"]).acquire().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_free(&world, &["x", "y"]).await;
}

#[tokio::test]
async fn a_release_that_cannot_reach_the_store_says_so_and_the_leases_lapse() {
    let world = World::new();
    let a = world.process("a").await;
    let set = request(&a, &["x", "y"]).acquire().await.unwrap();
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    let (released, ()) = tokio::join!(set.release(), world.pass(2 * TTL));
    let error = released.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.to_string(), "2 of the 2 leases of a set could not be vacated, and have lapsed");
}

// ── without deadlock ────────────────────────────────────────────────────────────────────────────────────────────────

/// Sets that overlap, each written in another order.
const OVERLAPPING: [&[&str]; 4] = [&["a", "b", "c"], &["c", "b"], &["b", "a"], &["c", "a"]];

/// Every contender acquires its set `rounds` times, and counts itself in for each key while it holds it.
async fn contend(coordinators: Vec<Coordinator>, rounds: usize) {
    let inside: Arc<[AtomicU32; 3]> = Arc::default();
    let contenders: Vec<_> = coordinators
        .into_iter()
        .zip(OVERLAPPING.iter().cycle())
        .map(|(coordinator, keys)| {
            let inside = Arc::clone(&inside);
            spawn(async move {
                for _ in 0..rounds {
                    let set: LeaseSet = coordinator.all_of(*keys).unwrap().acquire().await.unwrap();
                    let of = |key: &&str| &inside[usize::from(key.as_bytes()[0] - b'a')];
                    for key in *keys {
                        assert_eq!(of(key).fetch_add(1, Ordering::SeqCst), 0, "two holders of {key}");
                    }
                    tokio::task::yield_now().await;
                    set.check().unwrap();
                    for key in *keys {
                        of(key).fetch_sub(1, Ordering::SeqCst);
                    }
                    set.release().await.unwrap();
                }
            })
        })
        .collect();
    for contender in contenders {
        contender.await.unwrap();
    }
}

/// A deadlock would last for ever; a round takes milliseconds.
async fn bounded(contending: impl Future<Output = ()>) {
    let limit = BootClock.now() + Duration::from_secs(60);
    tokio::select! {
        () = contending => {}
        () = BootClock.sleep_until(limit) => panic!("the contenders wait for each other"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_of_overlapping_sets_in_opposite_orders_never_wait_for_each_other_in_memory() {
    let world = World::with_store_clock(StoreClock::Ages);
    let mut coordinators = Vec::new();
    for name in ["a", "b", "c", "d"] {
        coordinators.push(world.process(name).await);
    }
    // A contender that lost a race pauses for a moment before its next attempt.
    let passing = async {
        loop {
            real_pause(Duration::from_millis(1)).await;
            world.clock.advance(Duration::from_millis(2));
        }
    };
    tokio::select! {
        () = bounded(contend(coordinators, 50)) => {}
        () = passing => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_of_overlapping_sets_in_opposite_orders_never_wait_for_each_other_in_a_directory() {
    let scratch = Scratch::new("set");
    let mut coordinators = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let holder = Holder::new(name).unwrap();
        coordinators.push(Coordinator::builder().holder(holder).connect(scratch.store()).await.unwrap());
    }
    bounded(contend(coordinators, 10)).await;
}

#[tokio::test]
async fn in_a_directory_the_loss_of_one_lease_releases_the_other() {
    let scratch = Scratch::new("set-lost");
    let a = Coordinator::connect(scratch.store()).await.unwrap();
    let b = Coordinator::connect(scratch.store()).await.unwrap();
    let set = a.all_of(["x", "y"]).unwrap().ttl(Duration::from_secs(3)).acquire().await.unwrap();
    let thief = b.lease("y").unwrap().revoke("a test").acquire().await.unwrap();
    assert_eq!(set.lost().await.key.as_str(), "y");
    let other = b.lease("x").unwrap().wait(TTL).acquire().await.unwrap();
    thief.check().unwrap();
    other.check().unwrap();
}
