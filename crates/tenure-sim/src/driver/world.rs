use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::task::Waker;

use super::drops::Drops;
use super::executor::Tasks;
use super::machine::Machine;
use super::oracle::DriverOracle;
use super::plan::DriverPlan;
use super::process::DriverProcess;
use super::server::StoreServer;
use super::{DriverMutant, Reached};
use crate::parts::Agenda;
use crate::rng::Rng;
use crate::trace::Trace;
use crate::{Invariant, Tally, Violation};

/// Everything outside of the driver: time, machines, processes, the network and the store.
///
/// One thread runs all of it. Futures and wakers of the driver must be `Send`, so they find the world by the thread, and
/// keep only numbers.
pub(super) struct DriverWorld {
    /// True time, in nanoseconds.
    pub(super) now: Cell<u64>,
    pub(super) rng: RefCell<Rng>,
    agenda: RefCell<Agenda<DueAction>>,
    pub(super) tasks: Tasks,
    pub(super) timers: RefCell<Timers>,
    pub(super) machines: Vec<Machine>,
    pub(super) processes: RefCell<Vec<DriverProcess>>,
    /// Number of the process of the running task.
    pub(super) current: Cell<usize>,
    pub(super) server: RefCell<StoreServer>,
    pub(super) oracle: RefCell<DriverOracle>,
    pub(super) trace: RefCell<Trace>,
    pub(super) tally: RefCell<Tally>,
    pub(super) reached: RefCell<BTreeMap<Reached, u64>>,
    pub(super) drops: RefCell<Drops>,
    pub(super) plan: DriverPlan,
    pub(super) mutant: Option<&'static DriverMutant>,
    /// Number of tasks that are preempted in the middle of a poll.
    pub(super) preempted: Cell<u32>,
    /// True once no new fault begins.
    pub(super) healed: Cell<bool>,
    /// True once users start nothing new.
    pub(super) stopping: Cell<bool>,
    /// Number of calls that were sent in each window of a scenario with an outage.
    pub(super) calls: RefCell<Vec<u64>>,
    violation: RefCell<Option<Violation>>,
}

/// Something that happens at an instant.
pub(super) type DueAction = Box<dyn FnOnce(&Rc<DriverWorld>)>;

/// Pending sleeps, by number.
#[derive(Default)]
pub(super) struct Timers {
    pub(super) next: u64,
    pub(super) wakers: BTreeMap<u64, Waker>,
}

thread_local! {
    static WORLD: RefCell<Option<Rc<DriverWorld>>> = const { RefCell::new(None) };
}

/// The world of this thread; `None` while it is taken down.
pub(super) fn try_world() -> Option<Rc<DriverWorld>> {
    WORLD.with(|world| world.borrow().clone())
}

/// The world of this thread.
pub(super) fn world() -> Rc<DriverWorld> {
    try_world().expect("a simulated process runs in a world")
}

/// True if a mutant runs on this thread: the hunt expects its panics.
pub(super) fn runs_mutant() -> bool {
    WORLD.with(|world| {
        world.try_borrow().is_ok_and(|world| world.as_ref().is_some_and(|world| world.mutant.is_some()))
    })
}

/// P1: code of the driver has panicked. The driver may catch that, as it does for foreign code.
pub(super) fn panicked(said: &str) {
    WORLD.with(|world| {
        if let Ok(Some(world)) = world.try_borrow().as_deref() {
            world.violate(Invariant::P1, format!("code of process {} panicked: {said}", world.current.get()));
        }
    });
}

/// Makes this the world of the thread, or removes it.
pub(super) fn set_world(world: Option<Rc<DriverWorld>>) {
    WORLD.with(|current| *current.borrow_mut() = world);
}

impl DriverWorld {
    pub(super) fn new(
        plan: DriverPlan,
        rng: Rng,
        readable: bool,
        mutant: Option<&'static DriverMutant>,
    ) -> Self {
        let machines = plan.machines.iter().map(Machine::new).collect();
        Self {
            now: Cell::new(0),
            rng: RefCell::new(rng),
            agenda: RefCell::new(Agenda::new()),
            tasks: Tasks::default(),
            timers: RefCell::default(),
            machines,
            processes: RefCell::default(),
            current: Cell::new(0),
            server: RefCell::new(StoreServer::new(&plan)),
            oracle: RefCell::new(DriverOracle::default()),
            trace: RefCell::new(Trace::new(readable)),
            tally: RefCell::new(Tally::new()),
            reached: RefCell::default(),
            drops: RefCell::default(),
            plan,
            mutant,
            preempted: Cell::new(0),
            healed: Cell::new(false),
            stopping: Cell::new(false),
            calls: RefCell::default(),
            violation: RefCell::default(),
        }
    }

    /// Adds an event after this span.
    pub(super) fn after(&self, span: u64, event: impl FnOnce(&Rc<DriverWorld>) + 'static) {
        self.agenda.borrow_mut().push(self.now.get() + span, Box::new(event));
    }

    /// Lets time pass until `end`: runs every task that is ready, and every event that is due.
    pub(super) fn run_until(self: &Rc<Self>, end: u64) {
        while !self.is_over() {
            if self.run_ready_task() {
                continue;
            }
            let due = self.agenda.borrow().next_at().filter(|at| *at <= end);
            let Some(at) = due else { break };
            debug_assert!(at >= self.now.get(), "time never goes back");
            self.now.set(at);
            let event = self.agenda.borrow_mut().pop();
            if let Some((_, event)) = event {
                event(self);
            }
        }
        self.now.set(self.now.get().max(end));
    }

    /// Draws from the generator of the seed.
    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.rng.borrow_mut())
    }

    pub(super) fn chance(&self, per_mille: u32) -> bool {
        self.draw(|rng| rng.chance(per_mille))
    }

    pub(super) fn reach(&self, what: Reached) {
        *self.reached.borrow_mut().entry(what).or_default() += 1;
    }

    /// Adds to the trace.
    pub(super) fn note(&self, who: std::fmt::Arguments<'_>, number: u64, what: std::fmt::Arguments<'_>) {
        let mut trace = self.trace.borrow_mut();
        trace.mix(self.now.get());
        trace.mix(number);
        trace.line(self.now.get(), who, what);
    }

    /// Ends the seed: an invariant is broken.
    pub(super) fn violate(&self, invariant: Invariant, sentence: String) {
        self.violation.borrow_mut().get_or_insert(Violation { invariant, at: self.now.get(), sentence });
    }

    pub(super) fn is_over(&self) -> bool {
        self.violation.borrow().is_some()
    }

    pub(super) fn take_violation(&self) -> Option<Violation> {
        self.violation.borrow_mut().take()
    }
}
