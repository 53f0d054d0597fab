//! Many leases of one process, on a store that is down for a third of their ttl and then comes back.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tenure::clock::Clock;
use tenure::{Coordinator, Holder, Lease, ProcessInfo};
use tenure_core::Timing;
use tenure_store::{Reason, StoreError};

use super::clock::MachineClock;
use super::executor::ThreadRole;
use super::plan::DriverPlan;
use super::process::DriverProcess;
use super::seed::run_world;
use super::server::{Answered, StoreRequest};
use super::store::StoreClient;
use super::world::{DriverWorld, world};
use super::{DriverMutant, DriverOutcome};
use crate::Invariant;
use crate::rng::Rng;
use crate::time::{MILLI, SECOND};

/// A scenario: so many leases, and one outage.
#[derive(Clone, Debug)]
pub struct OutageScenario {
    leases: u64,
    ttl: u64,
    manner: OutageManner,
    seed: u64,
    mutant: Option<&'static DriverMutant>,
}

/// The way in which calls fail during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageManner {
    /// Every connection is refused at once: no call has an effect.
    Refused,
    /// Requests are lost, and every call lasts until its timeout.
    Hangs,
    /// Every connection breaks at once, before its request arrives.
    Breaks,
    /// Every request has its effect, and then its connection breaks.
    AnswersLost,
}

/// Calls per window before, during and after an outage. A window is a fifth of a renewal period: one second with a ttl
/// of 15 s.
#[derive(Clone, Copy, Debug)]
pub struct OutageReport {
    /// The manner of the outage.
    pub manner: OutageManner,
    /// Number of leases.
    pub leases: u64,
    /// Leases that were lost.
    pub lost: u64,
    /// Average number of calls in a window, before the outage.
    pub steady: u64,
    /// Largest number of calls in a window that began during the outage.
    pub during: u64,
    /// Largest number of calls in a window that began after it.
    pub after: u64,
}

/// The outage as the store sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutagePlan {
    manner: OutageManner,
    from: u64,
    until: u64,
    /// Calls are counted in windows of this length.
    window: u64,
}

impl OutageManner {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Refused, Self::Hangs, Self::Breaks, Self::AnswersLost];

    /// The manner, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Refused => "connections are refused",
            Self::Hangs => "calls hang until their timeout",
            Self::Breaks => "connections break",
            Self::AnswersLost => "requests have their effect, answers are lost",
        }
    }
}

impl OutageReport {
    /// True if no lease was lost, and no window had more than twice the calls of the steady state.
    pub fn is_good(&self) -> bool {
        self.lost == 0 && self.during.max(self.after) <= 2 * self.steady
    }
}

impl OutageScenario {
    /// Leases with a ttl of 15 s.
    pub fn new(leases: u64, manner: OutageManner, seed: u64) -> Self {
        Self { leases, ttl: 15 * SECOND, manner, seed, mutant: None }
    }

    /// The scenario of a seed of the driver.
    pub(super) fn of_seed(number: u64) -> Self {
        let manner = OutageManner::ALL[number as usize % OutageManner::ALL.len()];
        Self { ttl: 3 * SECOND, ..Self::new(1_000, manner, number) }
    }

    pub(super) fn with(self, mutant: Option<&'static DriverMutant>) -> Self {
        Self { mutant, ..self }
    }

    /// Runs it. A missed goal is a violation.
    pub fn run(&self) -> (OutageReport, DriverOutcome) {
        let period = Timing::new(Duration::from_nanos(self.ttl)).expect("the defaults").period();
        let period = period.as_nanos() as u64;
        let from = STEADY_TTLS * self.ttl;
        let plan = OutagePlan { manner: self.manner, from, until: from + self.ttl / 3, window: period / 5 };
        let mut rng = Rng::new(self.seed ^ 0x0D07_A6E5);
        let driver_plan = DriverPlan::of_outage(&mut rng, self.ttl, plan);
        run_world(DriverWorld::new(driver_plan, rng, false, self.mutant), |world| {
            world.processes.borrow_mut().push(DriverProcess::on(0));
            let leases = Rc::new(RefCell::new(Vec::new()));
            let user = hold(self.leases, self.ttl, period, Rc::clone(&leases));
            world.tasks.spawn(0, ThreadRole::User, user.boxed_local());
            // Every lease that survives is renewed again within a ttl.
            world.run_until(plan.until + 2 * self.ttl);
            let lost = |lease: &Lease| lease.lost().now_or_never().is_some();
            let held = leases.borrow().iter().filter(|lease| !lost(lease)).count() as u64;
            let report = self.report(&world.calls.borrow(), plan, self.leases - held);
            self.judge(world, &report);
            // The leases end before their world.
            leases.borrow_mut().clear();
            report
        })
    }

    fn report(&self, calls: &[u64], plan: OutagePlan, lost: u64) -> OutageReport {
        let window = |at: u64| (at / plan.window) as usize;
        let most = |from: u64, to: u64| calls[window(from)..window(to)].iter().copied().max().unwrap_or(0);
        let before = &calls[window(plan.from - 2 * self.ttl)..window(plan.from)];
        OutageReport {
            manner: self.manner,
            leases: self.leases,
            lost,
            steady: before.iter().sum::<u64>() / before.len() as u64,
            during: most(plan.from, plan.until),
            after: most(plan.until, plan.until + 2 * self.ttl - plan.window),
        }
    }

    fn judge(&self, world: &DriverWorld, report: &OutageReport) {
        if report.lost > 0 {
            let sentence = format!("{} of {} leases were lost: {report:?}", report.lost, self.leases);
            world.violate(Invariant::L4, sentence);
        } else if !report.is_good() {
            let sentence = format!("a window has more than twice the usual calls: {report:?}");
            world.violate(Invariant::L5, sentence);
        }
    }
}

/// Acquires all leases, spread over a period as if they were started one after the other, and holds them.
async fn hold(count: u64, ttl: u64, period: u64, leases: Rc<RefCell<Vec<Lease>>>) {
    let clock = MachineClock(0);
    let connecting = Coordinator::builder()
        .clock(Arc::new(clock))
        .holder(Holder::new("process").expect("a holder"))
        .process(ProcessInfo::default())
        .calls_max(world().plan.calls_max)
        .connect(StoreClient { process: 0 });
    let coordinator = connecting.await.expect("nothing fails yet");
    let start = clock.read();
    let acquire = async |number: u64| {
        clock.sleep_until(start + Duration::from_nanos(number * period / count)).await;
        let request = coordinator.lease(format!("lease-{number}")).expect("a key");
        let lease = request.ttl(Duration::from_nanos(ttl)).acquire().await.expect("nothing fails yet");
        leases.borrow_mut().push(lease);
    };
    join_all((0..count).map(acquire)).await;
    std::future::pending().await
}

impl DriverWorld {
    /// Counts a call, and fails it during an outage. Returns it if it goes its usual way.
    pub(super) fn meet_outage(
        self: &Rc<Self>,
        process: usize,
        request: StoreRequest,
        answered: Answered,
        sent: u64,
    ) -> Option<(StoreRequest, Answered)> {
        let now = self.now.get();
        let Some(outage) = self.plan.outage else { return Some((request, answered)) };
        {
            let mut calls = self.calls.borrow_mut();
            let window = (now / outage.window) as usize;
            if calls.len() <= window {
                calls.resize(window + 1, 0);
            }
            calls[window] += 1;
        }
        if !(outage.from..outage.until).contains(&now) {
            return Some((request, answered));
        }
        let error = match outage.manner {
            OutageManner::Hangs => {
                self.server.borrow_mut().unanswered.push(answered);
                return None;
            }
            OutageManner::Refused => StoreError::refused(Reason::Unreachable, "the connection was refused"),
            OutageManner::Breaks => StoreError::unknown("the connection was reset"),
            OutageManner::AnswersLost => {
                self.after(2 * MILLI, move |world| drop(world.arrive(process, &request, sent)));
                StoreError::unknown("the connection was reset after the request")
            }
        };
        self.after(5 * MILLI, move |_| drop(answered.send(Err(error))));
        None
    }
}

/// Time before the outage, in ttls: the renewals have spread by then.
const STEADY_TTLS: u64 = 4;
