//! Scripts with handles.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tenure::simulation::forged;
use tenure::{Coordinator, ErrorKind, Handle};

use super::User;
use super::waiting::Waiting;
use crate::Invariant;
use crate::driver::oracle::Probe;
use crate::driver::world::world;
use crate::driver::{PublicFuture, Reached};
use crate::time::SECOND;

impl User {
    /// A script with a handle. Another program that can read the record tries to use it.
    pub(super) async fn handle(&self, id: u64, coordinator: &Coordinator) {
        let key = self.key();
        let ttl = world().draw(|rng| rng.pick(&world().plan.ttls));
        let Ok(request) = coordinator.lease(key.as_str()) else { return };
        let waiting = Waiting::new(self.process, &key);
        let request = request.ttl(Duration::from_nanos(ttl)).wait(Duration::from_nanos(ttl / 2));
        let acquire = request.acquire_handle();
        let acquired = self.call(PublicFuture::AcquireHandle, 4 * ttl + 6 * SECOND, acquire).await;
        let Some(Ok(mut handle)) = acquired else { return };
        world().reach(Reached::Handle);
        let deadline = Rc::new(Cell::new(0));
        let set_deadline = |handle: &Handle| {
            let left = handle.remaining(&self.clock);
            deadline.set((self.clock.read() + left).as_nanos());
        };
        set_deadline(&handle);
        let owned =
            world().own(self.process, &key, handle.token().get(), Probe::Handle(Rc::clone(&deadline)));
        drop(waiting);
        for _ in 0..world().draw(|rng| rng.between(0, 4)) {
            self.sleep(world().draw(|rng| rng.skewed(0, ttl / 2))).await;
            let stolen = forged(&handle);
            let theirs = if world().chance(500) {
                coordinator.renew(&stolen).await.map(drop)
            } else {
                coordinator.release(&stolen).await
            };
            if theirs.is_ok() && handle.remaining(&self.clock) > Duration::ZERO {
                let sentence = format!("a program without its secret acted under the handle of {key}");
                world().violate(Invariant::K2, sentence);
            }
            let renew = coordinator.renew(&handle);
            match self.call(PublicFuture::RenewHandle, 2 * ttl + 6 * SECOND, renew).await {
                Some(Ok(next)) => {
                    handle = next;
                    set_deadline(&handle);
                }
                Some(Err(error)) if error.kind() != ErrorKind::Lost => {}
                // Lost, or the renewal was dropped: the script stops.
                Some(Err(_)) | None => return deadline.set(0),
            }
        }
        deadline.set(0);
        if world().chance(300) {
            drop(owned);
            return self.resume(id, coordinator, &handle, ttl).await;
        }
        let _ = self.call(PublicFuture::ReleaseHandle, 70 * SECOND, coordinator.release(&handle)).await;
        drop(owned);
    }
    /// The program continues the term of its handle, and keeps it from then on.
    async fn resume(&self, id: u64, coordinator: &Coordinator, handle: &Handle, ttl: u64) {
        let waiting = Waiting::new(self.process, handle.key());
        let resumed = self.call(PublicFuture::Resume, 2 * ttl + 6 * SECOND, coordinator.resume(handle)).await;
        let Some(Ok(lease)) = resumed else { return };
        world().reach(Reached::Resumed);
        let owned = self.own(&lease);
        drop(waiting);
        self.use_lease(id, coordinator, lease, owned, ttl).await;
    }
}
