//! Users of leases.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tenure::simulation::BeliefProbe;
use tenure::{Coordinator, Lease, Lost};

use super::waiting::Waiting;
use super::work::{CheckedWork, Counted};
use super::{User, give_up, maybe_panic};
use crate::Invariant;
use crate::driver::oracle::{GrantId, Owned, Probe};
use crate::driver::world::world;
use crate::driver::{DriverFocus, PublicFuture, Reached};
use crate::time::SECOND;

impl User {
    pub(super) async fn lease(&self, id: u64, coordinator: &Coordinator) {
        let key = self.key();
        let (ttl, wait, witnessed, strict, steals) = {
            let world = world();
            let ttl = world.draw(|rng| rng.pick(&world.plan.ttls));
            let wait = world.draw(|rng| rng.pick(&[0, ttl / 2, 3 * ttl]));
            let calm = world.plan.focus.is_calm();
            (
                ttl,
                wait,
                calm || world.chance(800),
                world.chance(if calm { 0 } else { 50 }),
                (!calm && world.chance(50))
                    || (world.plan.focus == DriverFocus::Primitives && world.chance(200)),
            )
        };
        let Ok(mut request) = coordinator.lease(key.as_str()) else { return };
        request = request.ttl(Duration::from_nanos(ttl)).wait(Duration::from_nanos(wait));
        if !witnessed {
            request = request.without_witness();
        }
        if strict {
            request = request.strict();
        }
        if steals {
            request = request.revoke("it is needed here");
            world().reach(Reached::Steal);
        }
        let wait = if steals { wait.max(2 * ttl) } else { wait };
        let waiting = Waiting::new(self.process, &key);
        let limit = wait + 3 * ttl + 6 * SECOND;
        let acquired = if wait == 0 {
            self.call(PublicFuture::TryAcquire, limit, request.try_acquire()).await
        } else {
            self.call(PublicFuture::Acquire, limit, request.acquire()).await
        };
        let lease = match acquired {
            Some(Ok(lease)) => lease,
            Some(Err(error)) => {
                self.note(2, format_args!("is not granted {key}: {error}"));
                return;
            }
            None => return self.note(3, format_args!("drops its acquire of {key}")),
        };
        let owned = self.own(&lease);
        world().judge_granted(self.process, id, &owned.0);
        drop(waiting);
        self.use_lease(id, coordinator, lease, owned, ttl).await;
    }

    pub(super) fn own(&self, lease: &Lease) -> Owned {
        let (key, token) = (lease.key(), lease.token().get());
        self.note(token, format_args!("is granted {key} with token {token}"));
        world().own(self.process, key, token, Probe::Lease(BeliefProbe::of(lease)))
    }

    pub(super) async fn use_lease(
        &self,
        id: u64,
        coordinator: &Coordinator,
        lease: Lease,
        owned: Owned,
        ttl: u64,
    ) {
        let grant = owned.0.clone();
        match world().draw(|rng| rng.below(8)) {
            0 | 1 => self.work(coordinator, &lease, &grant, ttl).await,
            2 => self.guard(&lease, &grant, ttl).await,
            3 => {
                world().with_grant(&grant, |grant| grant.ask_for_renewal());
                for _ in 0..world().draw(|rng| rng.between(1, 3)) {
                    let _ = self.call(PublicFuture::Renew, 2 * ttl, lease.renew()).await;
                }
            }
            4 => {
                self.within(2 * ttl, self.maybe_dropped(PublicFuture::Lost, lease.lost())).await;
            }
            5 => {
                let cancelled = lease.cancellation_token().cancelled_owned();
                self.within(2 * ttl, self.maybe_dropped(PublicFuture::Cancelled, cancelled)).await;
            }
            6 => {
                self.within(2 * ttl, self.follow(&lease)).await;
            }
            _ => self.sleep(world().draw(|rng| rng.skewed(0, 2 * ttl))).await,
        }
        self.check_calm_loss(id, &lease).await;
        if world().chance(700) {
            give_up(&grant);
            let released = self.call(PublicFuture::Release, 2 * ttl + 6 * SECOND, lease.release()).await;
            self.note(
                4,
                format_args!("has released {}: {:?}", lease.key(), released.as_ref().map(Result::is_ok)),
            );
            if matches!(released, Some(Ok(()))) {
                world().judge_released(self.process, &grant);
            }
        } else {
            self.note(5, format_args!("drops {}", lease.key()));
        }
        drop(lease);
        drop(owned);
    }

    /// Follows the state and the renewals of a lease until it is lost.
    async fn follow(&self, lease: &Lease) {
        let (mut states, mut renewals) = (pin!(lease.states()), pin!(lease.renewals()));
        loop {
            let state = self.maybe_dropped(PublicFuture::States, states.next()).await;
            let renewal = self.maybe_dropped(PublicFuture::Renewals, renewals.next()).await;
            if matches!((state, renewal), (Some(None), _) | (_, Some(None))) {
                return;
            }
        }
    }

    /// Without faults, no lease is lost.
    pub(super) async fn check_calm_loss(&self, id: u64, lease: &Lease) {
        let lost = lease.lost().now_or_never();
        let shut_down = self.connected.borrow().as_ref().is_none_or(|(current, _)| *current != id);
        let world = world();
        if let Some(lost) = lost
            && world.is_whole()
            && !matches!(lost, Lost::Released)
            && !shut_down
        {
            let sentence = format!("process {} lost {} without a fault: {lost}", self.process, lease.key());
            world.violate(Invariant::L4, sentence);
        }
    }

    /// Work that the lease runs, and that may panic, take long, or release the lease itself.
    async fn work(&self, coordinator: &Coordinator, lease: &Lease, grant: &GrantId, ttl: u64) {
        let probe = Probe::Lease(BeliefProbe::of(lease));
        let steps = self.steps(coordinator, lease, grant, ttl);
        let work = CheckedWork::new(self.process, vec![(grant.clone(), probe)], steps);
        let ran =
            AssertUnwindSafe(self.maybe_dropped(PublicFuture::Run, lease.run(work))).catch_unwind().await;
        self.note(
            6,
            format_args!(
                "work under {} ended: {}",
                grant.0,
                if ran.is_ok() { "returned" } else { "panicked" }
            ),
        );
    }

    async fn steps(&self, coordinator: &Coordinator, lease: &Lease, grant: &GrantId, ttl: u64) {
        for _ in 0..world().draw(|rng| rng.between(1, 5)) {
            self.sleep(world().draw(|rng| rng.skewed(0, ttl))).await;
            maybe_panic("work");
            if world().chance(300) {
                self.write_fenced(coordinator, lease).await;
            }
            if world().chance(100) {
                world().reach(Reached::ReleasedInside);
                give_up(grant);
                let _ = lease.release().now_or_never();
                let probe = Probe::Lease(BeliefProbe::of(lease));
                world().judge_latched(self.process, grant, &probe);
            }
        }
    }

    /// Work outside of the lease, which may outlast it.
    async fn guard(&self, lease: &Lease, grant: &GrantId, ttl: u64) {
        let Ok(guard) = lease.work_guard() else { return };
        let counted = Counted::new(grant);
        let (cannot_stop, first, then) =
            world().draw(|rng| (rng.chance(200), rng.skewed(0, ttl), rng.skewed(0, 2 * ttl)));
        self.sleep(first).await;
        if cannot_stop && !world().plan.focus.is_calm() {
            guard.cannot_stop("a simulated process of another user");
        }
        self.sleep(then).await;
        world().judge_witness_of_work(self.process, grant);
        drop(counted);
        drop(guard);
    }

    async fn write_fenced(&self, coordinator: &Coordinator, lease: &Lease) {
        let Ok(value) = coordinator.fenced(format!("value-of-{}", lease.key())) else { return };
        let token = lease.token().get();
        let before = world().oracle.borrow().fenced.get(lease.key()).copied().unwrap_or_default();
        match world().draw(|rng| rng.below(10)) {
            0 => {
                let seal = value.seal(lease.fencing_token());
                let _ = self.maybe_dropped(PublicFuture::FencedSeal, seal).await;
            }
            1 => {
                let _ = self.maybe_dropped(PublicFuture::FencedRead, value.read()).await;
            }
            _ => {}
        }
        let write = value.write(lease.fencing_token(), "content");
        let Some(written) = self.maybe_dropped(PublicFuture::FencedWrite, write).await else { return };
        let world = world();
        if written.is_ok() && !world.plan.lies {
            world.reach(Reached::Fenced);
            if token < before {
                let sentence = format!(
                    "a write under token {token} of {} was accepted after one under {before}",
                    lease.key()
                );
                world.violate(Invariant::S3, sentence);
            }
            let mut oracle = world.oracle.borrow_mut();
            let highest = oracle.fenced.entry(lease.key().clone()).or_default();
            *highest = (*highest).max(token);
        }
    }

    /// A stale holder writes: a lease is kept beyond its loss.
    pub(super) async fn fence(&self, coordinator: &Coordinator) {
        let key = self.key();
        let Ok(request) = coordinator.lease(key.as_str()) else { return };
        let ttl = world().plan.ttls[0];
        let waiting = Waiting::new(self.process, &key);
        let Ok(lease) = request.ttl(Duration::from_nanos(ttl)).manual().try_acquire().await else { return };
        let owned = self.own(&lease);
        drop(waiting);
        self.sleep(world().draw(|rng| rng.skewed(0, 3 * ttl))).await;
        self.write_fenced(coordinator, &lease).await;
        drop(lease);
        drop(owned);
    }
}
