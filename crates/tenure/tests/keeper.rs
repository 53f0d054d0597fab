//! The keeper is a thread of its own: faults that it survives, and the effect of its death.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::stream;
use tenure::clock::{Clock, Instant, ManualClock, WallTime};
use tenure::store::memory::{GetFault, PutFault};
use tenure::{AttemptReport, Coordinator, ErrorKind, EventReport, Lost, Recorder};
use tenure_store::{BoxFuture, Store};

use support::odd::Odd;
use support::{World, eventually, real_pause, spawn};

const TTL: Duration = Duration::from_secs(15);

/// A clock that panics on the keeper's own thread: without a clock no lease can be kept.
#[derive(Debug)]
struct Broken {
    clock: ManualClock,
    bug: Arc<AtomicBool>,
}

impl Clock for Broken {
    fn now(&self) -> Instant {
        let keeper = std::thread::current().name() == Some("tenure-keeper");
        assert!(!keeper || !self.bug.load(Ordering::SeqCst), "a bug in a clock, on purpose");
        self.clock.now()
    }

    fn wall(&self) -> WallTime {
        self.clock.wall()
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(at)
    }
}

#[tokio::test]
async fn if_the_keeper_dies_every_lease_is_lost_at_once_and_every_caller_learns_of_it() {
    let world = World::new();
    let bug = Arc::new(AtomicBool::new(false));
    let clock = Broken { clock: world.clock.clone(), bug: Arc::clone(&bug) };
    let store = Odd::new(&world.memory);
    let a = Coordinator::builder().clock(Arc::new(clock)).connect(store).await.unwrap();
    let one = a.lease("one").unwrap().ttl(TTL).acquire().await.unwrap();
    let two = a.lease("two").unwrap().ttl(TTL).acquire().await.unwrap();
    let set = a.all_of(["x", "y"]).unwrap().ttl(TTL).acquire().await.unwrap();
    let set_lost = set.cancellation_token();
    bug.store(true, Ordering::SeqCst);
    let (lost, ()) = tokio::join!(two.lost(), world.pass(TTL / 3));
    assert_eq!(lost, Lost::KeeperGone);
    assert_eq!(one.lost().await, Lost::KeeperGone);
    assert_eq!(set.lost().await.why, Lost::KeeperGone);
    assert!(set_lost.is_cancelled() && set.release().await.is_err());
    assert!(one.remaining() == Duration::ZERO && one.release().await.is_err() && one.renew().await.is_err());
    let error = a.lease("three").unwrap().acquire().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Unavailable, "the keeper of odd: has ended, or lives in the process that this one was forked from: connect again".into())
    );
}

#[tokio::test]
async fn the_coordinator_may_be_dropped_while_its_leases_continue() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.pass(3 * TTL).await;
    assert!(lease.check().is_ok());
}

#[tokio::test]
async fn a_store_that_hangs_for_ever_does_not_hang_the_keeper() {
    let world = World::new();
    let a = world.process("a").await;
    let healthy = a.lease("healthy").unwrap().ttl(TTL).acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::Hang);
    let (stuck, ()) = tokio::join!(a.lease("stuck").unwrap().ttl(TTL).acquire(), world.pass(TTL));
    assert!(stuck.is_ok(), "the call that hung was given up and made again");
    assert!(healthy.check().is_ok());
}

/// Records its calls.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn write(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Recorder for Notes {
    fn attempt(&self, it: &AttemptReport) {
        let token = it.token.is_some();
        self.write(format!("{} {} {:?} {:?} token:{token}", it.key, it.holder, it.operation, it.outcome));
    }

    fn event(&self, it: &EventReport) {
        let name = match &it.event {
            tenure::Event::Lost(why) => format!("Lost {why:?}"),
            other => format!("{other:?}").split([' ', '(']).next().unwrap_or_default().to_owned(),
        };
        self.write(format!("{} {name}", it.key));
    }
}

#[tokio::test]
async fn the_recorder_receives_every_attempt_and_every_event_in_order() {
    let world = World::new();
    let notes = Arc::new(Notes::default());
    let a = Coordinator::builder()
        .clock(Arc::new(world.clock.clone()))
        .holder(tenure::Holder::new("a").unwrap())
        .recorder(Arc::clone(&notes) as Arc<dyn Recorder>)
        .connect(world.memory.clone())
        .await
        .unwrap();
    let lease = a.lease("k").unwrap().manual().acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::LoseAnswer);
    lease.renew().await.unwrap();
    lease.release().await.unwrap();
    let expected = [
        "k a Read Answered token:false",
        "k a Write(Plant) Applied token:false",
        "k a Write(Grant) Applied token:true",
        "k Granted",
        "k a Write(Renew) Unknown token:true",
        "k AtRisk",
        "k a Read Answered token:false",
        "k Renewed",
        "k Lost Released",
        "k a Write(Vacate) Applied token:true",
        "k Left",
    ];
    eventually("everything is reported", || notes.all().len() >= expected.len()).await;
    assert_eq!(notes.all(), expected);
}

/// Blocks for ever, like an exporter whose receiver has stopped.
#[derive(Debug)]
struct Stuck(Mutex<mpsc::Receiver<()>>);

impl Recorder for Stuck {
    fn attempt(&self, _: &AttemptReport) {
        let _ = self.0.lock().unwrap().recv();
    }

    fn event(&self, _: &EventReport) {
        let _ = self.0.lock().unwrap().recv();
    }
}

#[tokio::test]
async fn a_recorder_that_blocks_costs_no_lease() {
    let world = World::new();
    let (_never, blocked) = mpsc::channel();
    let stuck = Arc::new(Stuck(Mutex::new(blocked)));
    let a = Coordinator::builder()
        .clock(Arc::new(world.clock.clone()))
        .recorder(Arc::clone(&stuck) as Arc<dyn Recorder>)
        .connect(world.memory.clone())
        .await
        .unwrap();
    let lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.pass(5 * TTL).await;
    assert!(lease.check().is_ok());
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_release_does_not_hammer_a_store_whose_writes_fail_at_once() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    let before = world.memory.calls();
    drop(lease);
    eventually("the keeper tries to vacate", || world.calls_since(before).1 > 0).await;
    real_pause(Duration::from_millis(100)).await;
    let (reads, writes) = world.calls_since(before);
    assert!(reads + writes <= 5, "{reads} reads and {writes} writes while no time passed");
}

#[tokio::test]
async fn a_throttling_store_that_asks_for_more_time_than_the_lease_has_is_retried_in_time() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::Throttle(Some(Duration::from_secs(60))));
    world.pass(2 * TTL).await;
    assert!(lease.check().is_ok());
}

#[tokio::test]
async fn a_call_that_hangs_while_a_release_lapses_blocks_no_other_lease() {
    let world = World::new();
    let a = world.process("a").await;
    let innocent = a.lease("innocent").unwrap().ttl(4 * TTL).acquire().await.unwrap();
    let lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.memory.faults().every_put(Some(PutFault::Hang));
    world.memory.faults().every_get(Some(GetFault::Hang));
    let (released, ()) = tokio::join!(lease.release(), world.pass(TTL * 3 / 2));
    assert!(released.is_err());
    world.memory.faults().clear();
    world.pass(TTL).await;
    assert!(innocent.check().is_ok());
}

#[tokio::test]
async fn a_watch_that_always_has_a_hint_costs_neither_a_lease_nor_many_reads() {
    let world = World::new();
    let _held = world.process("b").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let store = Odd::new(&world.memory).watch(|_, _| Some(Box::pin(stream::repeat(()))));
    let a = Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(store).await.unwrap();
    let healthy = a.lease("healthy").unwrap().ttl(TTL).acquire().await.unwrap();
    let before = world.memory.calls();
    let (waited, ()) = tokio::join!(a.lease("k").unwrap().ttl(TTL).wait(TTL).acquire(), world.pass(TTL));
    assert!(waited.is_err() && healthy.check().is_ok());
    let (reads, _) = world.calls_since(before);
    assert!(
        reads <= 36,
        "{reads} reads in one ttl: some after each renewal, else no more than failures would get"
    );
}

#[tokio::test]
async fn a_release_between_the_read_of_a_contender_and_its_first_hint_is_not_missed() {
    let world = World::new();
    let held = world.process("b").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let (listens, released) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let store = Odd::new(&world.memory).watch({
        let (listens, released) = (Arc::clone(&listens), Arc::clone(&released));
        move |memory, prefix| {
            // The contender has read the record. The holder releases before the store gives hints.
            listens.store(true, Ordering::SeqCst);
            while !released.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            memory.watch(prefix)
        }
    });
    let a = Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(store).await.unwrap();
    let waiting = spawn(a.lease("k").unwrap().ttl(TTL).wait(TTL).acquire());
    eventually("the contender asks for hints", || listens.load(Ordering::SeqCst)).await;
    held.release().await.unwrap();
    released.store(true, Ordering::SeqCst);
    eventually("the contender is granted though no time passes", || waiting.is_finished()).await;
    assert!(waiting.await.unwrap().unwrap().check().is_ok());
}

#[tokio::test]
async fn the_keeper_subscribes_again_after_the_store_ended_its_hints() {
    let world = World::new();
    let _held = world.process("b").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&asked);
    let store =
        Odd::new(&world.memory).watch(move |memory, prefix| match counts.fetch_add(1, Ordering::SeqCst) {
            0 => Some(Box::pin(stream::empty())),
            _ => memory.watch(prefix),
        });
    let a = Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(store).await.unwrap();
    let (waited, ()) =
        tokio::join!(a.lease("k").unwrap().ttl(TTL).wait(3 * TTL).acquire(), world.pass(3 * TTL));
    assert!(waited.is_err());
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_release_that_meets_a_finished_renewal_is_reported_as_a_release() {
    let world = World::new();
    let notes = Arc::new(Notes::default());
    let (busy, is_busy) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let store = Odd::new(&world.memory).at_get({
        let (busy, is_busy) = (Arc::clone(&busy), Arc::clone(&is_busy));
        move || {
            // A store that blocks the keeper for a while.
            while busy.load(Ordering::SeqCst) {
                is_busy.store(true, Ordering::SeqCst);
                std::thread::yield_now();
            }
        }
    });
    let a = Coordinator::builder()
        .clock(Arc::new(world.clock.clone()))
        .recorder(Arc::clone(&notes) as Arc<dyn Recorder>)
        .connect(store)
        .await
        .unwrap();
    let lease = a.lease("k").unwrap().manual().acquire().await.unwrap();
    world.memory.faults().next_put(PutFault::SlowAnswer(Duration::from_millis(500)));
    let renewal = async { drop(lease.renew().await) };
    let release = async {
        real_pause(Duration::from_millis(10)).await;
        busy.store(true, Ordering::SeqCst);
        let look = async { drop(a.record("k").await) };
        let release = async {
            eventually("the keeper is busy", || is_busy.load(Ordering::SeqCst)).await;
            world.clock.advance(Duration::from_millis(600));
            let free = async {
                real_pause(Duration::from_millis(10)).await;
                busy.store(false, Ordering::SeqCst);
            };
            tokio::join!(lease.release(), free).0.unwrap();
        };
        tokio::join!(look, release);
    };
    tokio::join!(renewal, release);
    eventually("the end is reported", || notes.all().iter().any(|note| note.contains("Left"))).await;
    assert_eq!(lease.lost().await, Lost::Released);
    let lost: Vec<_> = notes.all().into_iter().filter(|note| note.contains("Lost")).collect();
    assert_eq!(lost, ["k Lost Released"]);
}

#[tokio::test]
async fn a_keeper_whose_last_lease_lapses_by_a_timer_ends_without_a_panic() {
    let panics = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&panics);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let keeper = std::thread::current().name() == Some("tenure-keeper");
        let on_purpose = info.payload_as_str().is_some_and(|text| text.contains("on purpose"));
        count.fetch_add(u64::from(keeper && !on_purpose), Ordering::SeqCst);
        before(info);
    }));
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    // No caller can order anything any more, and the keeper cannot vacate the record.
    world.memory.faults().every_put(Some(PutFault::Refuse(tenure_store::Reason::Unreachable)));
    drop(lease);
    world.pass(2 * TTL).await;
    assert_eq!(panics.load(Ordering::SeqCst), 0);
}
