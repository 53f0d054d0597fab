use std::collections::BTreeMap;
use std::rc::Rc;

use super::drops::Drops;
use super::executor::ThreadRole;
use super::host::Host;
use super::plan::DriverPlan;
use super::users::start_process;
use super::world::{DriverWorld, set_world};
use super::{DriverFocus, DriverMutant, OutageScenario, Reached, panics};
use crate::rng::Rng;
use crate::time::{MILLI, MINUTE, SECOND};
use crate::{Invariant, Tally, Violation};

/// One history of the driver, determined by a number.
#[derive(Clone, Debug)]
pub struct DriverSeed {
    number: u64,
    focus: DriverFocus,
    minutes: u64,
    readable: bool,
    mutant: Option<&'static DriverMutant>,
}

/// The result of a seed of the driver.
#[derive(Clone, Debug)]
pub struct DriverOutcome {
    /// The first violation.
    pub violation: Option<Violation>,
    /// Hash of the complete history.
    pub hash: u64,
    /// The history as text, if it was requested.
    pub lines: Vec<String>,
    /// The configuration.
    pub config: String,
    /// Faults of the network.
    pub tally: Tally,
    /// Other faults and states.
    pub reached: BTreeMap<Reached, u64>,
    /// Futures that users dropped.
    pub drops: Drops,
}

impl DriverSeed {
    /// Simulated minutes during which faults strike.
    pub const MINUTES: u64 = 3;

    /// The seed with this number.
    pub fn new(number: u64) -> Self {
        Self { number, focus: DriverFocus::None, minutes: Self::MINUTES, readable: false, mutant: None }
    }

    /// Sets the focus.
    pub fn focus(self, focus: DriverFocus) -> Self {
        Self { focus, ..self }
    }

    /// Sets the simulated minutes during which faults strike.
    pub fn minutes(self, minutes: u64) -> Self {
        Self { minutes, ..self }
    }

    /// Also writes the history as text.
    pub fn readable(self) -> Self {
        Self { readable: true, ..self }
    }

    /// Runs a mutant of the driver.
    pub fn with(self, mutant: &'static DriverMutant) -> Self {
        Self { mutant: Some(mutant), focus: mutant.focus, ..self }
    }

    /// Runs it.
    pub fn run(&self) -> DriverOutcome {
        if self.focus == DriverFocus::Outage {
            return OutageScenario::of_seed(self.number).with(self.mutant).run().1;
        }
        let mut rng = Rng::new(self.number ^ 0xD21F_E200);
        let plan = DriverPlan::draw(&mut rng, self.focus);
        run_world(DriverWorld::new(plan, rng, self.readable, self.mutant), |world| self.history(world)).1
    }

    /// Faults strike; then everything heals, the users go on for a while, and stop.
    fn history(&self, world: &Rc<DriverWorld>) {
        if world.plan.foreign {
            world.server.borrow_mut().deface(world.plan.keys[0].clone());
        }
        for machine in world.plan.processes.clone() {
            start_process(world, machine);
        }
        world.next_fault();
        look_for_unused(world);
        world.run_until(self.minutes * MINUTE);
        world.heal();
        let ttl = world.plan.ttl_most();
        world.run_until(world.now.get() + 4 * ttl + 10 * SECOND);
        world.stopping.set(true);
        // The longest bound of a future of a user is that of the release of a handle.
        world.run_until(world.now.get() + 6 * ttl + 150 * SECOND);
        if world.is_over() {
            return;
        }
        for process in world.alive() {
            for (role, what) in [(ThreadRole::User, "a user"), (ThreadRole::Keeper, "the keeper")] {
                if world.tasks.has(process, role) {
                    let sentence = format!("{what} of process {process} has not ended");
                    return world.violate(Invariant::L7, sentence);
                }
            }
        }
    }
}

/// Runs a history in a world, and takes the world down.
pub(super) fn run_world<T>(
    world: DriverWorld,
    history: impl FnOnce(&Rc<DriverWorld>) -> T,
) -> (T, DriverOutcome) {
    panics::be_quiet_about_simulated();
    let config = format!("{:?}", world.plan);
    let world = Rc::new(world);
    set_world(Some(Rc::clone(&world)));
    tenure::simulation::install(Some(Rc::new(Host)));
    let output = history(&world);
    // The remaining processes end while their world exists.
    let processes = world.processes.borrow().len();
    for process in 0..processes {
        world.tasks.end(process, None);
    }
    tenure::simulation::install(None);
    set_world(None);
    let violation = world.take_violation();
    let world = Rc::try_unwrap(world).unwrap_or_else(|_| unreachable!("nothing else refers to it"));
    let trace = world.trace.into_inner();
    let outcome = DriverOutcome {
        violation,
        hash: trace.hash(),
        lines: trace.into_lines(),
        config,
        tally: world.tally.into_inner(),
        reached: world.reached.into_inner(),
        drops: world.drops.into_inner(),
    };
    (output, outcome)
}

/// Checks every 500 ms that no grant stays unused, and no slot free.
fn look_for_unused(world: &Rc<DriverWorld>) {
    world.judge_unused();
    world.judge_free_slots();
    world.after(500 * MILLI, look_for_unused);
}
