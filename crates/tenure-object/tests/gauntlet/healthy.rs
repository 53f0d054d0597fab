//! Faults that a ttl allows for end no lease.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, Timing};
use tenure_store::BoxFuture;
use tenure_testkit::{Counts, Fault, FaultyProxy, InstalledRule, Kind, Rule, quota};

use crate::bucket::{BucketOf, Cloud};
use crate::machine::ANSWERS;
use crate::part::seed;

/// Long enough that a busy machine does not look like a fault.
const TTL: Duration = Duration::from_secs(6);
const MACHINES: usize = 4;
/// Number of leases per machine, on a fast server.
pub(crate) const LEASES: usize = 16;

/// One fault at a time for each lease, for a period: a lost answer, a delay below the limit of a call, a 409, 429, 500
/// or 503. Timing promises that a term survives any of them, so none may be lost (L4).
pub(crate) async fn healthy_on<C: Cloud>(kind: Kind, leases: usize) {
    let Some(bucket) = BucketOf::<C>::alone_on(kind, "healthy") else { return };
    let (span, least) = (Duration::from_secs(quota(25, 65)), quota(150, 500) * leases as u64 / LEASES as u64);
    let end = BootClock.now() + span;
    let mut machines = Vec::new();
    for _ in 0..MACHINES {
        let proxy = FaultyProxy::start(bucket.server().address());
        let coordinator = Coordinator::connect(bucket.store_through(&proxy)).await.unwrap();
        machines.push((proxy, coordinator));
    }
    let mut rng = fastrand::Rng::with_seed(seed());
    let mut trials: Vec<BoxFuture<'_, Vec<InstalledRule>>> = Vec::new();
    for (number, (proxy, coordinator)) in machines.iter().enumerate() {
        for lease in 0..leases {
            let (name, mut rng) = (format!("healthy/{number}-{lease}-"), rng.fork());
            trials.push(Box::pin(async move {
                let request = coordinator.lease(name.as_str()).unwrap().without_witness();
                let lease = request.ttl(TTL).acquire().await.unwrap();
                let (mut renewals, mut last) = (pin!(lease.renewals()), None);
                let mut rules = Vec::new();
                while BootClock.now() < end {
                    let fault = mild(&mut rng);
                    let rule = proxy.install(Rule::new(fault).method("PUT").path(&name).times(1));
                    rules.push(rule.clone());
                    // The renewal that meets the fault still succeeds: then comes the next fault.
                    let renewed = renewals.next().await;
                    rule.remove();
                    if renewed.is_none() {
                        break;
                    }
                    last = Some(fault);
                }
                if let Err(lost) = lease.check() {
                    panic!("{lost}, after {last:?}; the last trouble was {:?}", lease.last_error());
                }
                lease.release().await.unwrap();
                rules
            }));
        }
    }
    let rules = join_all(trials).await.concat();
    for (proxy, _) in &machines {
        proxy.settle(TTL);
    }
    let counts: Counts = rules.iter().map(InstalledRule::counts).sum();
    println!("{counts:?} on {} leases in {span:?}, and none was lost", MACHINES * leases);
    assert!(counts.installed >= least, "too little went wrong to show anything: {counts:?}");
}

/// A fault that a term survives.
fn mild(rng: &mut fastrand::Rng) -> Fault {
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
    *rng.choice(&faults).unwrap()
}
