//! Leases on plain threads: no test here has a runtime, unless it says so.

mod file_support;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure::blocking::{Coordinator, Lease, Request};
use tenure::clock::{BootClock, ManualClock};
use tenure::store::Memory;
use tenure::store::memory::{GetFault, PutFault};
use tenure::{
    AttemptReport, ErrorKind, EventReport, Forgotten, GroupFull, Handle, Holder, Lost, Prefix, Recorder,
    Standing, WhyKept, WitnessPart,
};
use tenure_store::Store;

use file_support::Scratch;

/// Longer than any test: no wait ends because of it.
const TTL: Duration = Duration::from_secs(600);

/// Maximum time for an immediate action, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Calls `test` with two coordinators on one store in memory, and on one store in a directory.
fn on_each_store(test: impl Fn(&Coordinator, &Coordinator)) {
    with_each_store(|store| test(&connect(Arc::clone(&store), "one"), &connect(store, "other")));
}

fn with_each_store(test: impl Fn(Arc<dyn Store>)) {
    assert!(tokio::runtime::Handle::try_current().is_err(), "this thread has a runtime");
    let scratch = Scratch::new("blocking");
    test(Arc::new(Memory::new()));
    test(Arc::new(scratch.store()));
}

fn connect(store: impl Store, name: &str) -> Coordinator {
    Coordinator::builder().holder(Holder::new(name).unwrap()).connect(store).unwrap()
}

fn request(coordinator: &Coordinator) -> Request {
    coordinator.lease("k").unwrap().ttl(TTL)
}

fn acquire(coordinator: &Coordinator) -> Lease {
    request(coordinator).try_acquire().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "these are the threads of a program without an executor")]
fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(work)
}

fn assert_kind<T: std::fmt::Debug>(answer: Result<T, tenure::Error>, kind: ErrorKind) {
    let error = answer.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
}

#[test]
fn a_lease_is_acquired_renewed_and_released_and_the_next_token_is_greater() {
    on_each_store(|one, other| {
        let lease = request(one).value("v").acquire().unwrap();
        assert_eq!((lease.key().as_str(), &**lease.holder().id()), ("k", "one"));
        lease.check().unwrap();
        lease.renew().unwrap();
        assert_eq!(lease.last_error(), None);
        let lost = lease.cancellation_token();
        assert!(!lost.is_cancelled());
        lease.release().unwrap();
        assert!(lost.is_cancelled());
        assert_eq!(lease.lost(), Lost::Released);
        assert!(acquire(other).token() > lease.token());
    });
}

#[test]
fn a_renewal_by_hand_is_confirmed_by_the_store() {
    let clock = ManualClock::new();
    let builder = Coordinator::builder().clock(Arc::new(clock.clone()));
    let coordinator = builder.connect(Memory::new()).unwrap();
    let lease = request(&coordinator).manual().acquire().unwrap();
    let whole = lease.remaining();
    clock.advance(TTL / 2);
    assert_eq!(lease.remaining(), whole - TTL / 2);
    lease.renew().unwrap();
    assert_eq!(lease.remaining(), whole);
}

/// Reports every call on the store.
#[derive(Debug)]
struct Calls(Sender<()>);

impl Recorder for Calls {
    fn attempt(&self, _: &AttemptReport) {
        let _ = self.0.send(());
    }

    fn event(&self, _: &EventReport) {}
}

#[test]
fn a_thread_that_waits_in_acquire_is_granted_the_lease_on_release() {
    with_each_store(|store| {
        let held = acquire(&connect(Arc::clone(&store), "one"));
        let (calls, called) = channel();
        let other = Coordinator::builder().recorder(Arc::new(Calls(calls))).connect(store).unwrap();
        let waiting = spawn(move || request(&other).acquire());
        called.recv().expect("it has found the lease held, and waits");
        assert!(!waiting.is_finished());
        held.release().unwrap();
        assert!(waiting.join().unwrap().unwrap().token() > held.token());
    });
}

#[test]
fn a_lease_that_is_dropped_is_released() {
    on_each_store(|one, other| {
        let token = acquire(one).token();
        let next = request(other).wait(PATIENCE).acquire().unwrap();
        assert!(next.token() > token);
    });
}

#[test]
fn lost_blocks_until_the_lease_is_lost_and_says_why() {
    on_each_store(|one, other| {
        let lease = Arc::new(acquire(one));
        let (lost, loss) = channel();
        let held = Arc::clone(&lease);
        spawn(move || lost.send(held.lost()));
        // Renewals continue during the wait, and do not end it.
        lease.renew().unwrap();
        assert_eq!(loss.try_recv(), Err(TryRecvError::Empty));
        let revoking = request(other).revoke("it is needed elsewhere").wait(PATIENCE);
        let revoking = spawn(move || revoking.acquire());
        while matches!(one.observe("k").unwrap().standing, Standing::Held(_)) && !revoking.is_finished() {
            std::thread::yield_now();
        }
        // The holder finds the revocation at its next renewal.
        assert_kind(lease.renew(), ErrorKind::Lost);
        let why = loss.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(&why, Lost::Revoked { .. }), "{why:?}");
        assert!(revoking.join().unwrap().unwrap().token() > lease.token());
        assert_kind(lease.check(), ErrorKind::Lost);
    });
}

#[test]
fn release_waits_for_the_work_that_has_a_guard() {
    on_each_store(|one, _| {
        let lease = Arc::new(acquire(one));
        let guard = lease.work_guard().unwrap();
        let held = Arc::clone(&lease);
        let releasing = spawn(move || held.release());
        while lease.check().is_ok() {
            std::thread::yield_now();
        }
        assert!(one.record("k").unwrap().unwrap().is_held(), "the work goes on");
        assert!(!releasing.is_finished());
        drop(guard);
        releasing.join().unwrap().unwrap();
        assert!(!one.record("k").unwrap().unwrap().is_held());
        assert_kind(lease.work_guard(), ErrorKind::Lost);
    });
}

#[test]
fn a_handle_is_acquired_renewed_resumed_and_released() {
    on_each_store(|one, other| {
        let text = request(one).acquire_handle().unwrap().reveal();
        let handle: Handle = text.parse().unwrap();
        assert!(handle.remaining(&BootClock::new()) > TTL / 2);
        let renewed = other.renew(&handle).unwrap();
        assert_eq!(renewed.token(), handle.token());
        assert_kind(one.renew(&handle), ErrorKind::Lost);
        let lease = other.resume(&renewed).unwrap();
        assert_eq!(lease.token(), handle.token());
        assert_kind(one.release(&renewed), ErrorKind::Lost);
        lease.release().unwrap();

        let handle = request(one).acquire_handle().unwrap();
        assert_kind(request(other).try_acquire(), ErrorKind::Held);
        other.release(&handle).unwrap();
        acquire(other).release().unwrap();
    });
}

#[test]
fn an_observer_sees_who_holds_which_key() {
    on_each_store(|one, other| {
        assert!(other.record("k").unwrap().is_none());
        assert!(other.observe("k").unwrap().standing.is_free());
        let lease = request(one).value("shard-7").acquire().unwrap();
        let record = other.record("k").unwrap().unwrap();
        assert_eq!((record.token, &*record.value), (lease.token(), "shard-7"));
        assert!(other.observe("k").unwrap().standing.is_held());
        let all = Prefix::all();
        assert_eq!(other.observe_all(&all).unwrap().len(), 1);
        assert_eq!(other.list(&all).unwrap(), [lease.key().clone()]);
        assert_eq!(other.holders(&all).unwrap()[0].1.token, lease.token());
        let is_witnessed = lease.witness(WitnessPart::Guards).unwrap().is_some();
        assert_eq!(other.survivors(&record).guards, is_witnessed);
        assert_eq!(other.would_forget("k", TTL).unwrap(), Forgotten::Kept(WhyKept::Held));
        assert_eq!(other.forget("k", TTL).unwrap(), Forgotten::Kept(WhyKept::Held));
        assert_eq!((one.store_name(), &**one.holder().id()), (other.store_name(), "one"));
        assert_eq!((one.guarantees(), one.logbook_error()), (other.guarantees(), None));
    });
}

#[test]
fn errors_have_the_same_kinds_as_in_the_async_api() {
    on_each_store(|one, other| {
        let lease = acquire(one);
        assert_kind(request(other).try_acquire(), ErrorKind::Held);
        assert_kind(request(other).wait(Duration::from_millis(1)).acquire(), ErrorKind::Held);
        assert_kind(one.lease("not//a key"), ErrorKind::Invalid);
        assert_kind(request(other).revoke("").acquire(), ErrorKind::Invalid);
        assert_kind(request(other).revoke("it needs to wait").try_acquire(), ErrorKind::Invalid);
        one.shutdown().unwrap();
        for over in [lease.check(), lease.renew(), lease.release()] {
            assert_kind(over, ErrorKind::Lost);
        }
        assert_kind(request(one).acquire(), ErrorKind::Unavailable);
        acquire(other).release().unwrap();
    });
    let refused = Coordinator::builder().connect_with(|| async {
        Err::<Memory, _>(tenure_store::StoreError::refused(tenure_store::Reason::Unreachable, "no route"))
    });
    assert_kind(refused, ErrorKind::Unavailable);
}

#[test]
fn a_call_that_waits_panics_inside_an_asynchronous_task_and_works_beside_it() {
    let coordinator = Coordinator::connect(Memory::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let call = std::panic::AssertUnwindSafe(|| coordinator.record("k"));
        let panicked = std::panic::catch_unwind(call).unwrap_err();
        let words = panicked
            .downcast::<String>()
            .map(|it| *it)
            .or_else(|it| it.downcast::<&str>().map(|it| it.to_string()));
        assert!(words.unwrap().contains("from within a runtime"));
        let beside = coordinator.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "users of an executor have threads there that may block"
        )]
        let lease = tokio::task::spawn_blocking(move || acquire(&beside)).await.unwrap();
        // Neither call waits.
        lease.check().unwrap();
        drop(lease);
    });
    drop(request(&coordinator).wait(PATIENCE).acquire().unwrap());
}

#[test]
fn an_election_blocks_until_this_node_leads_and_a_shutdown_ends_the_campaign() {
    let coordinator = Coordinator::connect(Memory::new()).unwrap();
    let election = coordinator.election("k").unwrap().ttl(Duration::from_secs(2)).value("v");
    let mut campaign = election.campaign().unwrap();
    let term = campaign.next().unwrap();
    assert!(election.is_leader() && election.name().as_str() == "k");
    term.check().unwrap();
    assert!(election.resign().unwrap() && !election.is_leader());
    assert_eq!(term.lost(), Lost::Released);
    let next = campaign.next().unwrap();
    assert!(next.token() > term.token(), "alone, it leads again after three eighths of the ttl");
    drop(next);
    coordinator.shutdown().unwrap();
    assert!(campaign.next().is_err());
}

#[test]
fn a_shutdown_returns_in_time_although_the_store_hangs() {
    let (clock, memory) = (ManualClock::new(), Memory::new());
    let coordinator = Coordinator::builder().clock(Arc::new(clock.clone())).connect(memory.clone()).unwrap();
    let day = Duration::from_secs(86_400);
    let lease = coordinator.lease("k").unwrap().ttl(day).acquire().unwrap();
    memory.faults().every_put(Some(PutFault::Hang));
    memory.faults().every_get(Some(GetFault::Hang));
    let (done, is_done) = channel::<()>();
    let down = spawn(move || {
        let down = coordinator.shutdown();
        drop(done);
        down
    });
    let mut seconds = 0;
    // The keeper may be slow to learn of the shutdown, but not for half a day of milliseconds.
    while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(Duration::from_millis(1)) {
        clock.advance(Duration::from_secs(1));
        seconds += 1;
        assert!(seconds < day.as_secs() / 2, "it waits for the ttl");
    }
    assert_kind(down.join().unwrap(), ErrorKind::Unavailable);
    assert!(lease.check().is_err());
}

#[test]
fn a_set_of_leases_is_held_together_and_lost_together() {
    on_each_store(|one, other| {
        let set = one.all_of(["y", "x"]).unwrap().ttl(TTL).value("v").acquire().unwrap();
        set.check().unwrap();
        let keys: Vec<_> = set.tokens().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["x", "y"]);
        assert!(set.token("x").is_some() && set.remaining() > TTL / 2);
        assert_kind(other.all_of(["x", "y"]).unwrap().try_acquire(), ErrorKind::Held);
        let lost = set.cancellation_token();
        set.release().unwrap();
        assert!(lost.is_cancelled());
        assert_eq!(set.lost().why, Lost::Released);
        assert_kind(set.check(), ErrorKind::Lost);
        other.all_of(["x", "y"]).unwrap().ttl(TTL).try_acquire().unwrap().release().unwrap();
        assert_kind(one.all_of(["x", "x"]), ErrorKind::Invalid);
    });
}

#[test]
fn a_full_group_of_slots_names_its_holders_and_a_waiting_thread_is_granted_the_slot_that_is_freed() {
    with_each_store(|store| {
        let (one, other) = (connect(Arc::clone(&store), "one"), connect(store, "other"));
        let slots = |of: &Coordinator| of.slots("gpu", 2).unwrap().ttl(TTL);
        let first = slots(&one).value("v").acquire().unwrap();
        let second = slots(&one).try_acquire().unwrap();
        assert_eq!((first.group().as_str(), first.index() + second.index()), ("gpu", 1));
        first.check().unwrap();

        let full = slots(&other).try_acquire().unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Held, "{full}");
        assert_eq!(GroupFull::of(&full).unwrap().holders.len(), 2);
        let group = other.slot_group("gpu").unwrap();
        assert_eq!((group.size().unwrap(), group.holders().unwrap().len()), (Some(2), 2));
        assert_eq!(other.slot_groups().unwrap(), [group.name().clone()]);

        let request = slots(&other).wait(PATIENCE);
        let waiting = spawn(move || request.acquire());
        first.release().unwrap();
        let third = waiting.join().unwrap().unwrap();
        assert_eq!(third.index(), first.index());
        let third = third.into_lease();
        assert!(third.token() > first.token());
        // Dropping it would release it later.
        third.release().unwrap();
        assert_eq!(first.lost(), Lost::Released);

        let mut request = slots(&one);
        assert_eq!((request.resize(3).unwrap(), request.size().unwrap()), (2, Some(3)));
        assert_kind(slots(&other).try_acquire(), ErrorKind::Invalid);
        assert_eq!(request.holders().unwrap()[0].index, second.index());
        assert_kind(one.slots("gpu", 0), ErrorKind::Invalid);
    });
}
