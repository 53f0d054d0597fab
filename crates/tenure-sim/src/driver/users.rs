//! The programs that use the driver: they acquire, work, release, observe, cancel and shut down.

use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt};
use tenure::clock::Clock;
use tenure::simulation::{BeliefProbe, forged};
use tenure::{
    AttemptReport, Coordinator, ErrorKind, EventReport, Handle, Holder, Lease, Lost, ProcessInfo, Recorder,
    WatchEvent,
};
use tenure_store::{Key, Prefix};

use super::bounded::{bounded, dropped_at};
use super::clock::MachineClock;
use super::executor::ThreadRole;
use super::oracle::{GrantId, Owned, Probe};
use super::store::StoreClient;
use super::world::{DriverWorld, try_world, world};
use super::{DriverFocus, Reached, panics};
use crate::Invariant;
use crate::time::{MILLI, SECOND};

/// A connection of a process, which its users share.
type Connected = Rc<RefCell<Option<(u64, Coordinator)>>>;

/// Starts a process on a machine, with its users.
pub(super) fn start_process(world: &Rc<DriverWorld>, machine: usize) {
    let process = {
        let mut processes = world.processes.borrow_mut();
        processes.push(super::process::DriverProcess::on(machine));
        processes.len() - 1
    };
    world.note(format_args!("p{process}"), process as u64, format_args!("starts on machine {machine}"));
    let connected = Connected::default();
    for number in 0..world.plan.users {
        let user = User { process, clock: MachineClock(machine), connected: Rc::clone(&connected), number };
        world.tasks.spawn(process, ThreadRole::User, user.run().boxed_local());
    }
}

/// One task of a program.
struct User {
    process: usize,
    clock: MachineClock,
    connected: Connected,
    number: usize,
}

/// Records nothing, and panics sometimes.
#[derive(Debug)]
struct PanickyRecorder;

impl Recorder for PanickyRecorder {
    fn attempt(&self, _: &AttemptReport) {
        maybe_panic("a recorder");
    }

    fn event(&self, _: &EventReport) {
        maybe_panic("a recorder");
    }
}

fn maybe_panic(whose: &str) {
    let world = world();
    if !world.healed.get() && world.chance(world.plan.user_panics) {
        world.reach(Reached::UserPanicked);
        panics::simulated(whose);
    }
}

impl User {
    async fn run(self) {
        while !world().stopping.get() {
            let Some((id, coordinator)) = self.coordinator().await else {
                self.sleep(world().draw(|rng| rng.between(100, 2000)) * MILLI).await;
                continue;
            };
            match world().plan.focus {
                DriverFocus::Crowded => {
                    self.crowd(id, &coordinator).await;
                    continue;
                }
                DriverFocus::Credentials if self.number == 0 && world().chance(300) => {
                    self.outlast_denials(&coordinator).await;
                    continue;
                }
                _ => {}
            }
            if world().chance(world().plan.shutdowns) {
                self.shut_down(id, coordinator).await;
                continue;
            }
            match world().draw(|rng| rng.below(20)) {
                0..10 => self.lease(id, &coordinator).await,
                10..13 => self.handle(&coordinator).await,
                13..16 => self.observe(id, &coordinator).await,
                16 => self.watch(&coordinator).await,
                17 => self.campaign(&coordinator).await,
                18 => self.fence(&coordinator).await,
                _ => {
                    let span = world().draw(|rng| rng.skewed(0, world().plan.ttl_most()));
                    drop(coordinator);
                    self.sleep(span).await;
                }
            }
        }
        // The last user drops the coordinator; the keeper then vacates everything and ends.
    }

    /// The coordinator of the process. The first user that needs one connects.
    async fn coordinator(&self) -> Option<(u64, Coordinator)> {
        if let Some((id, coordinator)) = &*self.connected.borrow() {
            return Some((*id, coordinator.clone()));
        }
        let holder = Holder::new(&format!("process-{}", self.process)).expect("a holder");
        let connecting = Coordinator::builder()
            .clock(Arc::new(self.clock))
            .holder(holder)
            .process(ProcessInfo::default())
            .recorder(Arc::new(PanickyRecorder))
            .calls_max(world().plan.calls_max)
            .connect(StoreClient { process: self.process });
        let connected =
            self.maybe_dropped("connect", bounded(self.process, "connect", CONNECT_MAX, connecting)).await;
        match connected {
            Some(Ok(coordinator)) => {
                let world = world();
                world.reach(Reached::Connected);
                let id = world.draw(|rng| rng.next());
                *self.connected.borrow_mut() = Some((id, coordinator.clone()));
                Some((id, coordinator))
            }
            Some(Err(_)) | None => None,
        }
    }

    async fn shut_down(&self, id: u64, coordinator: Coordinator) {
        world().reach(Reached::ShutDown);
        self.note(0, format_args!("shuts down"));
        let limit = Coordinator::SHUTDOWN_MAX.as_nanos() as u64 + 2 * SECOND;
        let done = self
            .maybe_dropped("shutdown", bounded(self.process, "shutdown", limit, coordinator.shutdown()))
            .await;
        self.connected.borrow_mut().take_if(|(current, _)| *current == id);
        if done.is_some() {
            let world = world();
            world.oracle.borrow_mut().shut_down.entry(id).or_insert(world.now.get());
            drop(world);
            self.after_shutdown(&coordinator).await;
        }
    }

    /// Nothing is granted after a shutdown.
    async fn after_shutdown(&self, coordinator: &Coordinator) {
        let key = self.key();
        let Ok(request) = coordinator.lease(key.as_str()) else { return };
        let late =
            bounded(self.process, "an acquire after a shutdown", 5 * SECOND, request.try_acquire()).await;
        if late.is_ok() {
            let sentence = format!("process {} was granted {key} after its shutdown", self.process);
            world().violate(Invariant::S11, sentence);
        }
    }

    /// Some users renew their lease all the time, the others observe. Each of them always has a call that waits.
    async fn crowd(&self, id: u64, coordinator: &Coordinator) {
        let Some(key) = world().plan.keys.get(self.number).cloned() else {
            return self.observe_in_crowd(coordinator).await;
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
        drop(dropped_at(1, lease.renew()).await);
        self.sleep(world().draw(|rng| rng.below(ttl / 100))).await;
        self.check_calm_loss(id, &lease).await;
        give_up(&owned.0);
        let release = bounded(self.process, "release", 2 * ttl + 6 * SECOND, lease.release());
        let _ = release.await;
        drop(lease);
        drop(owned);
    }

    /// Without faults, every observer gets its answer, however many renewals go first.
    async fn observe_in_crowd(&self, coordinator: &Coordinator) {
        self.sleep(world().draw(|rng| rng.below(MILLI))).await;
        let key = self.key();
        let seen = bounded(self.process, "observe", 20 * SECOND, coordinator.observe(key.as_str())).await;
        if let Err(error) = seen {
            let sentence = format!("process {} cannot observe {key} without a fault: {error}", self.process);
            world().violate(Invariant::L7, sentence);
        }
    }

    /// Acquires with patience while the credentials of the process are wrong: for some seconds, or for long.
    async fn outlast_denials(&self, coordinator: &Coordinator) {
        let key = self.key();
        let Ok(request) = coordinator.lease(key.as_str()) else { return };
        let ttl = world().plan.ttls[0];
        let is_short = world().chance(500);
        let span = if is_short { world().draw(|rng| rng.between(1, DENIED_BRIEFLY)) } else { DENIED_LONG };
        world().rotate_credentials(self.process, span);
        let patience = 2 * DENIED_LONG;
        let request = request.ttl(Duration::from_nanos(ttl)).wait(Duration::from_nanos(patience));
        let denied_at = world().now.get();
        let waiting = Waiting::new(self.process, &key);
        let acquired = request.acquire().await;
        let passed = world().now.get() - denied_at;
        match acquired {
            Ok(lease) => {
                world().reach(Reached::OutlastedDenials);
                let owned = self.own(&lease);
                drop(waiting);
                // A rotation ends early when everything heals.
                if !is_short && passed >= DENIED_LONG && !world().healed.get() {
                    let sentence = format!(
                        "the acquire of {key} by process {} reported no denial in {} s",
                        self.process,
                        passed / SECOND
                    );
                    world().violate(Invariant::L7, sentence);
                }
                drop(lease);
                drop(owned);
            }
            Err(error) if format!("{error}").contains("denied access") => {
                world().reach(Reached::ReportedDenial);
                if is_short {
                    let sentence = format!(
                        "process {} gave up {key} after {} ms of denied answers: {error}",
                        self.process,
                        passed / MILLI
                    );
                    world().violate(Invariant::L4, sentence);
                }
            }
            Err(error) => self.note(2, format_args!("is not granted {key}: {error}")),
        }
    }

    // ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────

    async fn lease(&self, id: u64, coordinator: &Coordinator) {
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
                !calm && world.chance(50),
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
        let acquire = bounded(self.process, "acquire", wait + 3 * ttl + 6 * SECOND, request.acquire());
        let acquired = self.maybe_dropped("acquire", acquire).await;
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

    fn own(&self, lease: &Lease) -> Owned {
        let (key, token) = (lease.key(), lease.token().get());
        self.note(token, format_args!("is granted {key} with token {token}"));
        world().own(self.process, key, token, Probe::Lease(BeliefProbe::of(lease)))
    }

    async fn use_lease(&self, id: u64, coordinator: &Coordinator, lease: Lease, owned: Owned, ttl: u64) {
        let grant = owned.0.clone();
        match world().draw(|rng| rng.below(6)) {
            0 | 1 => self.work(coordinator, &lease, &grant, ttl).await,
            2 => self.guard(&lease, &grant, ttl).await,
            3 => {
                world().with_grant(&grant, |grant| grant.ask_for_renewal());
                for _ in 0..world().draw(|rng| rng.between(1, 3)) {
                    let renew = bounded(self.process, "renew", 2 * ttl, lease.renew());
                    self.maybe_dropped("renew", renew).await.map(drop).unwrap_or_default();
                }
            }
            4 => {
                let lost = lease.lost();
                let limit = self.clock.sleep_until(self.clock.read() + Duration::from_nanos(2 * ttl));
                select(Box::pin(lost), limit).await;
            }
            _ => self.sleep(world().draw(|rng| rng.skewed(0, 2 * ttl))).await,
        }
        self.check_calm_loss(id, &lease).await;
        if world().chance(700) {
            give_up(&grant);
            let release = bounded(self.process, "release", 2 * ttl + 6 * SECOND, lease.release());
            let released = self.maybe_dropped("release", release).await;
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

    /// Without faults, no lease is lost.
    async fn check_calm_loss(&self, id: u64, lease: &Lease) {
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
        let work = CheckedWork {
            process: self.process,
            grant: grant.clone(),
            probe,
            counted: None,
            work: Box::pin(self.steps(coordinator, lease, grant, ttl)),
        };
        let ran = AssertUnwindSafe(self.maybe_dropped("run", lease.run(work))).catch_unwind().await;
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
        let written = value.write(lease.fencing_token(), "content").await;
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
    async fn fence(&self, coordinator: &Coordinator) {
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

    async fn campaign(&self, coordinator: &Coordinator) {
        let key = self.key();
        let ttl = world().draw(|rng| rng.pick(&world().plan.ttls));
        let Ok(election) = coordinator.election(key.as_str()) else { return };
        let Ok(mut campaign) = election.ttl(Duration::from_nanos(ttl)).campaign() else { return };
        let waiting = Waiting::new(self.process, &key);
        let limit = self.clock.sleep_until(self.clock.read() + Duration::from_nanos(3 * ttl));
        let next = Box::pin(self.maybe_dropped("campaign", campaign.next()));
        let Either::Left((Some(Ok(term)), _)) = select(next, limit).await else {
            return;
        };
        world().reach(Reached::Term);
        let owned = self.own(term.lease());
        drop(waiting);
        self.sleep(world().draw(|rng| rng.skewed(0, ttl))).await;
        if world().chance(500) {
            give_up(&owned.0);
            let resign = bounded(self.process, "resign", 2 * ttl + 6 * SECOND, term.resign());
            self.maybe_dropped("resign", resign).await.map(drop).unwrap_or_default();
        }
        drop(term);
        drop(campaign);
        drop(owned);
    }

    // ── handles ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// A script with a handle. Another program that can read the record tries to use it.
    async fn handle(&self, coordinator: &Coordinator) {
        let key = self.key();
        let ttl = world().draw(|rng| rng.pick(&world().plan.ttls));
        let Ok(request) = coordinator.lease(key.as_str()) else { return };
        let waiting = Waiting::new(self.process, &key);
        let request = request.ttl(Duration::from_nanos(ttl)).wait(Duration::from_nanos(ttl / 2));
        let acquire = bounded(self.process, "acquire_handle", 4 * ttl + 6 * SECOND, request.acquire_handle());
        let Some(Ok(mut handle)) = self.maybe_dropped("acquire_handle", acquire).await else { return };
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
            let renew =
                bounded(self.process, "renew of a handle", 2 * ttl + 6 * SECOND, coordinator.renew(&handle));
            match self.maybe_dropped("renew of a handle", renew).await {
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
        let release = bounded(self.process, "release of a handle", 70 * SECOND, coordinator.release(&handle));
        self.maybe_dropped("release of a handle", release).await.map(drop).unwrap_or_default();
        drop(owned);
    }

    // ── observers ────────────────────────────────────────────────────────────────────────────────────────────────

    async fn observe(&self, id: u64, coordinator: &Coordinator) {
        let key = self.key();
        let before = world().oracle.borrow().shown.get(&(id, key.clone())).copied().unwrap_or_default();
        let observe = bounded(self.process, "observe", 20 * SECOND, coordinator.observe(key.as_str()));
        let Some(Ok(seen)) = self.maybe_dropped("observe", observe).await else { return };
        let Some(record) = seen.record else { return };
        let world = world();
        world.reach(Reached::Observed);
        let token = record.token.get();
        if token < before && !world.plan.lies {
            let sentence = format!("process {} saw token {token} of {key} after {before}", self.process);
            world.violate(Invariant::S8, sentence);
        }
        let mut oracle = world.oracle.borrow_mut();
        let shown = oracle.shown.entry((id, key)).or_default();
        *shown = (*shown).max(token);
    }

    async fn watch(&self, coordinator: &Coordinator) {
        let key = self.key();
        let mut watch = coordinator.watch(&Prefix::of(&key));
        let ends = self.clock.read() + Duration::from_nanos(2 * self.ttl_most());
        let mut highest = 0;
        loop {
            let limit = self.clock.sleep_until(ends);
            let next = select(watch.next(), limit).await;
            let Either::Left((Some(event), _)) = next else { return };
            let WatchEvent::Changed(change) = event else { continue };
            let token = change.token.map_or(0, |token| token.get());
            let world = world();
            world.reach(Reached::Watched);
            if token < highest && !world.plan.lies {
                let sentence = format!(
                    "the watch of process {} went from token {highest} of {key} to {token}",
                    self.process
                );
                return world.violate(Invariant::S8, sentence);
            }
            highest = highest.max(token);
        }
    }

    // ── helpers ──────────────────────────────────────────────────────────────────────────────────────────────────

    /// Awaits the future, or drops it at one of its polls.
    async fn maybe_dropped<T>(&self, what: &'static str, future: impl Future<Output = T>) -> Option<T> {
        let polls = {
            let world = world();
            let drops = world.chance(world.plan.drops);
            drops.then(|| world.draw(|rng| rng.below(u64::from(2 * LATER))) as u32)
        };
        let Some(polls) = polls else { return Some(future.await) };
        // Half of them are dropped by the number of polls, the others after some time.
        let (polls, output) = if polls < LATER {
            (polls, dropped_at(polls, future).await)
        } else {
            let span = world().draw(|rng| rng.skewed(0, self.ttl_most()));
            let limit = self.clock.sleep_until(self.clock.read() + Duration::from_nanos(span));
            match select(pin!(future), limit).await {
                Either::Left((output, _)) => (LATER, Some(output)),
                Either::Right(_) => (LATER, None),
            }
        };
        if output.is_none() {
            *world().dropped.borrow_mut().entry((what, polls)).or_default() += 1;
        }
        output
    }

    async fn sleep(&self, span: u64) {
        self.clock.sleep_until(self.clock.read() + Duration::from_nanos(span)).await;
    }

    fn key(&self) -> Key {
        let world = world();
        world.plan.keys[world.draw(|rng| rng.index(world.plan.keys.len()))].clone()
    }

    fn ttl_most(&self) -> u64 {
        world().plan.ttl_most()
    }

    fn note(&self, number: u64, what: std::fmt::Arguments<'_>) {
        world().note(format_args!("p{}.{}", self.process, self.number), number, what);
    }
}

/// The user gives the lease up now.
fn give_up(grant: &GrantId) {
    let world = world();
    world.with_grant(grant, |grant| grant.give_up(world.now.get()));
}

/// An acquire that waits: its process may use what it is granted.
struct Waiting(usize, Key);

impl Waiting {
    fn new(process: usize, key: &Key) -> Self {
        *world().oracle.borrow_mut().waiting.entry((process, key.clone())).or_default() += 1;
        Self(process, key.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(world) = try_world() else { return };
        if let Some(count) = world.oracle.borrow_mut().waiting.get_mut(&(self.0, self.1.clone())) {
            *count -= 1;
        }
    }
}

/// Work under a grant that goes on.
struct Counted(GrantId);

impl Counted {
    fn new(grant: &GrantId) -> Self {
        world().with_grant(grant, |grant| grant.change_works(1));
        Self(grant.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(world) = try_world() {
            world.with_grant(&self.0, |grant| grant.change_works(-1));
        }
    }
}

/// Work whose polls the oracle checks. It goes on from its first poll until it is dropped.
struct CheckedWork<'a> {
    process: usize,
    grant: GrantId,
    probe: Probe,
    counted: Option<Counted>,
    work: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

impl Future for CheckedWork<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = world();
        world.judge_work(self.process, &self.grant, &self.probe);
        world.judge_witness_of_work(self.process, &self.grant);
        let this = &mut *self;
        this.counted.get_or_insert_with(|| Counted::new(&this.grant));
        drop(world);
        this.work.as_mut().poll(context)
    }
}

/// A future that is dropped by its polls gets fewer polls than this. One that is dropped after some time has this number
/// in the counts.
const LATER: u32 = 5;

/// A rotation that a patient contender outlasts: it reports a denial half a minute after the first one, or later.
const DENIED_BRIEFLY: u64 = 25 * SECOND;

/// A rotation that it reports: the last denied answer comes a minute after the first, at most.
const DENIED_LONG: u64 = 80 * SECOND;

/// Longest time to connect: the limit of the driver, and 2 s.
const CONNECT_MAX: u64 = 32 * SECOND;
