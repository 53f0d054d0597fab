use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use tenure::simulation::{Duty, PageFiles, SimulatedHost, WitnessFiles};
use tenure_core::machine::{Rules, Standard};

use super::executor::ThreadRole;
use super::kernel::Directory;
use super::pages::PageFolder;
use super::world::{DriverWorld, world};
use super::{DriverChange, Reached};
use crate::time::{MICRO, MILLI, SECOND};

/// The machines as the driver sees them: the one of the current process.
#[derive(Debug)]
pub(super) struct Host;

impl SimulatedHost for Host {
    fn fill(&self, bytes: &mut [u8]) {
        let world = world();
        for chunk in bytes.chunks_mut(8) {
            let random = world.draw(|rng| rng.next()).to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }

    fn start_keeper(&self, keeper: LocalBoxFuture<'static, ()>) {
        let world = world();
        world.tasks.spawn(world.current.get(), ThreadRole::Keeper, keeper);
    }

    fn run_job(&self, job: Box<dyn FnOnce() + Send>) -> bool {
        let world = world();
        if !world.healed.get() && world.chance(world.plan.no_thread) {
            world.reach(Reached::NoThread);
            return false;
        }
        let slow = !world.healed.get() && world.chance(world.plan.slow_disk);
        let span = if slow {
            world.reach(Reached::DiskSlow);
            world.draw(|rng| rng.between(50 * MILLI, 4 * SECOND))
        } else {
            world.draw(|rng| rng.skewed(5 * MICRO, 500 * MICRO))
        };
        let process = world.current.get();
        world.after(span, move |world| run_job(world, process, job));
        true
    }

    fn witnesses(&self) -> Option<Arc<dyn WitnessFiles>> {
        let world = world();
        let machine = world.process(world.current.get(), |it| it.machine);
        let loses_locks = world.plan.loses_locks;
        world.plan.witnesses.then(|| Arc::new(Directory { machine, loses_locks }) as Arc<dyn WitnessFiles>)
    }

    fn pages(&self, directory: &Path) -> Box<dyn PageFiles> {
        let world = world();
        let machine = world.process(world.current.get(), |it| it.machine);
        Box::new(PageFolder { machine, directory: directory.display().to_string() })
    }

    fn rules(&self) -> &'static dyn Rules {
        match world().mutant.map(|mutant| mutant.change) {
            Some(DriverChange::Rule(rules)) => rules,
            _ => &Standard,
        }
    }

    fn keys_max(&self) -> usize {
        world().plan.keys_max
    }

    fn preempt(&self) {
        world().maybe_preempt();
    }

    fn neglects(&self, duty: Duty) -> bool {
        matches!(world().mutant.map(|mutant| mutant.change), Some(DriverChange::Neglects(it)) if it == duty)
    }
}

/// Runs a job of a process, unless the process is dead, and not while it stands still.
fn run_job(world: &Rc<DriverWorld>, process: usize, job: Box<dyn FnOnce() + Send>) {
    if let Some(until) = world.is_paused(process) {
        return world.after(until - world.now.get(), move |world| run_job(world, process, job));
    }
    let before = world.current.replace(process);
    if world.process(process, |it| it.alive) {
        // A panic costs this job alone, as on a thread.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
    world.current.set(before);
}
