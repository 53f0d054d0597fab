//! Faults that a ttl allows for end no lease.

use std::time::Duration;

use futures_util::future::{join, join_all};
use tenure::clock::{BootClock, Clock, Instant};
use tenure::{Coordinator, Timing};
use tenure_store::BoxFuture;
use tenure_testkit::{Counts, Fault, FaultyProxy, InstalledRule, Rule, quota};

use super::ground::Ground;
use super::machine::ANSWERS;
use super::part::seed;
use super::patient::Patient;

/// Long enough that a busy machine does not look like a fault.
pub(super) const TTL: Duration = Duration::from_secs(6);
const MACHINES: usize = 4;
/// Number of leases per machine, on a fast server.
pub(crate) const LEASES: usize = 16;

/// One fault after another for a period: a lost answer, a delay below the limit of a call, a 409, 429, 500 or 503. Timing
/// promises that a term survives any of them, so none may be lost (L4).
///
/// Each lease has faults of its own. If the leases of a machine share a connection, a fault of one of them is one of all:
/// then the machine has one fault at a time, each with another lease, and the next one when all of them are renewed.
pub(crate) async fn healthy_on(ground: &impl Ground, leases: usize) {
    let shares = ground.shares_connections();
    let troubled = if shares { 1 } else { leases };
    let (span, least) =
        (Duration::from_secs(quota(25, 65)), quota(150, 500) * troubled as u64 / LEASES as u64);
    let mut machines = Vec::new();
    for number in 0..MACHINES {
        let proxy = ground.proxy();
        let coordinator = Coordinator::connect(ground.store_through(&proxy)).await.unwrap();
        let patients = join_all((0..leases).map(|lease| {
            // One of them is a slot.
            let slots = if lease == 0 { ground.slots() } else { 0 };
            Patient::acquire(&coordinator, format!("healthy/{number}-{lease}-"), slots)
        }));
        machines.push((patients.await, proxy));
    }
    let mut rng = fastrand::Rng::with_seed(seed());
    let end = BootClock.now() + span;
    let mut renewals: Vec<BoxFuture<'_, ()>> = Vec::new();
    let mut faults: Vec<BoxFuture<'_, Vec<InstalledRule>>> = Vec::new();
    for (patients, proxy) in &machines {
        renewals.extend(patients.iter().map(|patient| Box::pin(patient.count_until(end)) as _));
        for together in patients.chunks(if shares { leases } else { 1 }) {
            faults.push(Box::pin(trouble(together, proxy, end, rng.fork())));
        }
    }
    let (rules, _) = join(join_all(faults), join_all(renewals)).await;
    let rules = rules.concat();
    for (patients, proxy) in machines {
        proxy.settle(TTL);
        for patient in patients {
            patient.release().await;
        }
    }
    let counts: Counts = rules.iter().map(InstalledRule::counts).sum();
    println!("{counts:?} on {} leases in {span:?}, and none was lost", MACHINES * leases);
    assert!(counts.installed >= least, "too little went wrong to show anything: {counts:?}");
}

/// Gives these leases one fault after another.
async fn trouble(
    together: &[Patient],
    proxy: &FaultyProxy,
    end: Instant,
    mut rng: fastrand::Rng,
) -> Vec<InstalledRule> {
    let mut rules = Vec::new();
    while BootClock.now() < end {
        let (patient, fault) = (rng.choice(together).expect("there are some"), mild(proxy, &mut rng));
        let rule = proxy.install(Rule::new(fault).writes().path(&patient.name).times(1));
        rules.push(rule.clone());
        // The renewal that meets the fault still succeeds, and so does that of every lease behind it: then comes the next
        // fault.
        while BootClock.now() < end && rule.counts() == Counts::default() {
            pause().await;
        }
        let renewed: Vec<_> = together.iter().map(Patient::renewed).collect();
        let is_behind = |(patient, before): (&Patient, &u64)| patient.renewed() == *before;
        while BootClock.now() < end && together.iter().zip(&renewed).any(is_behind) {
            for patient in together {
                patient.must_hold(fault);
            }
            pause().await;
        }
        rule.remove();
    }
    rules
}

async fn pause() {
    BootClock.sleep_until(BootClock.now() + Duration::from_millis(20)).await;
}

/// A fault that a term survives.
fn mild(proxy: &FaultyProxy, rng: &mut fastrand::Rng) -> Fault {
    let timeout = Timing::new(TTL).unwrap().timeout();
    let (long, short) = (timeout * 2, timeout.mul_f64(0.8));
    let answer = *rng.choice(&ANSWERS).unwrap();
    let faults = [
        Fault::CutBefore,
        Fault::CutAfter,
        Fault::CutMidAnswer,
        Fault::SwallowRequest(long),
        Fault::SwallowAnswer(long),
        Fault::CutThenDeliver(short),
        Fault::TwiceFirstAnswer,
        Fault::TwiceSecondAnswer,
        Fault::DelayRequest(short),
        Fault::DelayAnswer(short),
        Fault::AnswerInstead(answer),
        Fault::AnswerAfter(answer),
    ];
    let possible: Vec<_> = faults.into_iter().filter(|fault| proxy.can_inject(*fault)).collect();
    *rng.choice(&possible).unwrap()
}
