//! Stopping in time: no work continues after the lease is lost, and no release happens under running work.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use tenure::record::{self, State};
use tenure::store::memory::{GetFault, PutFault};
use tenure::{Coordinator, Error, ErrorKind, Key, Lease, Lost};

use support::{World, eventually, real_pause};

const TTL: Duration = Duration::from_secs(15);

fn state_of(world: &World) -> State {
    let bytes = world.memory.contents(&Key::parse("k").unwrap()).expect("there is a record");
    record::decode(&bytes).expect("it is one of ours").state
}

async fn held(world: &World) -> Lease {
    world.process("a").await.lease("k").unwrap().ttl(TTL).acquire().await.unwrap()
}

/// Records that it was dropped.
#[derive(Clone, Debug, Default)]
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn work_is_dropped_the_moment_the_lease_is_lost_and_never_polled_again() {
    let world = World::new();
    let lease = held(&world).await;
    world.memory.faults().every_put(Some(PutFault::LoseRequest));
    let dropped = Dropped::default();
    let seen = Arc::clone(&dropped.0);
    let polls = Arc::new(AtomicU32::new(0));
    let work = {
        let polls = Arc::clone(&polls);
        async move {
            let _dropped = dropped;
            loop {
                polls.fetch_add(1, Ordering::SeqCst);
                real_pause(Duration::from_millis(1)).await;
            }
        }
    };
    let (ended, polled) = tokio::join!(lease.run(work), async {
        world.pass(TTL).await;
        eventually("the work is dropped", || seen.load(Ordering::SeqCst)).await;
        polls.load(Ordering::SeqCst)
    });
    let error = ended.map(|(): ()| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.to_string().contains("lease k of a (token"), "{error}");
    assert!(
        error.to_string().ends_with("is lost, stop acting: no renewal was confirmed before the deadline"),
        "{error}"
    );
    real_pause(Duration::from_millis(20)).await;
    assert_eq!(polls.load(Ordering::SeqCst), polled);
}

#[tokio::test]
async fn work_that_wakes_up_late_is_not_polled_even_if_no_timer_fired() {
    let world = World::new();
    let lease = held(&world).await;
    let polled = AtomicBool::new(false);
    // The keeper cannot act between the jump of the clock and the poll.
    world.memory.faults().every_put(Some(PutFault::Hang));
    world.clock.advance(TTL);
    let ended = lease.run(async { polled.store(true, Ordering::SeqCst) }).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Lost);
    assert!(!polled.load(Ordering::SeqCst));
    assert_eq!(lease.remaining(), Duration::ZERO);
}

#[tokio::test]
async fn release_may_be_called_from_inside_run_and_ends_it() {
    let world = World::new();
    let lease = held(&world).await;
    let ended = lease
        .run(async {
            lease.release().await.unwrap();
            unreachable!("the work is dropped before the vacate is written");
        })
        .await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Lost);
    eventually("the lease is vacated", || state_of(&world) == State::Vacant).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn release_waits_until_blocking_work_has_been_dropped() {
    let world = World::new();
    let lease = Arc::new(held(&world).await);
    let (worker, go_on) = blocked_under(&lease).await;
    let release = spawn({
        let lease = Arc::clone(&lease);
        async move { lease.release().await }
    });
    eventually("belief has ended", || lease.check().is_err()).await;
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(state_of(&world), State::Held, "nothing is vacated under work that still goes on");
    go_on.store(true, Ordering::SeqCst);
    worker.await.unwrap();
    release.await.unwrap().unwrap();
    assert_eq!(state_of(&world), State::Vacant);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn if_the_work_never_ends_the_lease_lapses_instead_of_being_vacated() {
    let world = World::new();
    let lease = Arc::new(held(&world).await);
    let (worker, go_on) = blocked_under(&lease).await;
    let (released, ()) = tokio::join!(lease.release(), world.pass(2 * TTL));
    let error = released.unwrap_err();
    assert!(error.to_string().contains("could not be vacated: it has lapsed"), "{error}");
    assert_eq!(state_of(&world), State::Held, "it runs out by itself");
    go_on.store(true, Ordering::SeqCst);
    worker.await.unwrap();
}

/// Starts work under the lease that blocks until the flag is set; returns after the work has begun.
async fn blocked_under(lease: &Arc<Lease>) -> (tokio::task::JoinHandle<()>, Arc<AtomicBool>) {
    let (begun, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let worker = spawn({
        let (lease, begun, go_on) = (Arc::clone(lease), Arc::clone(&begun), Arc::clone(&go_on));
        async move {
            let _ = lease.run(async move { block_until(&begun, &go_on) }).await;
        }
    });
    eventually("the work has begun", || begun.load(Ordering::SeqCst)).await;
    (worker, go_on)
}

/// Blocking code, as users write it.
fn block_until(begun: &AtomicBool, go_on: &AtomicBool) {
    begun.store(true, Ordering::SeqCst);
    while !go_on.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn dropping_a_lease_ends_belief_at_once_and_vacates_in_the_background() {
    let world = World::new();
    let lease = held(&world).await;
    let cancelled = lease.cancellation_token();
    drop(lease);
    assert!(cancelled.is_cancelled());
    eventually("the lease is vacated", || state_of(&world) == State::Vacant).await;
}

#[tokio::test]
async fn the_cancellation_token_reports_the_loss_and_cannot_cause_one() {
    let world = World::new();
    let lease = held(&world).await;
    lease.cancellation_token().cancel();
    assert!(lease.check().is_ok(), "each caller gets its own token");
    let token = lease.cancellation_token();
    world.memory.delete(&Key::parse("k").unwrap());
    let (lost, ()) = tokio::join!(lease.lost(), world.pass(TTL));
    assert_eq!(lost, Lost::Deleted);
    assert!(token.is_cancelled());
}

#[tokio::test]
async fn many_tasks_share_one_lease_and_all_of_them_stop() {
    fn assert_shareable<T: Send + Sync + 'static>(_: &T) {}
    let world = World::new();
    let lease = Arc::new(held(&world).await);
    assert_shareable(&*lease);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let lease = Arc::clone(&lease);
            spawn(async move { lease.run(std::future::pending::<()>()).await })
        })
        .collect();
    world.settle().await;
    lease.release().await.unwrap();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap_err().kind(), ErrorKind::Lost);
    }
}

#[tokio::test]
async fn every_renewal_is_delivered_and_none_is_skipped() {
    let world = World::new();
    let lease = held(&world).await;
    let renewals = lease.renewals();
    world.pass(5 * TTL).await;
    lease.release().await.unwrap();
    assert_eq!(lease.renewals().count().await, 0, "the stream of a lost lease ends at once");
    let counts: Vec<_> = renewals.map(|renewal| renewal.count).collect().await;
    assert!(counts.len() >= 15, "{counts:?}");
    assert_eq!(counts, (1..=counts.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_manual_lease_is_not_renewed_by_the_keeper_and_nothing_revives_it() {
    let world = World::new();
    let lease = world.process("a").await.lease("k").unwrap().ttl(TTL).manual().acquire().await.unwrap();
    for _ in 0..4 {
        world.pass(TTL * 2 / 3).await;
        lease.renew().await.unwrap();
    }
    world.pass(TTL).await;
    let error = lease.renew().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert_eq!(lease.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn shutdown_releases_every_lease_and_grants_no_more() {
    let world = World::new();
    let a = world.process("a").await;
    let one = a.lease("one").unwrap().acquire().await.unwrap();
    let two = a.lease("two").unwrap().acquire().await.unwrap();
    let error_while_waiting = {
        let b = world.process("b").await;
        let (waiting, down) = tokio::join!(b.lease("one").unwrap().acquire(), async {
            world.settle().await;
            b.shutdown().await
        });
        down.unwrap();
        waiting.unwrap_err()
    };
    assert_eq!(error_while_waiting.kind(), ErrorKind::Unavailable);
    a.shutdown().await.unwrap();
    assert!(one.check().is_err() && two.check().is_err());
    assert_eq!(a.holders(&tenure::Prefix::all()).await.unwrap(), vec![]);
    let refused = a.lease("one").unwrap().acquire().await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "lease one on memory: is not granted: the coordinator is shut down. Connect again"
    );
}

/// The error of a shutdown that takes as long as it may, and no longer.
async fn slow_shutdown(world: &World, coordinator: &Coordinator) -> Error {
    let coordinator = coordinator.clone();
    let down = spawn(async move { coordinator.shutdown().await });
    world.settle().await;
    world.pass(Coordinator::SHUTDOWN_MAX - Duration::from_secs(1)).await;
    assert!(!down.is_finished(), "it waits for the release");
    world.pass(Duration::from_secs(1)).await;
    let error = down.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    error
}

#[tokio::test]
async fn a_shutdown_ends_in_time_although_the_store_hangs_and_the_ttl_is_long() {
    let world = World::new();
    let a = world.process("a").await;
    let hour = Duration::from_secs(3_600);
    let lease = a.lease("k").unwrap().ttl(hour).acquire().await.unwrap();
    world.memory.faults().every_put(Some(PutFault::Hang));
    world.memory.faults().every_get(Some(GetFault::Hang));
    let error = slow_shutdown(&world, &a).await;
    assert_eq!(
        error.to_string(),
        format!(
            "lease k of a (token {}) on memory: could not be vacated within 10s: it lapses, and contenders wait for its \
             ttl of 3600s",
            lease.token()
        )
    );
    let source = std::error::Error::source(&error).expect("the store has failed");
    assert!(source.to_string().contains("no answer"), "{source}");
    assert_eq!(lease.lost().await, Lost::Released);
    assert_eq!(state_of(&world), State::Held);
}

#[tokio::test]
async fn a_shutdown_of_several_leases_on_a_store_that_hangs_counts_them() {
    let world = World::new();
    let a = world.process("a").await;
    let mut leases = vec![];
    for key in ["k", "l", "m"] {
        leases.push(a.lease(key).unwrap().ttl(4 * TTL).acquire().await.unwrap());
    }
    world.memory.faults().every_put(Some(PutFault::Hang));
    world.memory.faults().every_get(Some(GetFault::Hang));
    let error = slow_shutdown(&world, &a).await;
    let sentence = "3 leases on memory: could not be vacated: contenders wait until they have lapsed";
    assert_eq!(error.to_string(), sentence);
}

#[tokio::test]
async fn a_shutdown_ends_in_time_although_work_runs_and_vacates_only_after_the_work() {
    let world = World::new();
    let a = world.process("a").await;
    let lease = a.lease("k").unwrap().ttl(4 * TTL).acquire().await.unwrap();
    let work = lease.work_guard().unwrap();
    let error = slow_shutdown(&world, &a).await;
    assert!(error.to_string().contains("because work under it still runs: stop the work"), "{error}");
    assert_eq!(state_of(&world), State::Held, "nothing is vacated under running work");
    drop(work);
    eventually("it is vacated after the work", || state_of(&world) == State::Vacant).await;
    a.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_work_that_cannot_be_stopped_and_its_record_is_kept() {
    let world = World::new();
    let a = world.process("a").await;
    let lease = a.lease("k").unwrap().ttl(TTL).acquire().await.unwrap();
    let work = lease.work_guard().unwrap();
    work.cannot_stop("it belongs to another user");
    let error = slow_shutdown(&world, &a).await;
    assert!(error.to_string().contains("because work under it still runs"), "{error}");
    world.pass(3 * TTL).await;
    let b = world.process("b").await;
    assert_eq!(b.lease("k").unwrap().try_acquire().await.unwrap_err().kind(), ErrorKind::Held);
    drop(work);
    eventually("it is vacated after the work", || state_of(&world) == State::Vacant).await;
}

#[expect(clippy::disallowed_methods, reason = "users spawn")]
fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::task::spawn(work)
}
