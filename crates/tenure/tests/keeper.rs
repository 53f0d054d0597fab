//! The keeper is a thread of its own: what it survives, and what happens when it does not.

mod support;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use support::{World, eventually};
use tenure::store::Memory;
use tenure::store::memory::PutFault;
use tenure::{AttemptReport, Coordinator, EventReport, Kind, Lost, Recorder};
use tenure_store::{
    BoxFuture, BoxStream, Expect, Guarantees, Key, Prefix, Put, Reading, Store, StoreError, Version,
};

const TTL: Duration = Duration::from_secs(15);

/// A store with a bug.
#[derive(Clone, Debug)]
struct Panics {
    inner: Memory,
    now: Arc<AtomicBool>,
}

impl fmt::Display for Panics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("panics:")
    }
}

impl Store for Panics {
    fn guarantees(&self) -> Guarantees {
        self.inner.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        self.inner.get(key)
    }

    fn put<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Put, StoreError>> {
        assert!(!self.now.load(Ordering::SeqCst), "a bug in a store, on purpose");
        self.inner.put(key, value, expect)
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.inner.list(prefix)
    }

    fn impossible_version(&self) -> Version {
        self.inner.impossible_version()
    }
}

#[tokio::test]
async fn if_the_keeper_dies_every_lease_is_lost_at_once_and_everybody_is_told() {
    let world = World::new();
    let now = Arc::new(AtomicBool::new(false));
    let store = Panics { inner: world.memory.clone(), now: Arc::clone(&now) };
    let a = Coordinator::builder().clock(Arc::new(world.clock.clone())).connect(store).await.unwrap();
    let one = a.lease("one").unwrap().ttl(TTL).acquire().await.unwrap();
    let two = a.lease("two").unwrap().ttl(TTL).acquire().await.unwrap();
    now.store(true, Ordering::SeqCst);
    let (lost, ()) = tokio::join!(two.lost(), world.pass(TTL / 3));
    assert_eq!(lost, Lost::KeeperGone);
    assert_eq!(one.lost().await, Lost::KeeperGone);
    assert!(one.remaining() == Duration::ZERO && one.release().await.is_err() && one.renew().await.is_err());
    let error = a.lease("three").unwrap().acquire().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (Kind::Unavailable, "the keeper of panics: has ended: connect again".into())
    );
}

#[tokio::test]
async fn the_coordinator_may_be_dropped_while_its_leases_live_on() {
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

/// Writes down what it is told.
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
        let name = format!("{:?}", it.event);
        let name = name.split([' ', '(']).next().unwrap_or_default().to_owned();
        self.write(format!("{} {} {name}", it.key, it.holder));
    }
}

#[tokio::test]
async fn the_recorder_is_told_of_every_attempt_and_every_event_in_order() {
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
        "k a Granted",
        "k a Write(Renew) Unknown token:true",
        "k a AtRisk",
        "k a Read Answered token:false",
        "k a Renewed",
        "k a Lost",
        "k a Write(Vacate) Applied token:true",
        "k a Left",
    ];
    eventually("everything is reported", || notes.all().len() >= expected.len()).await;
    assert_eq!(notes.all(), expected);
}

/// Blocks for ever, like an exporter whose other end is gone.
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
