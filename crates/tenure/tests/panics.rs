//! Foreign code that panics costs one call, and neither the keeper nor any lease.

mod support;

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tenure::store::Memory;
use tenure::{
    AttemptOutcome, AttemptReport, Coordinator, ErrorKind, EventReport, Key, Lease, Prefix, Recorder,
};
use tenure_store::{
    Administration, BoxFuture, BoxStream, Guarantees, Identity, Put, Reading, Store, StoreError, Write,
};

use support::{World, eventually};

const TTL: Duration = Duration::from_secs(15);

/// The place where the store panics, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Before a future exists.
    GetCall,
    /// In the poll of the future.
    GetPoll,
    /// In the drop of the future, after its answer.
    GetDrop,
    /// The answer is an error whose `Display` panics.
    GetError,
    PutCall,
    /// Before the write.
    PutPoll,
    /// After the write.
    PutDone,
    ListCall,
    ListPoll,
    WatchCall,
    WatchPoll,
    Guarantees,
    Administration,
}

/// The memory store, with one bug.
#[derive(Clone, Debug)]
struct Buggy {
    memory: Memory,
    bug: Arc<Mutex<Option<Bug>>>,
}

impl Buggy {
    fn new(world: &World) -> Self {
        without_backtraces();
        Self { memory: world.memory.clone(), bug: Arc::default() }
    }

    fn next(&self, bug: Bug) {
        *self.bug.lock().unwrap() = Some(bug);
    }

    fn is_over(&self) -> bool {
        self.bug.lock().unwrap().is_none()
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug.lock().unwrap().take_if(|next| *next == bug).is_some()
    }

    fn at(&self, bug: Bug) {
        assert!(!self.has(bug), "a bug in a store, on purpose");
    }
}

/// The process prints one backtrace at a time, which takes long. A keeper that waits for its turn sleeps, so the clock
/// of its world would move past the keeper's deadlines.
fn without_backtraces() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
}

/// Panics when dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        panic!("a bug in a store, on purpose");
    }
}

/// Answers, and panics when dropped.
struct Late(#[allow(dead_code, reason = "it is only dropped")] Grenade);

impl Future for Late {
    type Output = Result<Reading, StoreError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Err(StoreError::unknown("this call failed deliberately")))
    }
}

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("a bug in a store, on purpose");
    }
}

impl StdError for Unspeakable {}

impl fmt::Display for Buggy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("buggy:")
    }
}

impl Store for Buggy {
    fn guarantees(&self) -> Guarantees {
        self.at(Bug::Guarantees);
        self.memory.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        self.at(Bug::GetCall);
        if self.has(Bug::GetDrop) {
            return Box::pin(Late(Grenade));
        }
        Box::pin(async move {
            self.at(Bug::GetPoll);
            if self.has(Bug::GetError) {
                return Err(StoreError::unknown(Unspeakable));
            }
            self.memory.get(key).await
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> BoxFuture<'a, Result<Put, StoreError>> {
        self.at(Bug::PutCall);
        Box::pin(async move {
            self.at(Bug::PutPoll);
            let put = self.memory.write(key, write).await;
            self.at(Bug::PutDone);
            put
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.at(Bug::ListCall);
        let first = stream::once(async { self.at(Bug::ListPoll) }).filter_map(|()| async { None });
        Box::pin(first.chain(self.memory.list(prefix)))
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        self.at(Bug::WatchCall);
        let store = self.clone();
        let first = stream::once(async move { store.at(Bug::WatchPoll) });
        Some(Box::pin(first.chain(self.memory.watch(prefix)?)))
    }

    fn administration(&self) -> Option<&dyn Administration> {
        self.at(Bug::Administration);
        self.memory.administration()
    }

    fn identity(&self) -> Identity {
        self.memory.identity()
    }
}

/// Records the outcome of each failed attempt.
#[derive(Debug, Default)]
struct Failures(Mutex<Vec<(AttemptOutcome, String)>>);

impl Recorder for Failures {
    fn attempt(&self, it: &AttemptReport) {
        if let Some(error) = &it.error {
            self.0.lock().unwrap().push((it.outcome, error.to_string()));
        }
    }

    fn event(&self, _: &EventReport) {}
}

/// A process with a healthy lease, on a store that is about to panic.
struct Process {
    world: World,
    store: Buggy,
    coordinator: Coordinator,
    failures: Arc<Failures>,
    healthy: Lease,
}

impl Process {
    async fn new() -> Self {
        let world = World::new();
        let (store, failures) = (Buggy::new(&world), Arc::new(Failures::default()));
        let coordinator = Coordinator::builder()
            .clock(Arc::new(world.clock.clone()))
            .recorder(Arc::clone(&failures) as Arc<dyn Recorder>)
            .connect(store.clone())
            .await
            .unwrap();
        let healthy = coordinator.lease("healthy").unwrap().ttl(TTL).acquire().await.unwrap();
        Self { world, store, coordinator, failures, healthy }
    }

    /// Asserts that the bug happened, that one report had an unknown outcome, and that everything continues.
    async fn goes_on_after(&self, bug: Bug) {
        assert!(self.store.is_over(), "{bug:?} was never met");
        eventually("the attempt is reported", || !self.failures.0.lock().unwrap().is_empty()).await;
        let failures = self.failures.0.lock().unwrap().clone();
        let [(outcome, error)] = &failures[..] else { panic!("{bug:?}: {failures:?}") };
        assert_eq!(*outcome, AttemptOutcome::Unknown, "{bug:?}: {error}");
        assert!(error.contains("panicked: a bug in a store, on purpose"), "{bug:?}: {error}");
        self.is_well().await;
    }

    async fn is_well(&self) {
        self.world.pass(2 * TTL).await;
        self.healthy.check().unwrap();
        let next = self.coordinator.lease("next").unwrap().ttl(TTL).acquire().await.unwrap();
        next.release().await.unwrap();
        self.healthy.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_store_that_panics_in_a_renewal_costs_that_call_and_no_lease() {
    for bug in [Bug::PutCall, Bug::PutPoll, Bug::PutDone] {
        let process = Process::new().await;
        let lease = process.coordinator.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
        process.store.next(bug);
        lease.renew().await.unwrap();
        let trouble = lease.last_error().unwrap();
        assert!(trouble.contains("panicked: a bug in a store, on purpose"), "{trouble}");
        process.goes_on_after(bug).await;
    }
}

#[tokio::test]
async fn a_store_that_panics_in_a_read_of_a_contender_costs_that_call_and_no_lease() {
    for bug in [Bug::GetCall, Bug::GetPoll, Bug::GetError] {
        let process = Process::new().await;
        process.store.next(bug);
        let request = process.coordinator.lease("k").unwrap().ttl(TTL).wait(TTL);
        let (lease, ()) = tokio::join!(request.acquire(), process.world.pass(TTL));
        lease.unwrap().release().await.unwrap();
        process.goes_on_after(bug).await;
    }
}

#[tokio::test]
async fn a_write_that_panics_after_it_was_applied_is_read_back_and_adopted() {
    let process = Process::new().await;
    process.coordinator.lease("k").unwrap().acquire().await.unwrap().release().await.unwrap();
    process.store.next(Bug::PutDone);
    let lease = process.coordinator.lease("k").unwrap().ttl(TTL).wait(TTL).acquire();
    let (lease, ()) = tokio::join!(lease, process.world.pass(TTL / 5));
    let lease = lease.unwrap();
    let record = process.coordinator.record("k").await.unwrap().unwrap();
    assert_eq!((record.is_held(), record.token), (true, lease.token()), "the very grant that panicked");
    lease.release().await.unwrap();
    process.goes_on_after(Bug::PutDone).await;
}

#[tokio::test]
async fn a_future_of_the_store_that_panics_when_it_is_dropped_costs_no_lease() {
    let process = Process::new().await;
    process.store.next(Bug::GetDrop);
    // Without a limit: on a busy machine, the time of this world passes before the keeper can run.
    let request = process.coordinator.lease("k").unwrap().ttl(TTL);
    let mut acquiring = std::pin::pin!(request.acquire());
    let lease = loop {
        tokio::select! {
            lease = &mut acquiring => break lease,
            () = process.world.pass(TTL / 5) => {}
        }
    };
    lease.unwrap().release().await.unwrap();
    assert!(process.store.is_over());
    process.is_well().await;
}

#[tokio::test]
async fn a_store_that_panics_for_an_observer_gives_an_error_and_costs_no_lease() {
    for bug in [Bug::GetCall, Bug::GetPoll, Bug::GetError, Bug::ListCall, Bug::ListPoll] {
        let process = Process::new().await;
        process.store.next(bug);
        let error = match bug {
            Bug::ListCall | Bug::ListPoll => process.coordinator.list(&Prefix::all()).await.unwrap_err(),
            _ => process.coordinator.observe("healthy").await.unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{bug:?}: {error}");
        let sentence = error.to_string();
        for word in ["buggy:", "panicked: a bug in a store, on purpose"] {
            assert!(sentence.contains(word), "{bug:?}: {word:?} in {sentence}");
        }
        process.is_well().await;
    }
}

#[tokio::test]
async fn a_store_that_panics_while_it_declares_its_guarantees_has_none() {
    for bug in [Bug::Guarantees, Bug::Administration] {
        let process = Process::new().await;
        let lease = process.coordinator.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        lease.release().await.unwrap();
        process.store.next(bug);
        let error = process.coordinator.forget("k", Duration::ZERO).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{bug:?}: {error}");
        process.is_well().await;
    }
}

#[tokio::test]
async fn a_store_that_panics_instead_of_giving_hints_costs_the_hints_and_no_lease() {
    for bug in [Bug::WatchCall, Bug::WatchPoll] {
        let process = Process::new().await;
        let held = process.world.process("other").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
        process.store.next(bug);
        let request = process.coordinator.lease("k").unwrap().ttl(TTL).wait(4 * TTL);
        let release = async {
            process.world.pass(TTL).await;
            held.release().await.unwrap();
            process.world.pass(TTL).await;
        };
        let (lease, ()) = tokio::join!(request.acquire(), release);
        lease.unwrap().release().await.unwrap();
        assert!(process.store.is_over(), "{bug:?} was never met");
        process.is_well().await;
    }
}

/// Panics at every call.
#[derive(Debug, Default)]
struct Panicky(AtomicU64);

impl Panicky {
    fn told(&self) -> ! {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("a bug in a recorder, on purpose");
    }
}

impl Recorder for Panicky {
    fn attempt(&self, _: &AttemptReport) {
        self.told();
    }

    fn event(&self, _: &EventReport) {
        self.told();
    }
}

#[tokio::test]
async fn a_recorder_that_panics_receives_the_next_report_too_and_costs_no_lease() {
    let world = World::new();
    let recorder = Arc::new(Panicky::default());
    let a = Coordinator::builder()
        .clock(Arc::new(world.clock.clone()))
        .recorder(Arc::clone(&recorder) as Arc<dyn Recorder>)
        .connect(world.memory.clone())
        .await
        .unwrap();
    let lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    world.pass(5 * TTL).await;
    lease.check().unwrap();
    eventually("each renewal is reported", || recorder.0.load(Ordering::SeqCst) > 30).await;
    lease.release().await.unwrap();
}
