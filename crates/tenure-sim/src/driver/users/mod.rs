//! The programs that use the driver: they acquire, work, release, observe, cancel and shut down. One file per kind of use.

mod campaigns;
mod handles;
mod leases;
mod observers;
mod recorder;
mod waiting;
mod work;

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tenure::clock::Clock;
use tenure::{Coordinator, Holder, ProcessInfo};
use tenure_store::Key;

use super::bounded::{bounded, dropped_at};
use super::clock::MachineClock;
use super::executor::ThreadRole;
use super::oracle::GrantId;
use super::store::StoreClient;
use super::world::{DriverWorld, world};
use super::{Reached, panics};
use crate::Invariant;
use crate::time::{MILLI, SECOND};
use recorder::PanickyRecorder;

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

impl User {
    async fn run(self) {
        while !world().stopping.get() {
            let Some((id, coordinator)) = self.coordinator().await else {
                self.sleep(world().draw(|rng| rng.between(100, 2000)) * MILLI).await;
                continue;
            };
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

/// Panics sometimes, as foreign code may.
fn maybe_panic(whose: &str) {
    let world = world();
    if !world.healed.get() && world.chance(world.plan.user_panics) {
        world.reach(Reached::UserPanicked);
        panics::simulated(whose);
    }
}

/// The user gives the lease up now.
fn give_up(grant: &GrantId) {
    let world = world();
    world.with_grant(grant, |grant| grant.give_up(world.now.get()));
}
/// A future that is dropped by its polls gets fewer polls than this. One that is dropped after some time has this number
/// in the counts.
const LATER: u32 = 5;

/// Longest time to connect: the limit of the driver, and 2 s.
const CONNECT_MAX: u64 = 32 * SECOND;
