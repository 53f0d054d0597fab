//! Users of sets of leases.

use std::time::Duration;

use tenure::simulation::BeliefProbe;
use tenure::{Coordinator, LeaseSet};

use super::waiting::Waiting;
use super::work::CheckedWork;
use super::{User, give_up};
use crate::driver::oracle::{GrantId, Owned, Probe};
use crate::driver::world::world;
use crate::driver::{PublicFuture, Reached};
use crate::time::SECOND;

impl User {
    pub(super) async fn set(&self, id: u64, coordinator: &Coordinator) {
        let mut keys = world().plan.keys.clone();
        keys.truncate(3);
        let ttl = self.ttl();
        let wait = world().draw(|rng| rng.pick(&[0, ttl, 3 * ttl]));
        // Its own value shows which records this set has written.
        let value = format!("set-{:x}", world().draw(|rng| rng.next()));
        let Ok(request) = coordinator.all_of(keys.iter().map(|key| key.as_str())) else { return };
        let request = request.ttl(Duration::from_nanos(ttl)).wait(Duration::from_nanos(wait)).value(&value);
        let waiting: Vec<_> = keys.iter().map(|key| Waiting::new(self.process, key)).collect();
        let limit = wait + 6 * ttl + 15 * SECOND;
        let acquired = if wait == 0 {
            self.call(PublicFuture::TryAcquireSet, limit, request.try_acquire()).await
        } else {
            self.call(PublicFuture::AcquireSet, limit, request.acquire()).await
        };
        let set = match acquired {
            Some(Ok(set)) => set,
            Some(Err(error)) => {
                world().reach(Reached::SetDenied);
                if !world().oracle.borrow().shutting_down.contains(&id) {
                    world().judge_denied_set(self.process, &value);
                }
                return self.note(22, format_args!("is not granted a set: {error}"));
            }
            None => return self.note(23, format_args!("drops its acquire of a set")),
        };
        world().reach(Reached::Set);
        let owned: Vec<_> = set.leases().iter().map(|lease| self.own(lease)).collect();
        drop(waiting);
        self.use_set(&set, owned, ttl).await;
    }

    async fn use_set(&self, set: &LeaseSet, owned: Vec<Owned>, ttl: u64) {
        let probes = set.leases().iter().map(|lease| Probe::Lease(BeliefProbe::of(lease)));
        let members: Vec<(GrantId, Probe)> = owned.iter().map(|owned| owned.0.clone()).zip(probes).collect();
        if world().chance(500) {
            let span = world().draw(|rng| rng.skewed(0, 3 * ttl));
            let work = async {
                for _ in 0..STEPS {
                    self.sleep(span / STEPS).await;
                }
            };
            let work = CheckedWork::new(self.process, members.clone(), work);
            let _ = self.maybe_dropped(PublicFuture::SetRun, set.run(work)).await;
        } else {
            self.within(3 * ttl, self.maybe_dropped(PublicFuture::SetLost, set.lost())).await;
        }
        let held = world().held_members(self.process, &members);
        let believes = set.check().is_ok();
        world().judge_set(self.process, believes, &held);
        if !believes {
            world().reach(Reached::SetLost);
            // The leases that were not lost are released, also while the user keeps the set.
            drop(owned);
            return self.sleep(world().draw(|rng| rng.below(3 * ttl))).await;
        }
        if world().chance(700) {
            members.iter().for_each(|(grant, _)| give_up(grant));
            let released = self.call(PublicFuture::SetRelease, 2 * ttl + 6 * SECOND, set.release()).await;
            if matches!(released, Some(Ok(()))) {
                members.iter().for_each(|(grant, _)| world().judge_released(self.process, grant));
            }
        }
        drop(owned);
    }
}

/// Number of polls of the work under a set: one between the deadlines of two of its leases must see that one has passed.
const STEPS: u64 = 16;
