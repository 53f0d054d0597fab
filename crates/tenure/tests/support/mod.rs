//! Shared by the tests of leases.
#![allow(dead_code, reason = "every test file uses its own part of this")]

pub(crate) mod odd;
pub(crate) mod refusals;
pub(crate) mod subscriber;
pub(crate) mod tcp;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tenure::clock::{Clock, ManualClock};
use tenure::store::Memory;
use tenure::store::memory::{Calls, MemoryBuilder};
use tenure::{Coordinator, Holder};
use tenure_store::StoreClock;

/// One store, and one clock that only the test moves.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) memory: Memory,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_store_clock(StoreClock::Floors)
    }

    pub(crate) fn with_store_clock(store_clock: StoreClock) -> Self {
        Self::built(|builder| builder.store_clock(store_clock))
    }

    pub(crate) fn built(choose: impl FnOnce(MemoryBuilder) -> MemoryBuilder) -> Self {
        let clock = ManualClock::new();
        let builder = Memory::builder().clock(Arc::new(clock.clone())).store_clock(StoreClock::Floors);
        Self { clock, memory: choose(builder).build() }
    }

    /// A separate process, without the observations of others.
    pub(crate) async fn process(&self, name: &str) -> Coordinator {
        Coordinator::builder()
            .clock(Arc::new(self.clock.clone()))
            .holder(Holder::new(name).unwrap())
            .connect(self.memory.clone())
            .await
            .unwrap()
    }

    /// Calls on the store since `before`, once the keeper is idle.
    pub(crate) fn calls_since(&self, before: Calls) -> (u64, u64) {
        let since = self.memory.calls() - before;
        (since.gets, since.puts)
    }

    /// Moves the clock from one timer to the next, so that every task acts in time, as in real life.
    pub(crate) async fn pass(&self, span: Duration) {
        self.settle().await;
        let end = self.clock.now() + span;
        while self.clock.now() < end {
            let next = self.clock.next_wake().filter(|next| *next < end);
            let asleep = self.clock.sleepers();
            self.clock.advance_to(next.unwrap_or(end).max(self.clock.now()));
            self.until_asleep(asleep).await;
        }
    }

    /// Lets the keepers finish their work for this instant.
    pub(crate) async fn settle(&self) {
        self.until_asleep(self.clock.sleepers()).await;
    }

    /// Waits, in real time, until as many tasks sleep as before and no timer is due, twice in a row. A task that does
    /// not sleep again has nothing left to wait for, so after 60 rounds this returns without it. It never returns while
    /// a keeper is runnable, or time would pass that keeper by on a busy machine.
    async fn until_asleep(&self, asleep: usize) {
        let mut calm = 0;
        for round in 0..5_000 {
            real_pause(Duration::from_millis(1)).await;
            let due = self.clock.next_wake().is_some_and(|next| next <= self.clock.now());
            let asleep_again = !due && self.clock.sleepers() >= asleep;
            calm = if (asleep_again || round >= 60) && !is_a_keeper_running() { calm + 1 } else { 0 };
            if calm == 2 {
                return;
            }
        }
    }
}

/// True if a keeper of this process is running, is ready to run, or waits for the disk.
fn is_a_keeper_running() -> bool {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()).any(|stat| {
        let (name, state) = stat.rsplit_once(')').unwrap();
        name.ends_with("tenure-keeper") && state.trim_start().starts_with(['R', 'D'])
    })
}

#[expect(clippy::disallowed_methods, reason = "other threads need real time to run")]
pub(crate) async fn real_pause(span: Duration) {
    tokio::time::sleep(span).await;
}

#[expect(clippy::disallowed_methods, reason = "the test owns its tasks")]
pub(crate) fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::spawn(future)
}

/// Polls `future` `polls` times, lets the keeper work in between, and then drops it.
pub(crate) async fn poll_times<F: Future>(world: &World, future: F, polls: u32) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(output);
        }
        world.settle().await;
    }
    None
}

/// Waits in real time, up to a limit, for an effect of other threads.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        real_pause(Duration::from_millis(1)).await;
    }
    panic!("this never happened: {what}");
}
