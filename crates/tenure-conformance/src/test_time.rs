use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tenure::clock::{BootClock, Clock, ManualClock};

use crate::machine_clock::MachineClock;

/// Time that a test controls, for a [`Harness`](crate::Harness) that does not want to wait. Clones are the same time.
///
/// Give its [`clock`](Self::clock) to the store, return [`machine`](Self::machine) from
/// [`Harness::clock`](crate::Harness::clock), and [`pass`](Self::pass) from [`Harness::pause`](crate::Harness::pause).
/// It must be polled in a tokio runtime with io enabled: the keepers of leases are other threads, and need a little
/// real time to act.
///
/// ```
/// # use std::time::Duration;
/// use tenure::clock::Clock;
/// use tenure_conformance::TestTime;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let time = TestTime::new();
/// let before = time.clock().now();
/// time.pass(Duration::from_secs(3600)).await;
/// assert_eq!(time.clock().now().since(before), Duration::from_secs(3600));
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct TestTime {
    clock: ManualClock,
    /// The clocks of machines, as long as they are in use.
    machines: Arc<Mutex<Vec<Weak<MachineClock>>>>,
}

impl TestTime {
    /// Time that stands still until a test moves it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The clock that shows this time.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// A clock that shows this time, for one machine: time waits for the keeper that sleeps on it.
    pub fn machine(&self) -> Arc<dyn Clock> {
        self.machine_on(self.clock.clone())
    }

    /// The clock of a machine that shows another time. Time waits for its keeper too.
    pub(crate) fn machine_on(&self, clock: ManualClock) -> Arc<dyn Clock> {
        let machine = Arc::new(MachineClock::new(clock));
        self.machines.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&machine));
        machine
    }

    /// Moves the clock from one timer to the next, so that every sleeper acts in time, as on a real clock.
    pub async fn pass(&self, span: Duration) {
        let end = self.clock.now() + span;
        self.settle().await;
        while self.clock.now() < end {
            let next = self.clock.next_wake().filter(|next| *next < end);
            self.clock.advance_to(next.unwrap_or(end));
            self.settle().await;
        }
    }

    /// Lets woken sleepers act, until the keepers of all machines rest.
    async fn settle(&self) {
        let mut at_rest = 0;
        for _ in 0..SETTLE_PAUSES_MAX {
            BootClock.sleep_until(BootClock.now() + SETTLE_PAUSE).await;
            let due = self.clock.next_wake().is_some_and(|next| next <= self.clock.now());
            at_rest = if !due && self.all_rest() { at_rest + 1 } else { 0 };
            if at_rest == PAUSES_AT_REST {
                break;
            }
        }
    }

    fn all_rest(&self) -> bool {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        machines.retain(|machine| machine.strong_count() > 0);
        // The newest machine is the most likely to be active.
        machines.iter().rev().filter_map(Weak::upgrade).all(|machine| machine.rests())
    }
}

/// In real time: enough for a woken thread to make its calls on a memory store.
const SETTLE_PAUSE: Duration = Duration::from_micros(500);

/// A thread that waits for a lock, and not for its clock, looks like one at rest, but not for this long.
const PAUSES_AT_REST: u32 = 2;

/// In real time 50 ms: the time that a thread may have to wait for a processor on a busy machine.
const SETTLE_PAUSES_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use futures_util::future::join;
    use tenure::Coordinator;
    use tenure::store::Memory;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn each_sleeper_wakes_at_its_own_instant() {
        let time = TestTime::new();
        let start = time.clock().now();
        let sleeper = async {
            let mut woken = Vec::new();
            for _ in 0..3 {
                time.clock().sleep_until(time.clock().now() + SECOND).await;
                woken.push(time.clock().now().since(start));
            }
            woken
        };
        let (woken, ()) = join(sleeper, time.pass(10 * SECOND)).await;
        assert_eq!(woken, [SECOND, 2 * SECOND, 3 * SECOND]);
    }

    #[tokio::test]
    async fn a_keeper_renews_however_fast_time_passes() {
        let time = TestTime::new();
        let coordinator = Coordinator::builder().clock(time.machine()).connect(Memory::new()).await.unwrap();
        let lease = coordinator.lease("k").unwrap().acquire().await.unwrap();
        for _ in 0..20 {
            time.pass(3 * SECOND).await;
        }
        lease.check().unwrap();
    }
}
