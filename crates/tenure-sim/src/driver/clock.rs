use std::pin::Pin;
use std::task::{Context, Poll};

use tenure::clock::{Clock, Domain, Instant, WallTime};
use tenure_store::BoxFuture;

use super::world::{try_world, world};

/// The clock of a machine, as a process reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MachineClock(pub(super) usize);

impl MachineClock {
    /// The time now, without a chance to be preempted.
    pub(super) fn read(self) -> Instant {
        let world = world();
        Instant::from_nanos(world.machines[self.0].clock.local(world.now.get()))
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Instant {
        world().maybe_preempt();
        self.read()
    }

    fn wall(&self) -> WallTime {
        let world = world();
        WallTime::from_millis(START_WALL + world.machines[self.0].wall_offset + world.now.get() / 1_000_000)
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Sleep { clock: *self, at, timer: None })
    }

    fn domain(&self) -> Option<Domain> {
        Domain::parse(&format!("machine-{},none", self.0))
    }
}

/// One sleep. It is registered from its first poll until it is due or dropped.
struct Sleep {
    clock: MachineClock,
    at: Instant,
    timer: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = world();
        if self.clock.read() >= self.at {
            return Poll::Ready(());
        }
        let mut timers = world.timers.borrow_mut();
        let timer = match self.timer {
            Some(timer) => timer,
            None => {
                timers.next += 1;
                let timer = timers.next;
                let due = world.machines[self.clock.0].clock.reaches(self.at.as_nanos());
                world.after(due.saturating_sub(world.now.get()).min(FAR), move |world| {
                    let waker = world.timers.borrow_mut().wakers.remove(&timer);
                    waker.into_iter().for_each(|waker| waker.wake());
                });
                timer
            }
        };
        self.timer = Some(timer);
        timers.wakers.insert(timer, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let (Some(timer), Some(world)) = (self.timer, try_world()) {
            let removed = world.timers.borrow_mut().wakers.remove(&timer);
            drop(removed);
        }
    }
}

/// 2026-01-01T00:00:00Z.
const START_WALL: u64 = 1_767_225_600_000;

/// Longer than any seed: a sleep for ever must not overflow the agenda.
const FAR: u64 = 1_000_000 * crate::time::SECOND;
