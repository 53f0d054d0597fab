use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{join_all, pending};
use tenure_store::{Reason, StoreError};
use tokio::sync::Notify;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

/// A clock that a test sets forward, as a suspend does.
#[derive(Debug, Default)]
struct SetClock(AtomicU64);

impl BootTime for SetClock {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

/// One fetch: credentials with a lifetime, an error, or a wait.
enum Script {
    Give(&'static str, Option<Duration>),
    Fail(Reason),
    GiveLater(Arc<Notify>, &'static str),
    Hang,
}
use Script::{Fail, Give, GiveLater, Hang};

struct World {
    kept: KeptCredentials<&'static str>,
    clock: Arc<SetClock>,
    fetches: Arc<AtomicU64>,
}

impl World {
    fn new(scripts: impl IntoIterator<Item = Script>) -> Self {
        let scripts: Mutex<VecDeque<Script>> = Mutex::new(scripts.into_iter().collect());
        let (clock, fetches) = (Arc::new(SetClock::default()), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&fetches);
        let fetch = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let script = scripts.lock().unwrap().pop_front().expect("another fetch");
            let fetched = |text, lifetime| Ok(Fetched { credential: Arc::new(text), lifetime });
            Box::pin(async move {
                match script {
                    Give(text, lifetime) => fetched(text, lifetime),
                    Fail(reason) => Err(FetchError::new(reason, "told so")),
                    GiveLater(gate, text) => {
                        gate.notified().await;
                        fetched(text, Some(HOUR))
                    }
                    Hang => pending().await,
                }
            }) as _
        };
        Self { kept: KeptCredentials::with_clock(Box::new(fetch), clock.clone()), clock, fetches }
    }

    fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(time.as_secs(), Ordering::Relaxed);
    }

    fn fetches(&self) -> u64 {
        self.fetches.load(Ordering::Relaxed)
    }

    async fn get(&self) -> Result<&'static str, Reason> {
        match self.kept.get_credential().await {
            Ok(credential) => Ok(*credential),
            Err(error) => match FetchError::within(&error).expect("the cause").into() {
                StoreError::Refused(refused) => Err(refused.reason),
                other => panic!("{other}"),
            },
        }
    }
}

#[tokio::test]
async fn credentials_are_fetched_once_and_again_before_they_expire() {
    let world = World::new([Give("first", Some(HOUR)), Give("second", Some(HOUR))]);
    assert_eq!(world.get().await, Ok("first"));
    world.pass(HOUR - 5 * MINUTE - Duration::from_secs(1));
    assert_eq!((world.get().await, world.fetches()), (Ok("first"), 1));
    // The refresh has its place in more than a minute.
    world.pass(80 * Duration::from_secs(1));
    assert_eq!((world.get().await, world.fetches()), (Ok("second"), 2));
}

#[tokio::test]
async fn a_refresh_that_fails_leaves_the_old_credentials_until_they_expire() {
    let failures = [Fail(Reason::Unreachable), Fail(Reason::Denied), Fail(Reason::Denied)];
    let world = World::new([Give("first", Some(HOUR))].into_iter().chain(failures));
    world.get().await.unwrap();
    world.pass(HOUR - 3 * MINUTE);
    assert_eq!((world.get().await, world.fetches()), (Ok("first"), 2));
    assert_eq!((world.get().await, world.fetches()), (Ok("first"), 2), "there is a pause first");
    world.pass(MINUTE);
    assert_eq!((world.get().await, world.fetches()), (Ok("first"), 3));
    world.pass(2 * MINUTE);
    assert_eq!((world.get().await, world.fetches()), (Err(Reason::Denied), 4));
}

#[tokio::test]
async fn a_suspend_counts() {
    let world = World::new([Give("first", Some(HOUR)), Give("second", Some(HOUR))]);
    world.get().await.unwrap();
    world.pass(8 * HOUR);
    assert_eq!(world.get().await, Ok("second"));
}

#[tokio::test]
async fn a_service_that_is_down_at_first_is_asked_again_by_the_next_call() {
    let world = World::new([Fail(Reason::Unreachable), Give("first", Some(HOUR))]);
    assert_eq!(world.get().await, Err(Reason::Unreachable));
    assert_eq!(world.get().await, Ok("first"));
}

#[tokio::test]
async fn refused_credentials_are_dropped_and_those_that_replaced_them_are_not() {
    let world = World::new([Give("first", Some(HOUR)), Give("second", Some(HOUR))]);
    world.get().await.unwrap();
    world.pass(MINUTE);
    let began = [world.kept.mark(), world.kept.mark()];
    assert!(world.kept.refused(began[0]), "the next call may have more success");
    assert_eq!(world.get().await, Ok("second"));
    // Signed with the first, and answered after the second came.
    assert!(world.kept.refused(began[1]), "the next call may have more success");
    assert_eq!((world.get().await, world.fetches()), (Ok("second"), 2));
}

#[tokio::test]
async fn a_refusal_that_arrives_after_a_refresh_does_not_blame_the_new_credentials() {
    let world = World::new([Give("first", Some(HOUR)), Give("second", Some(HOUR))]);
    world.get().await.unwrap();
    let began = world.kept.mark();
    world.pass(HOUR - MINUTE);
    assert_eq!(world.get().await, Ok("second"));
    assert!(world.kept.refused(began), "the next call uses others");
    assert_eq!((world.get().await, world.fetches()), (Ok("second"), 2));
    assert!(!world.kept.refused(world.kept.mark()), "those are refused themselves");
}

#[tokio::test]
async fn credentials_that_are_refused_when_they_are_new_are_wrong() {
    let world = World::new([Give("wrong", Some(HOUR)), Give("wrong", Some(HOUR))]);
    let began = world.kept.mark();
    world.get().await.unwrap();
    assert!(!world.kept.refused(began), "the next ones are wrong too");
    world.get().await.unwrap();
    assert_eq!(world.fetches(), 2, "but they are fetched");
}

#[tokio::test]
async fn calls_share_a_fetch_and_a_refresh() {
    let world = World::new([Give("first", Some(HOUR)), Give("second", Some(HOUR))]);
    let all = || join_all((0..10).map(|_| world.get()));
    assert_eq!(all().await, [Ok("first"); 10]);
    assert_eq!(world.fetches(), 1);
    world.pass(HOUR - MINUTE);
    assert_eq!(all().await, [Ok("second"); 10]);
    assert_eq!(world.fetches(), 2);
}

#[tokio::test]
async fn a_slow_refresh_holds_up_one_call_for_a_moment_and_its_credentials_are_used_later() {
    let gate = Arc::new(Notify::new());
    let world = World::new([Give("first", Some(HOUR)), GiveLater(gate.clone(), "second")]);
    world.get().await.unwrap();
    world.pass(HOUR - MINUTE);
    assert_eq!(world.get().await, Ok("first"));
    // No other call waits: a single poll is enough.
    assert_eq!(world.get().now_or_never(), Some(Ok("first")));
    gate.notify_one();
    assert_eq!((world.get().await, world.fetches()), (Ok("second"), 2));
}

#[tokio::test]
async fn a_call_that_is_cut_off_does_not_cut_off_its_fetch() {
    let gate = Arc::new(Notify::new());
    let world = World::new([GiveLater(gate.clone(), "first")]);
    assert_eq!(world.get().now_or_never(), None);
    gate.notify_one();
    assert_eq!((world.get().await, world.fetches()), (Ok("first"), 1));
}

#[test]
fn a_fetch_of_a_runtime_that_has_ended_is_not_waited_for() {
    let world = World::new([Hang, Give("first", Some(HOUR))]);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime().block_on(async { world.get().now_or_never() }), None);
    assert_eq!(runtime().block_on(world.get()), Ok("first"));
}

#[tokio::test]
async fn credentials_without_an_expiry_are_kept_and_refreshed_now_and_then() {
    let world = World::new([Give("first", None), Fail(Reason::Unreachable), Give("second", None)]);
    world.get().await.unwrap();
    world.pass(7 * MINUTE);
    assert_eq!((world.get().await, world.fetches()), (Ok("first"), 1));
    world.pass(24 * HOUR);
    assert_eq!((world.get().await, world.fetches()), (Ok("first"), 2));
    world.pass(MINUTE);
    assert_eq!((world.get().await, world.fetches()), (Ok("second"), 3));
}

#[tokio::test]
async fn a_service_that_repeats_the_old_credentials_is_not_asked_at_every_call() {
    let world =
        World::new([Give("first", Some(HOUR)), Give("first", Some(MINUTE)), Give("second", Some(HOUR))]);
    world.get().await.unwrap();
    world.pass(HOUR - MINUTE);
    for _ in 0..5 {
        world.get().await.unwrap();
    }
    assert_eq!(world.fetches(), 2);
    world.pass(MINUTE - Duration::from_secs(2));
    assert_eq!(world.get().await, Ok("second"));
}

#[test]
fn the_refreshes_of_many_programs_are_spread() {
    let earlier = || World::new([]).kept.earlier_by_chance(AHEAD_MAX, 1);
    let all: Vec<Duration> = (0..100).map(|_| earlier()).collect();
    let (first, last) = (all.iter().min().unwrap(), all.iter().max().unwrap());
    assert!(*last <= AHEAD_MAX && *first >= AHEAD_MAX * 3 / 4, "{first:?} {last:?}");
    assert!(*last - *first > AHEAD_MAX / 8, "{first:?} {last:?}");
}
