//! Supervisors that contend over a good network and over a bad one.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tenure_testkit::{Counts, ErrorAnswer, Fault, FaultyProxy, Rule, quota};

use super::{Place, Plan, contend, setting};
use crate::run_support::{World, sleep_ms};

/// Common settings of all plans.
fn plan<'a>(world: &'a World, place: &'a Place, lease: &'a str) -> Plan<'a> {
    Plan {
        world,
        place,
        lease,
        verb: "run",
        supervisors: 12,
        ttl: Duration::from_secs(3),
        // Long enough for a renewal, at which a holder learns that its lease is being stolen.
        acts: 200,
        faults: quota(6, 15),
        span: Duration::from_secs(quota(30, 70)),
        seed: setting("TENURE_TEST_SEED", 6),
    }
}

/// A dozen supervisors contend for one lease, while the holder is killed, stopped and stolen from.
pub(crate) fn good_network(place: &Place) {
    let world = World::new("dozen");
    let span = Duration::from_secs(quota(35, 110));
    contend(&Plan { span, ..plan(&world, place, "one") }).assert_as_after_faults(quota(6, 20));
}

/// First the network has faults that a ttl tolerates, and no command is stopped (L4). Then it has all kinds of faults,
/// and the holders have faults too.
pub(crate) fn bad_network(place: &Place, proxy: &FaultyProxy) {
    let world = World::new("bad-network");
    let enough = AtomicBool::new(false);
    let (outcome, mild) = std::thread::scope(|scope| {
        let mild = scope.spawn(|| one_at_a_time(proxy, "calm", &enough));
        let plan = Plan {
            // Long enough that a busy machine does not look like a fault.
            ttl: Duration::from_secs(6),
            acts: 400,
            faults: 0,
            span: Duration::from_secs(quota(20, 40)),
            ..plan(&world, place, "calm")
        };
        let outcome = contend(&plan);
        enough.store(true, Relaxed);
        (outcome, mild.join().unwrap())
    });
    eprintln!("over a network with {mild:?}");
    outcome.assert_undisturbed(quota(5, 15) as usize);
    assert!(mild.installed >= quota(5, 15), "too little went wrong to show anything: {mild:?}");

    worse_network(place, proxy, Duration::MAX, || {});
}

/// The network has all kinds of faults, the holders have faults too, and at this interval `trouble` happens to the server.
pub(crate) fn worse_network(
    place: &Place,
    proxy: &FaultyProxy,
    interval: Duration,
    trouble: impl Fn() + Sync,
) {
    let world = World::new("worse-network");
    let (some, long) = (Duration::from_millis(300), Duration::from_secs(4));
    let faults = [
        Fault::CutBefore,
        Fault::CutAfter,
        Fault::CutMidAnswer,
        Fault::TwiceSecondAnswer,
        Fault::CutThenDeliver(some),
        Fault::CutThenDeliver(long),
        Fault::SwallowAnswer(some),
        Fault::AnswerAfter(ErrorAnswer::INTERNAL),
        Fault::AnswerAfter(ErrorAnswer::CONFLICT),
        Fault::AnswerInstead(ErrorAnswer::SLOW_DOWN),
    ];
    let rules: Vec<_> = (1..)
        .zip(faults.into_iter().filter(|fault| proxy.can_inject(*fault)))
        .map(|(seed, fault)| proxy.install(Rule::new(fault).path("worse").chance(0.03, seed)))
        .collect();
    let enough = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = Instant::now();
            while !enough.load(Relaxed) {
                sleep_ms(50);
                if last.elapsed() >= interval {
                    trouble();
                    last = Instant::now();
                }
            }
        });
        // Also if the plan fails.
        let _end = EndOnDrop(&enough);
        contend(&plan(&world, place, "worse"))
    });
    outcome.assert_as_after_faults(quota(5, 15));
    proxy.settle(Duration::from_secs(30));
    let happened: Counts = rules.iter().map(|rule| rule.counts()).sum();
    eprintln!("over a network with {happened:?}");
    assert!(happened.installed >= quota(30, 100), "too little went wrong to show anything: {happened:?}");
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// One fault that a ttl tolerates, then a pause, repeatedly.
fn one_at_a_time(proxy: &FaultyProxy, path: &str, enough: &AtomicBool) -> Counts {
    let short = Duration::from_millis(400);
    let faults = [
        Fault::CutAfter,
        Fault::CutBefore,
        Fault::CutMidAnswer,
        Fault::SwallowRequest(2 * short),
        Fault::SwallowAnswer(2 * short),
        Fault::DelayRequest(short),
        Fault::DelayAnswer(short),
        Fault::TwiceSecondAnswer,
        Fault::AnswerInstead(ErrorAnswer::UNAVAILABLE),
        Fault::AnswerAfter(ErrorAnswer::CONFLICT),
        Fault::AnswerAfter(ErrorAnswer::SLOW_DOWN),
    ];
    let mut happened = Counts::default();
    let faults = faults.iter().filter(|fault| proxy.can_inject(**fault));
    for (number, &fault) in faults.cycle().enumerate() {
        // Two of three faults are for writes.
        let rule = Rule::new(fault).path(path).times(1);
        let rule = proxy.install(if number % 3 == 0 { rule } else { rule.writes() });
        while rule.counts() == Counts::default() && !enough.load(Relaxed) {
            sleep_ms(20);
        }
        happened = happened + rule.counts();
        rule.remove();
        if enough.load(Relaxed) {
            break;
        }
        sleep_ms(700);
    }
    happened
}
