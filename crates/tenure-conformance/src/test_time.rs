use std::time::Duration;

use tenure::clock::{BootClock, Clock, ManualClock};

/// Time that a test owns, for a [`Harness`](crate::Harness) that does not want to wait. Clones are the same time.
///
/// Give its [`clock`](Self::clock) to the store and to [`Harness::clock`](crate::Harness::clock), and let
/// [`Harness::pause`](crate::Harness::pause) be [`pass`](Self::pass). It must be polled in a tokio runtime with io
/// enabled: the keepers of leases are other threads, and need a little real time to act.
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
}

impl TestTime {
    /// Time that stands still.
    pub fn new() -> Self {
        Self::default()
    }

    /// The clock that shows it.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Moves the clock from one timer to the next, so that whoever sleeps on it acts in time, as in real life.
    pub async fn pass(&self, span: Duration) {
        let end = self.clock.now() + span;
        // Where nobody sleeps, a thread is about to start or to answer, and has not come to its clock yet.
        self.settle(self.clock.sleepers().max(1)).await;
        while self.clock.now() < end {
            let next = self.clock.next_wake().filter(|next| *next < end);
            let asleep = self.clock.sleepers();
            self.clock.advance_to(next.unwrap_or(end));
            self.settle(asleep).await;
        }
    }

    /// Lets those whose time has come do what they have to do, until as many are asleep as before. Whoever does not
    /// sleep again has nothing to wait for any more, so this ends without them.
    async fn settle(&self, asleep: usize) {
        for _ in 0..SETTLE_PAUSES_MAX {
            BootClock.sleep_until(BootClock.now() + SETTLE_PAUSE).await;
            let due = self.clock.next_wake().is_some_and(|next| next <= self.clock.now());
            if !due && self.clock.sleepers() >= asleep {
                break;
            }
        }
    }
}

/// In real time: enough for a thread that is woken to make its calls on a store in memory.
const SETTLE_PAUSE: Duration = Duration::from_micros(500);

/// In real time 50 ms: what a thread may have to wait for its turn on a busy machine.
const SETTLE_PAUSES_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::join;
    use tenure::Coordinator;
    use tenure::store::Memory;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn everybody_wakes_at_an_instant_of_its_own() {
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
        let clock = Arc::new(time.clock().clone());
        let coordinator = Coordinator::builder().clock(clock).connect(Memory::new()).await.unwrap();
        let lease = coordinator.lease("k").unwrap().acquire().await.unwrap();
        for _ in 0..20 {
            time.pass(3 * SECOND).await;
        }
        lease.check().unwrap();
    }
}
