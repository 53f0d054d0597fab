//! A watch reports the changes of keys, in order, whatever the store does.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use tenure::record::End;
use tenure::store::memory::{GetFault, MemoryBuilder};
use tenure::{ChangeKind, Coordinator, ErrorKind, Key, Lease, Prefix, Standing, Watch, WatchEvent};
use tenure_store::{Reason, Store, StoreClock, StoreError};

use support::odd::Odd;
use support::{World, eventually};

const TTL: Duration = Duration::from_secs(15);

/// Interval between reads of a free key, and between listings of the keys.
const SLOW: Duration = Duration::from_secs(10);

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/../tenure-core/tests/fixtures/records/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

fn watch(coordinator: &Coordinator, prefix: &str) -> Watch {
    coordinator.watch(&Prefix::parse(prefix).unwrap())
}

async fn hold(coordinator: &Coordinator, name: &str) -> Lease {
    coordinator.lease(name).unwrap().ttl(TTL).manual().acquire().await.unwrap()
}

/// A store that gives no hints.
fn silent(builder: MemoryBuilder) -> MemoryBuilder {
    builder.declare(|guarantees| guarantees.watch = false)
}

/// The changes that the watch reports during this time, one line for each.
async fn told(world: &World, watch: &mut Watch, span: Duration) -> Vec<String> {
    // The first poll starts the watch.
    let mut lines: Vec<_> =
        watch.next().now_or_never().into_iter().flatten().map(|event| line(&event)).collect();
    world.pass(span).await;
    while let Some(Some(event)) = watch.next().now_or_never() {
        lines.push(line(&event));
    }
    lines
}

fn line(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Stands(seen) => {
            let standing = format!("{:?}", seen.standing);
            format!("{} stands {}", seen.key, standing.split('(').next().unwrap())
        }
        WatchEvent::Changed(change) => {
            let what = match &change.kind {
                ChangeKind::Ended(end) => format!("{end:?}"),
                what => format!("{what:?}"),
            };
            let what = what.split([' ', '(', '{']).next().unwrap().to_owned();
            format!("{} {what} {}", change.key, change.holder.as_deref().unwrap_or("-"))
        }
        WatchEvent::Problem { key, error, .. } => format!("{key} problem {:?}", error.kind()),
        WatchEvent::Unavailable { error, .. } => format!("unavailable {:?}", error.kind()),
        WatchEvent::Available { .. } => "available".to_owned(),
        _ => panic!("{event:?}"),
    }
}

/// Longer than the pause that a watch makes between two hints.
const SOON: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_watch_starts_with_the_standing_of_the_key_and_continues_with_its_changes() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let mut watch = watch(&b, "k");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Absent"]);
    let lease = hold(&a, "k").await;
    assert_eq!(told(&world, &mut watch, SOON).await, ["k Granted a"]);
    lease.renew().await.unwrap();
    assert!(told(&world, &mut watch, SOON).await.is_empty(), "renewals are told on request");
    lease.release().await.unwrap();
    assert_eq!(told(&world, &mut watch, SOON).await, ["k Released a"]);
}

#[tokio::test]
async fn a_change_says_who_and_when_and_under_which_token() {
    let world = World::new();
    let a = world.process("a").await;
    let lease = hold(&a, "k").await;
    let mut watch = watch(&a, "k");
    let WatchEvent::Stands(first) = watch.next().await.unwrap() else { panic!() };
    assert_eq!(first.record.unwrap().token, lease.token());
    let token = lease.token();
    world.clock.advance(Duration::from_secs(1));
    lease.release().await.unwrap();
    let change = loop {
        world.pass(SOON).await;
        if let Some(event) = watch.next().now_or_never() {
            break event.unwrap();
        }
    };
    let WatchEvent::Changed(change) = change else { panic!("{change:?}") };
    assert_eq!((change.kind, change.token), (ChangeKind::Ended(End::Released), Some(token)));
    assert_eq!(change.holder.as_deref(), Some("a"));
    assert!(change.written_at.unwrap().as_millis() <= change.seen_at.as_millis());
}

#[tokio::test]
async fn renewals_are_reported_on_request() {
    let world = World::new();
    let lease = hold(&world.process("a").await, "k").await;
    let mut watch = watch(&world.process("b").await, "k").renewals();
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Held"]);
    lease.renew().await.unwrap();
    assert_eq!(told(&world, &mut watch, SOON).await, ["k Renewed a"]);
}

#[tokio::test]
async fn a_change_by_time_alone_is_reported_when_it_is_due() {
    for clock in [StoreClock::Nothing, StoreClock::Ages] {
        let world = World::built(|builder| silent(builder).store_clock(clock));
        // Its holder has died without a release.
        world.memory.overwrite(&key("k"), fixture("held"));
        let b = world.process("b").await;
        let mut watch = watch(&b, "k");
        assert_eq!(told(&world, &mut watch, TTL).await, ["k stands Held"]);
        assert_eq!(told(&world, &mut watch, TTL / 50).await, ["k RanOut host-a"], "{clock:?}");
        assert!(told(&world, &mut watch, 3 * TTL).await.is_empty(), "once");
        // The keeper has not read the key yet, and counts for itself if the store reports no ages.
        let waiting = b.lease("k").unwrap().ttl(TTL).acquire();
        let (next, lines) = tokio::join!(waiting, told(&world, &mut watch, 3 * TTL));
        assert_eq!((lines, next.is_ok()), (vec!["k Granted b".to_owned()], true), "{clock:?}");
    }
}

#[tokio::test]
async fn a_revoked_holder_is_reported_with_who_and_why() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _lease = hold(&a, "k").await;
    let mut watch = watch(&a, "k");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Held"]);
    let taking = b.lease("k").unwrap().ttl(TTL).revoke("it is stuck").acquire();
    let (taken, lines) = tokio::join!(taking, told(&world, &mut watch, 2 * TTL));
    let _lease = taken.unwrap();
    // First the request to release, then the release.
    assert_eq!(lines, ["k Revoked a", "k Revoked a", "k Granted b"]);
}

#[tokio::test]
async fn keys_that_appear_under_a_prefix_are_found_by_hints_and_without_them() {
    for hints in [true, false] {
        let world = World::built(|builder| if hints { builder } else { silent(builder) });
        let a = world.process("a").await;
        let _one = hold(&a, "jobs/one").await;
        let _other = hold(&a, "other").await;
        let mut watch = watch(&a, "jobs/");
        assert_eq!(told(&world, &mut watch, SOON).await, ["jobs/one stands Held"]);
        let two = hold(&a, "jobs/two").await;
        let span = if hints { SOON } else { SLOW };
        assert_eq!(told(&world, &mut watch, span).await, ["jobs/two Granted a"], "hints: {hints}");
        two.release().await.unwrap();
        let three = hold(&a, "jobs/three").await;
        three.release().await.unwrap();
        let mut lines = told(&world, &mut watch, SLOW + SOON).await;
        lines.sort();
        let expected = ["jobs/three Granted a", "jobs/three Released a", "jobs/two Released a"];
        let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains("one")).collect();
        assert_eq!(lines, expected, "hints: {hints}");
    }
}

#[tokio::test]
async fn changes_by_other_programs_are_reported() {
    let world = World::new();
    let a = world.process("a").await;
    world.memory.overwrite(&key("k"), fixture("vacant"));
    let mut watch = watch(&a, "");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Vacant"]);
    world.memory.overwrite(&key("k"), "{}");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k Foreign -"]);
    world.memory.delete(&key("k"));
    assert_eq!(told(&world, &mut watch, SOON).await, ["k Gone -"]);
    world.memory.overwrite(&key("k"), fixture("reserved"));
    assert_eq!(told(&world, &mut watch, SOON).await.last().unwrap(), "k Reserved -");
    world.memory.overwrite(&key("k"), fixture("closed"));
    assert_eq!(told(&world, &mut watch, SOON).await, ["k Closed -"]);
    world.memory.overwrite(&key("new"), "foreign");
    assert_eq!(told(&world, &mut watch, SOON).await, ["new Foreign -"]);
}

#[tokio::test]
async fn a_store_that_goes_back_in_time_is_an_error_and_the_watch_continues() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    hold(&a, "k").await.release().await.unwrap();
    let backup = world.memory.snapshot();
    world.clock.advance(SOON);
    hold(&a, "k").await.release().await.unwrap();
    let mut watch = watch(&b, "k");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Vacant"]);
    world.memory.restore(&backup);
    assert_eq!(told(&world, &mut watch, 5 * SLOW).await, ["k problem Corrupt"], "once");
    let _lease = hold(&world.process("c").await, "k").await;
    let lines = told(&world, &mut watch, SLOW).await;
    assert_eq!(lines.last().unwrap(), "k Granted c", "{lines:?}");
}

#[tokio::test]
async fn an_error_whose_request_id_changes_is_reported_once_and_then_rarely() {
    let world = World::new();
    let a = world.process("a").await;
    let _lease = hold(&a, "k").await;
    let (fails, requests) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let failing = Arc::clone(&fails);
    let odd = Odd::new(&world.memory).get_failure(move || {
        let id = requests.fetch_add(1, Ordering::SeqCst);
        let refused =
            || StoreError::refused(Reason::Unsupported, format!("it answered 501, request 17A{id:05}"));
        failing.load(Ordering::SeqCst).then(refused)
    });
    let observer = Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(odd).await.unwrap();
    let mut watch = watch(&observer, "k");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Held"]);
    let mut leaders = observer.election("k").unwrap().observe().unwrap();
    assert!(leaders.next().await.unwrap().is_some());
    fails.store(true, Ordering::SeqCst);
    let lines = told(&world, &mut watch, 10 * SLOW).await;
    assert_eq!(lines.len(), 2, "at once, and after a minute: {lines:?}");
    assert!(lines.iter().all(|line| line.starts_with("k problem")), "{lines:?}");
    let errors = std::iter::from_fn(|| leaders.next().now_or_never()).take(50).filter(Result::is_err).count();
    assert_eq!(errors, 2, "at once, and after a minute");
}

#[tokio::test]
async fn a_store_with_occasional_old_answers_never_makes_a_token_go_back() {
    let world = World::new();
    let a = world.process("a").await;
    hold(&a, "k").await.release().await.unwrap();
    let old = world.memory.snapshot();
    let mut next = true;
    let (memory, flag) = (world.memory.clone(), Arc::new(AtomicBool::new(false)));
    let lies = Arc::clone(&flag);
    // While it lies, the watch reads an old copy.
    let lying = Odd::new(&world.memory).at_get(move || {
        if lies.load(Ordering::SeqCst) {
            memory.restore(&old);
        }
    });
    let observer = Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(lying).await.unwrap();
    let mut watch = watch(&observer, "k");
    let mut tokens = Vec::new();
    let mut problems = 0;
    for _ in 0..20 {
        let truth = {
            let lease = hold(&a, "k").await;
            lease.release().await.unwrap();
            world.memory.snapshot()
        };
        flag.store(next, Ordering::SeqCst);
        next = !next;
        let first = watch.next().now_or_never().flatten();
        world.pass(SOON).await;
        let rest = std::iter::from_fn(|| watch.next().now_or_never().flatten());
        for event in first.into_iter().chain(rest.take(50)) {
            match event {
                WatchEvent::Changed(change) => tokens.extend(change.token),
                WatchEvent::Stands(seen) => tokens.push(seen.record.unwrap().token),
                WatchEvent::Problem { error, .. } => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt);
                    problems += 1;
                }
                event => panic!("{event:?}"),
            }
        }
        flag.store(false, Ordering::SeqCst);
        world.memory.restore(&truth);
    }
    assert!(tokens.is_sorted() && tokens.len() > 10, "{tokens:?}");
    assert!(problems > 0);
}

#[tokio::test]
async fn an_outage_and_its_end_are_reported_once_each_and_then_the_changes() {
    for hints in [true, false] {
        let world = World::built(|builder| if hints { builder } else { silent(builder) });
        let (a, b) = (world.process("a").await, world.process("b").await);
        let lease = hold(&a, "k").await;
        let mut watch = watch(&b, "k");
        assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Held"]);
        world.memory.faults().every_get(Some(GetFault::Fail));
        let before = world.memory.calls();
        assert_eq!(told(&world, &mut watch, 10 * TTL).await, ["unavailable Unavailable"], "hints: {hints}");
        let calls = world.memory.calls() - before;
        assert!(calls.total() < 60, "the pauses grow: {calls:?}");
        // During the outage, the lease was released; another one was granted and released.
        lease.release().await.unwrap_err();
        world.memory.faults().clear();
        let next = hold(&a, "k").await;
        world.memory.faults().every_get(Some(GetFault::Refuse(tenure_store::Reason::Unreachable)));
        next.release().await.unwrap();
        assert!(told(&world, &mut watch, SOON).await.is_empty());
        world.memory.faults().clear();
        let lines = told(&world, &mut watch, SLOW + SOON).await;
        assert_eq!(lines[0], "available", "hints: {hints}");
        assert_eq!(lines[lines.len() - 2..], ["k Granted a", "k Released a"], "{lines:?}");
    }
}

#[tokio::test]
async fn a_watch_that_is_created_during_an_outage_starts_after_it() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.memory.faults().every_get(Some(GetFault::Fail));
    let mut watch = watch(&b, "k");
    assert_eq!(told(&world, &mut watch, TTL).await, ["unavailable Unavailable"]);
    world.memory.faults().clear();
    assert_eq!(told(&world, &mut watch, SLOW).await[..2], ["available", "k stands Held"]);
}

#[tokio::test]
async fn a_single_failed_read_is_not_reported() {
    let world = World::built(silent);
    let (a, b) = (world.process("a").await, world.process("b").await);
    let lease = hold(&a, "k").await;
    let mut watch = watch(&b, "k");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Held"]);
    world.memory.faults().next_get(GetFault::Throttle(None));
    lease.release().await.unwrap();
    assert_eq!(told(&world, &mut watch, TTL / 2).await, ["k Released a"]);
}

#[tokio::test]
async fn a_store_that_hangs_is_unavailable_too() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _lease = hold(&a, "k").await;
    let mut watch = watch(&b, "k");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Held"]);
    world.memory.faults().every_get(Some(GetFault::Hang));
    assert_eq!(told(&world, &mut watch, 3 * TTL).await, ["unavailable Unavailable"]);
    world.memory.faults().clear();
    let lines = told(&world, &mut watch, 2 * TTL).await;
    assert_eq!(lines[0], "available", "{lines:?}");
}

#[tokio::test]
async fn a_quiet_key_costs_three_reads_per_ttl_and_a_vacant_one_a_read_in_ten_seconds() {
    let world = World::built(silent);
    let (a, b) = (world.process("a").await, world.process("b").await);
    let lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let mut watch = watch(&b, "k");
    told(&world, &mut watch, SOON).await;
    let before = world.memory.calls();
    assert!(told(&world, &mut watch, 10 * TTL).await.is_empty());
    let calls = world.memory.calls() - before;
    assert!((20..=30).contains(&calls.gets), "{calls:?} in ten ttls");
    assert!(calls.lists <= 16, "{calls:?}");
    lease.release().await.unwrap();
    assert_eq!(told(&world, &mut watch, SLOW).await, ["k Released a"]);
    let before = world.memory.calls();
    assert!(told(&world, &mut watch, 30 * SLOW).await.is_empty());
    let calls = world.memory.calls() - before;
    assert!(calls.gets <= 31 && calls.lists <= 31 && calls.puts == 0, "{calls:?}");
}

#[tokio::test]
async fn each_hint_costs_one_read_and_constant_hints_are_throttled() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let mut quiet = watch(&b, "k");
    told(&world, &mut quiet, SOON).await;
    let before = world.memory.calls();
    assert!(told(&world, &mut quiet, 10 * TTL).await.is_empty());
    let calls = world.memory.calls() - before;
    assert!(calls.gets <= 50 && calls.gets <= calls.puts + 30, "{calls:?}");
    drop(quiet);
    let always = Odd::new(&world.memory).watch(|_, _| Some(stream::repeat(()).boxed()));
    let busy = Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(always).await.unwrap();
    let mut busy = watch(&busy, "k");
    told(&world, &mut busy, SOON).await;
    let before = world.memory.calls();
    told(&world, &mut busy, Duration::from_secs(2)).await;
    let calls = world.memory.calls() - before;
    assert!(calls.gets + calls.lists <= 210, "{calls:?}");
}

#[tokio::test]
async fn a_watch_subscribes_again_after_its_hints_end_and_polls_until_then() {
    let world = World::new();
    let a = world.process("a").await;
    let asked = Arc::new(AtomicBool::new(false));
    let again = Arc::clone(&asked);
    // The first stream ends at once.
    let short = Odd::new(&world.memory).watch(move |memory, prefix| {
        if again.swap(true, Ordering::SeqCst) { memory.watch(prefix) } else { Some(stream::empty().boxed()) }
    });
    let b = Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(short).await.unwrap();
    let mut watch = watch(&b, "k");
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Absent"]);
    let lease = hold(&a, "k").await;
    assert!(told(&world, &mut watch, SOON).await.is_empty());
    assert_eq!(told(&world, &mut watch, SLOW).await, ["k Granted a"]);
    lease.release().await.unwrap();
    assert_eq!(told(&world, &mut watch, SOON).await, ["k Released a"]);
}

#[tokio::test]
async fn dropping_the_watch_stops_every_call() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let _lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let mut watch = watch(&b, "k");
    told(&world, &mut watch, SOON).await;
    drop(watch);
    world.settle().await;
    let before = world.memory.calls();
    world.pass(5 * TTL).await;
    assert_eq!((world.memory.calls() - before).gets, 0);
}

#[tokio::test]
async fn a_watch_outlives_its_coordinator() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let mut watch = watch(&b, "k");
    drop(b);
    assert_eq!(told(&world, &mut watch, SOON).await, ["k stands Absent"]);
    let _lease = hold(&a, "k").await;
    assert_eq!(told(&world, &mut watch, SOON).await, ["k Granted a"]);
}

#[tokio::test]
async fn a_slow_reader_gets_the_changes_of_a_thousand_keys_without_a_miss() {
    const MANY: usize = 1_000;
    let world = World::built(silent);
    for number in 0..MANY {
        world.memory.overwrite(&key(&format!("k{number:04}")), fixture("vacant"));
    }
    let a = world.process("a").await;
    let mut watch = watch(&a, "");
    let before = world.memory.calls();
    let mut keys = Vec::new();
    while keys.len() < MANY {
        let Some(WatchEvent::Stands(seen)) = watch.next().await else { panic!() };
        assert_eq!(seen.standing, Standing::Vacant);
        keys.push(seen.key);
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), MANY);
    let calls = world.memory.calls() - before;
    assert_eq!((calls.gets, calls.lists), (MANY as u64, 1));
    eventually("it waits", || world.clock.sleepers() > 0).await;
}
