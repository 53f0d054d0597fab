//! Users whose calls wait for each other.

use std::time::Duration;

use futures_util::FutureExt;
use tenure::{Coordinator, ErrorKind};

use super::waiting::Waiting;
use super::{User, give_up};
use crate::Invariant;
use crate::driver::bounded::bounded;
use crate::driver::world::world;
use crate::time::{MILLI, SECOND};

impl User {
    /// Some users renew their lease all the time, the others contend. Each of them always has a call that waits.
    pub(super) async fn crowd(&self, id: u64, coordinator: &Coordinator) {
        let Some(key) = world().plan.keys.get(self.number).cloned() else {
            return self.contend_in_crowd(coordinator).await;
        };
        let Ok(request) = coordinator.lease(key.as_str()) else { return };
        let ttl = world().plan.ttls[0];
        let request = request.ttl(Duration::from_nanos(ttl)).wait(Duration::from_nanos(ttl));
        let waiting = Waiting::new(self.process, &key);
        let acquire = bounded(self.process, "acquire", 4 * ttl + 6 * SECOND, request.acquire());
        let Ok(lease) = acquire.await else { return };
        let owned = self.own(&lease);
        drop(waiting);
        world().with_grant(&owned.0, |grant| grant.ask_for_renewal());
        let ends = world().now.get() + world().draw(|rng| rng.between(1, 25)) * SECOND;
        while world().now.get() < ends && lease.check().is_ok() {
            let _ = bounded(self.process, "renew", 2 * ttl, lease.renew()).await;
        }
        // The renewal of this future waits for a place when the lease is released.
        drop(lease.renew().now_or_never());
        self.sleep(world().draw(|rng| rng.below(ttl / 100))).await;
        self.check_calm_loss(id, &lease).await;
        give_up(&owned.0);
        let release = bounded(self.process, "release", 2 * ttl + 6 * SECOND, lease.release());
        let _ = release.await;
        drop(lease);
        drop(owned);
    }

    /// Without faults, every contender gets its answer, however many renewals go first.
    async fn contend_in_crowd(&self, coordinator: &Coordinator) {
        self.sleep(world().draw(|rng| rng.below(MILLI))).await;
        let key = self.key();
        let Ok(request) = coordinator.lease(key.as_str()) else { return };
        let request = request.ttl(Duration::from_nanos(world().plan.ttls[0]));
        let waiting = Waiting::new(self.process, &key);
        // It has no bound: other contenders may be faster each time. A call that gets no place in time is an error.
        match request.try_acquire().await {
            Ok(lease) => {
                let owned = self.own(&lease);
                drop(waiting);
                give_up(&owned.0);
                drop(lease);
                drop(owned);
            }
            Err(error) if error.kind() == ErrorKind::Held => {}
            Err(error) => {
                let sentence =
                    format!("process {} gets no answer about {key} without a fault: {error}", self.process);
                world().violate(Invariant::L7, sentence);
            }
        }
    }
}
