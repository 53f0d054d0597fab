//! The programs that use the driver: they acquire, work, release, observe, cancel and shut down. One file per kind of use.

mod alone;
mod campaigns;
mod crowd;
mod denials;
mod dropping;
mod handles;
mod keys;
mod leases;
mod observers;
mod recorder;
mod sets;
mod slots;
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
use tenure::{Coordinator, Holder, Logbook, ProcessInfo, Verdicts};
use tenure_store::Key;

use super::bounded::bounded;
use super::clock::MachineClock;
use super::executor::ThreadRole;
use super::oracle::GrantId;
use super::store::StoreClient;
use super::world::{DriverWorld, world};
use super::{DriverFocus, PublicFuture, Reached, panics};
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
            let focus = world().plan.focus;
            let primitives = focus == DriverFocus::Primitives && world().chance(800);
            match world().draw(|rng| if primitives { rng.between(20, 27) } else { rng.below(28) }) {
                20..24 => self.slot(id, &coordinator).await,
                24..26 => self.set(id, &coordinator).await,
                26..28 => self.entry(id, &coordinator).await,
                0..10 => self.lease(id, &coordinator).await,
                10..13 => self.handle(id, &coordinator).await,
                13..16 => self.observe(id, &coordinator).await,
                16 => self.watch(&coordinator).await,
                17 => self.elect(&coordinator).await,
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
        let mut builder = Coordinator::builder()
            .clock(Arc::new(self.clock))
            .holder(holder)
            .process(ProcessInfo::default())
            .recorder(Arc::new(PanickyRecorder))
            .calls_max(world().plan.calls_max);
        if world().plan.logbook {
            builder = builder
                .logbook(Logbook::in_directory("logbook"))
                .verdicts(Verdicts::in_directory("verdicts"));
        }
        let connecting = builder.connect(StoreClient { process: self.process });
        match self.call(PublicFuture::Connect, CONNECT_MAX, connecting).await {
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
        world().oracle.borrow_mut().shutting_down.insert(id);
        let done = self.call(PublicFuture::Shutdown, limit, coordinator.shutdown()).await;
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

    async fn sleep(&self, span: u64) {
        self.clock.sleep_until(self.clock.read() + Duration::from_nanos(span)).await;
    }

    /// Awaits the future, for at most this span.
    async fn within<T>(&self, span: u64, future: impl Future<Output = T>) -> Option<T> {
        match select(pin!(future), pin!(self.sleep(span))).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }

    fn ttl(&self) -> u64 {
        let world = world();
        world.draw(|rng| rng.pick(&world.plan.ttls))
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
/// Longest time to connect: the limit of the driver, and 2 s.
const CONNECT_MAX: u64 = 32 * SECOND;
