//! Futures of the driver as users poll them: often, late, and not to their end.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tenure::clock::Clock;

use super::User;
use crate::driver::PublicFuture;
use crate::driver::bounded::bounded;
use crate::driver::drops::POLLS_SHOWN;
use crate::driver::world::{try_world, world};

/// The moment at which a user drops a future that has not resolved.
#[derive(Clone, Copy, Debug)]
enum DropTime {
    Never,
    /// After this many polls. The user polls more often than the future asks for, as `select!` does.
    AfterPolls(u32),
    /// When the future asks for another poll after this many. Its output may be there by then, and is dropped unseen.
    AtWake(u32),
    /// After some time.
    Later(u64),
}

impl DropTime {
    fn draw(ttl: u64) -> Self {
        let world = world();
        if !world.chance(world.plan.drops) {
            return Self::Never;
        }
        world.draw(|rng| match rng.below(4) {
            0 | 1 => Self::AfterPolls(rng.below(POLLS_SHOWN as u64) as u32),
            2 => Self::AtWake(rng.between(1, 3) as u32),
            _ => Self::Later(rng.skewed(0, ttl)),
        })
    }
}

impl User {
    /// Awaits a future that must resolve within `limit`, or drops it at some time.
    pub(super) async fn call<T>(
        &self,
        what: PublicFuture,
        limit: u64,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        self.maybe_dropped(what, bounded(self.process, what.words(), limit, future)).await
    }

    /// Awaits the future, or drops it at some time.
    pub(super) async fn maybe_dropped<T>(
        &self,
        what: PublicFuture,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let drop_time = DropTime::draw(self.ttl_most());
        let mut limit = match drop_time {
            DropTime::Later(span) => {
                Some(self.clock.sleep_until(self.clock.read() + Duration::from_nanos(span)))
            }
            _ => None,
        };
        let mut counted = CountedPolls { what, process: self.process, polls: 0, resolved: false };
        let mut future = pin!(future);
        poll_fn(|context| {
            let is_over = match drop_time {
                DropTime::AfterPolls(most) => most == 0,
                DropTime::AtWake(most) => counted.polls == most,
                DropTime::Never | DropTime::Later(_) => false,
            };
            if is_over {
                return Poll::Ready(None);
            }
            counted.polls += 1;
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                counted.resolved = true;
                return Poll::Ready(Some(output));
            }
            if matches!(drop_time, DropTime::AfterPolls(most) if counted.polls >= most)
                || limit.as_mut().is_some_and(|limit| limit.as_mut().poll(context).is_ready())
            {
                return Poll::Ready(None);
            }
            if matches!(drop_time, DropTime::AfterPolls(_)) && world().chance(AGAIN) {
                context.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }
}

/// The polls of a future, which are counted when it has resolved, or was dropped by a user of a process that lives.
struct CountedPolls {
    what: PublicFuture,
    process: usize,
    polls: u32,
    resolved: bool,
}

impl Drop for CountedPolls {
    fn drop(&mut self) {
        if let Some(world) = try_world().filter(|world| world.process(self.process, |it| it.alive)) {
            world.drops.borrow_mut().count(self.what, self.polls, !self.resolved);
        }
    }
}

/// Chance per thousand of a poll that the future has not asked for.
const AGAIN: u32 = 700;
