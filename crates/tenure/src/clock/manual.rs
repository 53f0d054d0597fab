use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tenure_store::BoxFuture;

use super::{Clock, Domain, Instant, WallTime};

/// A clock that stands still until a test moves it. Clones are the same clock.
///
/// Sleepers in any thread wake when time has passed their instant; a sleep may be dropped at any time.
/// [`advance`](Self::advance) moves the wall time too. [`set_wall`](Self::set_wall) steps the wall time alone, as NTP
/// does.
///
/// ```
/// use std::time::Duration;
/// use tenure::clock::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let start = clock.now();
/// clock.advance(Duration::from_secs(3));
/// assert_eq!(clock.now().since(start), Duration::from_secs(3));
/// ```
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Mutex<ManualState>>,
}

struct ManualState {
    now: Instant,
    /// In nanoseconds since 1970, so that many small steps add up.
    wall_nanos: u128,
    /// Pending sleepers by instant: polled, and not due yet.
    sleepers: BTreeMap<(Instant, u64), Waker>,
    /// Distinguishes sleepers of the same instant.
    next_id: u64,
}

impl ManualClock {
    /// Start of the clock. It is not zero, so that earlier instants exist.
    const START: Instant = Instant::from_nanos(1_000 * 1_000_000_000);

    /// 2026-01-01T00:00:00Z.
    const START_WALL: WallTime = WallTime::from_millis(1_767_225_600_000);

    /// A clock that shows 1000 s since its zero, on 1 January 2026.
    pub fn new() -> Self {
        let state = ManualState {
            now: Self::START,
            wall_nanos: wall_nanos(Self::START_WALL),
            sleepers: BTreeMap::new(),
            next_id: 0,
        };
        Self { shared: Arc::new(Mutex::new(state)) }
    }

    /// Lets this much time pass, and wakes the sleepers that are due.
    pub fn advance(&self, span: Duration) {
        self.pass(|now| now + span);
    }

    /// Lets time pass until `at`; does nothing if that is in the past.
    pub fn advance_to(&self, at: Instant) {
        self.pass(|now| now.max(at));
    }

    /// Steps the wall clock forwards or backwards. No sleeper wakes.
    pub fn set_wall(&self, wall: WallTime) {
        self.lock().wall_nanos = wall_nanos(wall);
    }

    /// Number of pending sleepers.
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    /// The earliest instant of a pending sleeper.
    pub fn next_wake(&self) -> Option<Instant> {
        self.lock().sleepers.first_key_value().map(|((at, _), _)| *at)
    }

    fn pass(&self, to: impl FnOnce(Instant) -> Instant) {
        let due = {
            let mut state = self.lock();
            let then = to(state.now);
            state.wall_nanos += then.since(state.now).as_nanos();
            state.now = then;
            let waiting = match then.as_nanos().checked_add(1) {
                Some(after) => state.sleepers.split_off(&(Instant::from_nanos(after), 0)),
                None => BTreeMap::new(),
            };
            std::mem::replace(&mut state.sleepers, waiting)
        };
        // Outside the lock: a waker may run code that uses this clock.
        due.into_values().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, ManualState> {
        // A panic in another test must not turn this failure into "poisoned".
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.lock().now
    }

    fn wall(&self) -> WallTime {
        WallTime::from_millis(u64::try_from(self.lock().wall_nanos / 1_000_000).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { clock: self.clone(), at, id: None })
    }

    /// Clones are the same clock, and no other is.
    fn domain(&self) -> Option<Domain> {
        Domain::parse(&format!("manual,{:p}", Arc::as_ptr(&self.shared)))
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, sleepers) = {
            let state = self.lock();
            (state.now, state.sleepers.len())
        };
        f.debug_struct("ManualClock").field("now", &now).field("sleepers", &sleepers).finish()
    }
}

fn wall_nanos(wall: WallTime) -> u128 {
    u128::from(wall.as_millis()) * 1_000_000
}

/// One sleep. It is registered from its first poll until it is due or dropped.
struct Sleep {
    clock: ManualClock,
    at: Instant,
    id: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        // One lock covers the comparison of the instant, the storing of the waker, and the passing of time: no wake-up
        // is lost.
        let replaced = {
            let mut state = clock.lock();
            if state.now >= self.at {
                return Poll::Ready(());
            }
            let id = *self.id.get_or_insert_with(|| {
                state.next_id += 1;
                state.next_id
            });
            state.sleepers.insert((self.at, id), context.waker().clone())
        };
        // Outside the lock: the last waker of a task may drop the task, with other sleeps in it.
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let removed = self.clock.lock().sleepers.remove(&(self.at, id));
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Counter {
        fn woken(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    fn poll(sleep: &mut BoxFuture<'static, ()>, counter: &Arc<Counter>) -> Poll<()> {
        sleep.as_mut().poll(&mut Context::from_waker(&Waker::from(counter.clone())))
    }

    #[test]
    fn time_stands_still_until_it_is_moved_and_clones_are_the_same_clock() {
        let clock = ManualClock::new();
        let start = clock.now();
        assert_eq!(start, clock.now());
        assert!(start > Instant::default() + Duration::from_secs(60), "there is a past to speak of");
        clock.clone().advance(SECOND);
        assert_eq!(clock.now(), start + SECOND);
        clock.advance_to(start);
        assert_eq!(clock.now(), start + SECOND, "it never goes back");
    }

    #[test]
    fn wall_time_advances_with_the_clock_and_can_be_stepped_alone() {
        let clock = ManualClock::new();
        assert_eq!(clock.wall().to_string(), "2026-01-01T00:00:00.000Z");
        for _ in 0..4 {
            clock.advance(Duration::from_micros(250));
        }
        assert_eq!(clock.wall().to_string(), "2026-01-01T00:00:00.001Z", "small steps add up");
        let before = clock.now();
        clock.set_wall(WallTime::from_millis(1_000));
        assert_eq!((clock.now(), clock.wall()), (before, WallTime::from_millis(1_000)));
        clock.advance(SECOND);
        assert_eq!(clock.wall(), WallTime::from_millis(2_000));
    }

    #[test]
    fn a_sleeper_wakes_at_its_instant_not_before_and_only_once() {
        let clock = ManualClock::new();
        let counter = Arc::new(Counter::default());
        let mut sleep = clock.sleep_until(clock.now() + 2 * SECOND);
        assert_eq!(clock.sleepers(), 0, "it does nothing until it is polled");
        assert!(poll(&mut sleep, &counter).is_pending());
        assert_eq!((clock.sleepers(), clock.next_wake()), (1, Some(clock.now() + 2 * SECOND)));

        clock.advance(2 * SECOND - Duration::from_nanos(1));
        assert_eq!(counter.woken(), 0);
        clock.advance(Duration::from_nanos(1));
        assert_eq!((counter.woken(), clock.sleepers(), clock.next_wake()), (1, 0, None));
        clock.advance(SECOND);
        assert_eq!(counter.woken(), 1);
        assert!(poll(&mut sleep, &counter).is_ready());
    }

    #[test]
    fn an_instant_that_has_passed_completes_at_once() {
        let clock = ManualClock::new();
        assert!(clock.sleep_until(clock.now()).now_or_never().is_some());
        assert!(clock.sleep_until(Instant::default()).now_or_never().is_some());
        assert_eq!(clock.sleepers(), 0);
    }

    #[test]
    fn a_dropped_sleep_leaves_nothing_behind_and_wakes_no_task() {
        let clock = ManualClock::new();
        let counter = Arc::new(Counter::default());
        let at = clock.now() + SECOND;
        let mut kept = clock.sleep_until(at);
        let mut dropped = clock.sleep_until(at);
        assert!(poll(&mut kept, &counter).is_pending());
        assert!(poll(&mut dropped, &counter).is_pending());
        drop(dropped);
        assert_eq!(clock.sleepers(), 1, "its neighbour at the same instant stays");
        clock.advance(SECOND);
        assert_eq!(counter.woken(), 1);
    }

    #[test]
    fn a_sleep_that_moves_to_another_task_wakes_that_task() {
        let clock = ManualClock::new();
        let (first, second) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
        let mut sleep = clock.sleep_until(clock.now() + SECOND);
        assert!(poll(&mut sleep, &first).is_pending());
        assert!(poll(&mut sleep, &second).is_pending());
        assert_eq!(clock.sleepers(), 1);
        clock.advance(SECOND);
        assert_eq!((first.woken(), second.woken()), (0, 1));
    }

    #[test]
    fn a_test_can_step_from_timer_to_timer_in_order() {
        let clock = ManualClock::new();
        let start = clock.now();
        let counter = Arc::new(Counter::default());
        let mut sleeps: Vec<_> = [3, 1, 2, 1].map(|n| clock.sleep_until(start + n * SECOND)).into();
        for sleep in &mut sleeps {
            assert!(poll(sleep, &counter).is_pending());
        }
        let mut seen = Vec::new();
        while let Some(at) = clock.next_wake() {
            clock.advance_to(at);
            seen.push((at.since(start).as_secs(), counter.woken()));
        }
        assert_eq!(seen, [(1, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn a_sleep_until_the_end_of_time_can_be_reached() {
        let clock = ManualClock::new();
        let counter = Arc::new(Counter::default());
        let mut sleep = clock.sleep_until(clock.now() + Duration::MAX);
        assert!(poll(&mut sleep, &counter).is_pending());
        clock.advance(365 * 86_400 * SECOND);
        assert_eq!(counter.woken(), 0);
        clock.advance(Duration::MAX);
        assert_eq!(counter.woken(), 1);
        assert!(poll(&mut sleep, &counter).is_ready());
    }

    #[test]
    fn a_waker_may_use_the_clock_that_woke_it() {
        struct Nosy(ManualClock, AtomicUsize);
        impl Wake for Nosy {
            fn wake(self: Arc<Self>) {
                self.1.store(self.0.sleepers(), Ordering::SeqCst);
            }
        }
        let clock = ManualClock::new();
        let nosy = Arc::new(Nosy(clock.clone(), AtomicUsize::new(99)));
        let mut sleep = clock.sleep_until(clock.now() + SECOND);
        let waker = Waker::from(nosy.clone());
        assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        clock.advance(SECOND);
        assert_eq!(nosy.1.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_waker_that_drops_another_sleep_does_not_deadlock_the_clock() {
        struct Owner {
            _inner: Mutex<BoxFuture<'static, ()>>,
        }
        impl Wake for Owner {
            fn wake(self: Arc<Self>) {}
        }
        let clock = ManualClock::new();
        let at = clock.now() + SECOND;
        let mut inner = clock.sleep_until(at);
        assert!(poll(&mut inner, &Arc::default()).is_pending());
        let owner = Arc::new(Owner { _inner: Mutex::new(inner) });

        let mut outer = clock.sleep_until(at);
        let waker = Waker::from(owner);
        assert!(outer.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        // The clock now has the last reference to the owner: replacing the waker drops the inner sleep.
        assert!(poll(&mut outer, &Arc::default()).is_pending());
        assert_eq!(clock.sleepers(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[expect(
        clippy::disallowed_methods,
        reason = "the sleepers are to be in other threads than the clock's mover"
    )]
    async fn sleepers_in_many_threads_never_miss_their_instant() {
        let clock = ManualClock::new();
        let start = clock.now();
        let sleepers = (0..200).map(|n| {
            let clock = clock.clone();
            tokio::spawn(async move {
                for round in 1..=20 {
                    let at = start + Duration::from_millis(n % 7 + round * 10);
                    clock.sleep_until(at).await;
                    assert!(clock.now() >= at);
                }
            })
        });
        let all = join_all(sleepers.collect::<Vec<_>>());
        tokio::pin!(all);
        loop {
            tokio::select! {
                done = &mut all => break done.into_iter().for_each(|result| result.unwrap()),
                () = tokio::task::yield_now() => clock.advance(Duration::from_micros(500)),
            }
        }
        assert_eq!(clock.sleepers(), 0);
    }
}
