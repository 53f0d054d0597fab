//! Once per period: at most one successful run, by the store's own clock.

mod support;

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{Clock, ManualClock, WallTime};
use tenure::store::Memory;
use tenure::store::memory::PutFault;
use tenure::{Coordinator, Denied, Doubt, Error, ErrorKind, Holder, Lease, Request};
use tenure_store::StoreClock;

use support::{World, spawn};

const TTL: Duration = Duration::from_secs(15);
const HOUR: Duration = Duration::from_secs(3_600);
const PERIOD: Duration = Duration::from_secs(20 * 3_600);

fn request(coordinator: &Coordinator) -> Request {
    coordinator.lease("backup").unwrap().ttl(TTL).once_per(PERIOD)
}

/// Runs the job, and reports its success.
async fn succeed(lease: Lease) {
    lease.succeeded().await.unwrap();
    lease.release().await.unwrap();
}

fn is_not_due(error: &Error) -> bool {
    matches!(error.denied(), Some(Denied::NotDue { .. }))
}

/// A machine with clocks of its own.
struct Machine {
    clock: ManualClock,
    coordinator: Coordinator,
    /// The time at which its crontab fires, behind 02:00 by the store's clock.
    fires_after: Duration,
}

/// Machines with the same crontab, whose wall clocks are behind by these times, and a store with its own clock.
struct Fleet {
    store_clock: ManualClock,
    machines: Vec<Machine>,
}

impl Fleet {
    async fn new(behind: &[Duration]) -> Self {
        let store_clock = ManualClock::new();
        let memory =
            Memory::builder().clock(Arc::new(store_clock.clone())).store_clock(StoreClock::Floors).build();
        let mut machines = Vec::new();
        for (index, behind) in behind.iter().enumerate() {
            let clock = ManualClock::new();
            let wall = clock.wall().as_millis() - behind.as_millis() as u64;
            clock.set_wall(WallTime::from_millis(wall));
            let holder = Holder::new(&format!("machine-{index}")).unwrap();
            let builder = Coordinator::builder().clock(Arc::new(clock.clone())).holder(holder);
            let coordinator = builder.connect(memory.clone()).await.unwrap();
            machines.push(Machine { clock, coordinator, fires_after: *behind });
        }
        Self { store_clock, machines }
    }

    fn pass(&self, span: Duration) {
        self.store_clock.advance(span);
        for machine in &self.machines {
            machine.clock.advance(span);
        }
    }

    /// Lets the crontab of every machine fire once, in the order of their clocks, and counts the successful runs.
    async fn night(&self, once_per: Option<Duration>) -> u32 {
        let mut runs = 0;
        let mut passed = Duration::ZERO;
        for machine in &self.machines {
            self.pass(machine.fires_after - passed);
            passed = machine.fires_after;
            let request = machine.coordinator.lease("backup").unwrap().ttl(TTL);
            let request = match once_per {
                Some(period) => request.once_per(period),
                None => request,
            };
            match request.try_acquire().await {
                Ok(lease) => {
                    succeed(lease).await;
                    runs += 1;
                }
                Err(error) => assert!(is_not_due(&error), "{error}"),
            }
        }
        self.pass(24 * HOUR - passed);
        runs
    }
}

#[tokio::test]
async fn on_two_machines_with_skewed_crontabs_a_hundred_nights_are_a_hundred_runs() {
    for minutes in [0, 1, 7, 29] {
        let fleet = Fleet::new(&[Duration::ZERO, Duration::from_secs(60 * minutes)]).await;
        let mut runs = 0;
        for _ in 0..100 {
            runs += fleet.night(Some(PERIOD)).await;
        }
        assert_eq!(runs, 100, "{minutes} minutes");
    }
    let fleet = Fleet::new(&[Duration::ZERO, Duration::from_secs(60)]).await;
    assert_eq!(fleet.night(None).await, 2, "a lease alone does not prevent the second run");
}

#[tokio::test]
async fn a_skipped_run_costs_one_read_and_says_when_the_next_one_may_begin() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    let lease = request(&a).acquire().await.unwrap();
    let token = lease.token();
    succeed(lease).await;
    world.clock.advance(HOUR + Duration::from_millis(1));
    let before = world.memory.calls();
    // Without a wait, although it may wait.
    let error = request(&b).acquire().await.unwrap_err();
    assert_eq!(world.calls_since(before), (1, 0));
    assert_eq!(error.kind(), ErrorKind::Held);
    assert_eq!(
        error.to_string(),
        format!(
            "lease backup on memory: is not due for b: its last successful run (token {token}) began 3600s ago by the \
             store's clock. Try again in 68400s, or use a period of zero"
        )
    );
    let Some(Denied::NotDue { since, left, .. }) = error.denied() else { panic!("{error:?}") };
    assert_eq!((since.as_secs(), left.as_secs_f64().round()), (3_600, 68_400.0));
    world.clock.advance(19 * HOUR - Duration::from_millis(2));
    assert!(is_not_due(&request(&b).try_acquire().await.unwrap_err()));
    world.clock.advance(Duration::from_millis(3));
    succeed(request(&b).try_acquire().await.unwrap()).await;
    assert!(is_not_due(&request(&a).try_acquire().await.unwrap_err()), "the period begins anew");
}

#[tokio::test]
async fn a_run_that_failed_or_whose_holder_died_does_not_count() {
    let world = World::new();
    let (a, b) = (world.process("a").await, world.process("b").await);
    request(&a).acquire().await.unwrap().release().await.unwrap();
    let lease = request(&b).try_acquire().await.expect("the run of a failed");
    // Its store is unreachable until the lease has run out, and the success cannot be written.
    lease.succeeded().await.unwrap();
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    let (released, ()) = tokio::join!(lease.release(), world.pass(2 * TTL));
    released.unwrap_err();
    world.memory.faults().clear();
    let (lease, ()) = tokio::join!(request(&a).acquire(), world.pass(2 * TTL));
    let lease = lease.expect("the success of b was not recorded");
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    world.pass(2 * TTL).await;
    assert_eq!(
        lease.succeeded().await.unwrap_err().kind(),
        ErrorKind::Lost,
        "it was lost before the work was done"
    );
    world.memory.faults().clear();
    drop(lease);
    let (lease, ()) = tokio::join!(request(&b).acquire(), world.pass(2 * TTL));
    succeed(lease.expect("the run of a was lost")).await;
    assert!(is_not_due(&request(&a).try_acquire().await.unwrap_err()));
}

#[tokio::test]
async fn a_contender_that_waits_is_skipped_after_a_success_and_granted_after_a_failure() {
    for succeeds in [true, false] {
        let world = World::new();
        let (a, b) = (world.process("a").await, world.process("b").await);
        let lease = request(&a).acquire().await.unwrap();
        let waiting = spawn({
            let request = request(&b);
            async move { request.acquire().await }
        });
        world.pass(TTL).await;
        assert!(!waiting.is_finished());
        if succeeds {
            lease.succeeded().await.unwrap();
        }
        lease.release().await.unwrap();
        world.pass(TTL).await;
        let answer = waiting.await.unwrap();
        assert_eq!(answer.is_err_and(|error| is_not_due(&error)), succeeds);
    }
}

#[tokio::test]
async fn a_success_stays_in_the_record_through_later_terms_and_a_lost_answer() {
    let world = World::new();
    let a = world.process("a").await;
    let lease = request(&a).acquire().await.unwrap();
    lease.succeeded().await.unwrap();
    world.memory.faults().next_put(PutFault::LoseAnswer);
    let (released, ()) = tokio::join!(lease.release(), world.pass(TTL / 2));
    released.unwrap();
    let last = a.record("backup").await.unwrap().unwrap().last_success.expect("it was read back");
    assert_eq!(last.token, lease.token());
    // Terms without a report, with and without a period.
    let plain = || a.lease("backup").unwrap().ttl(TTL);
    for request in [plain(), plain().once_per(Duration::ZERO)] {
        let lease = request.acquire().await.unwrap();
        world.pass(TTL).await;
        assert_eq!(a.record("backup").await.unwrap().unwrap().last_success, Some(last), "while held");
        lease.release().await.unwrap();
        assert_eq!(a.record("backup").await.unwrap().unwrap().last_success, Some(last));
    }
}

#[tokio::test]
async fn if_the_clocks_are_far_apart_nothing_is_skipped_silently_and_a_run_that_is_due_is_granted() {
    for (ahead, is_clear) in [(HOUR / 2, true), (2 * HOUR, false)] {
        let fleet = Fleet::new(&[Duration::ZERO]).await;
        let a = &fleet.machines[0].coordinator;
        succeed(request(a).acquire().await.unwrap()).await;
        // The store's clock jumps, and the machine's does not. An answer from before that is too old by then.
        fleet.pass(2 * TTL);
        let wall = fleet.store_clock.wall().as_millis() + ahead.as_millis() as u64;
        fleet.store_clock.set_wall(WallTime::from_millis(wall));
        let error = request(a).try_acquire().await.unwrap_err();
        assert_eq!(is_not_due(&error), is_clear, "{error}");
        if !is_clear {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            for part in ["it is not due, but the clocks", "differ by 7200s", "Set the clocks"] {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
        request(a).once_per(Duration::ZERO).try_acquire().await.unwrap().release().await.unwrap();
        fleet.pass(PERIOD);
        drop(request(a).try_acquire().await.expect("it is due, whatever the wall clock says"));
    }
}

/// The store's clock was ahead, a run was recorded, and the clock was corrected.
#[tokio::test]
async fn a_success_in_the_future_is_reported_instead_of_skipping_forever() {
    let fleet = Fleet::new(&[Duration::ZERO]).await;
    let a = &fleet.machines[0].coordinator;
    succeed(request(a).acquire().await.unwrap()).await;
    let machine = &fleet.machines[0].clock;
    machine.set_wall(WallTime::from_millis(machine.wall().as_millis() - 48 * 3_600_000));
    let error = request(a).try_acquire().await.unwrap_err();
    assert!(matches!(error.denied(), Some(Denied::Unclear(Doubt::WallApart(_)))), "{error}");
}

#[tokio::test]
async fn a_store_without_a_clock_is_refused_in_words() {
    let world = World::with_store_clock(StoreClock::Nothing);
    let a = world.process("a").await;
    let error = request(&a).try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("because the store has no clock that all holders share"), "{error}");
    let lease = a.lease("backup").unwrap().ttl(TTL).acquire().await.unwrap();
    let error = lease.succeeded().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("cannot be recorded"), "{error}");
    lease.release().await.unwrap();
}

#[tokio::test]
async fn the_success_of_a_resumed_term_counts_from_its_token() {
    let world = World::new();
    let a = world.process("a").await;
    let handle = request(&a).acquire_handle().await.unwrap();
    let lease = world.process("b").await.resume(&handle).await.unwrap();
    succeed(lease).await;
    let last = a.record("backup").await.unwrap().unwrap().last_success.unwrap();
    assert_eq!((last.token, last.began.as_micros()), (handle.token(), handle.token().get()));
    world.clock.advance(HOUR);
    assert!(is_not_due(&request(&a).try_acquire().await.unwrap_err()));
}

#[tokio::test]
async fn a_success_that_another_holder_or_a_deletion_prevents_is_reported_by_the_release() {
    for deleted in [true, false] {
        let world = World::new();
        let (a, b) = (world.process("a").await, world.process("b").await);
        let lease = request(&a).acquire().await.unwrap();
        let _thief = if deleted {
            world.memory.delete(lease.key());
            None
        } else {
            Some(b.lease("backup").unwrap().ttl(TTL).take_now("a test").acquire().await.unwrap())
        };
        // Whether the loss is known by now or not.
        let reported = match lease.succeeded().await {
            Ok(()) => lease.release().await,
            error => error,
        };
        assert_eq!(reported.unwrap_err().kind(), ErrorKind::Lost, "deleted: {deleted}");
    }
}

#[tokio::test]
async fn a_store_whose_clock_is_not_set_grants_no_period_except_zero() {
    let world = World::new();
    world.clock.set_wall(WallTime::from_millis(1_000));
    let a = world.process("a").await;
    let error = request(&a).try_acquire().await.unwrap_err();
    assert!(matches!(error.denied(), Some(Denied::Unclear(Doubt::NoTime))), "{error}");
    let lease = request(&a).once_per(Duration::ZERO).try_acquire().await.unwrap();
    assert_eq!(lease.succeeded().await.unwrap_err().kind(), ErrorKind::Unsupported);
}
