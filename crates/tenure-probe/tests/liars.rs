//! Results of a probe for every broken store of the suite.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::clock::{Clock, Instant, WallTime};
use tenure_conformance::Harness;
use tenure_conformance::broken::{Broken, Lie};
use tenure_probe::{Clause, Fitness, Plan, Probe, ProbeError, Qualification, Weight};
use tenure_store::{BoxFuture, Guarantees, Store};

/// The clock of a broken store. A sleeping caller advances it.
#[derive(Debug)]
struct Moving(Broken);

impl Clock for Moving {
    fn now(&self) -> Instant {
        Harness::clock(&self.0).now()
    }

    /// About the time that the store itself reports.
    fn wall(&self) -> WallTime {
        WallTime::from_millis(1_794_720_600_000)
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let broken = self.0.clone();
        Box::pin(async move {
            let now = Harness::clock(&broken).now();
            broken.advance(at.since(now));
        })
    }
}

fn probe(store: &Broken) -> Probe {
    let plan = Plan::default().racers(16).unwrap().rounds(5).unwrap().samples(10).unwrap();
    let clock = Arc::new(Moving(store.clone()));
    let open = || Ok::<_, ProbeError>(Arc::new(store.clone()) as Arc<dyn Store>);
    Probe::open_at(plan, 7, clock, open).unwrap()
}

async fn qualify(store: &Broken) -> Qualification {
    let probe = probe(store);
    let qualification = probe.run(&|_| ()).await.unwrap();
    let cleaned = probe.clean_up(Duration::from_secs(60)).await;
    assert_eq!((cleaned.left, &cleaned.why), (0, &None), "{store}: {cleaned:?}");
    qualification
}

/// Lies that no probe can detect: it restarts no server, loses answers only on this side of the store, and uses neither
/// leases nor primitives.
const UNSEEN: &[Lie] = &[
    Lie::ForgetsAfterRestart,
    Lie::RestampsOnRestart,
    Lie::EvictsIdleEntries,
    Lie::HidesReservedNames,
    Lie::UnknownAsConflict,
    Lie::UnknownAsRefused,
    Lie::UnknownAsApplied,
    Lie::AgesRunFast,
    Lie::StoppedClock,
];

#[tokio::test]
async fn every_lie_is_refused_or_is_a_limit_as_the_table_says() {
    for lie in Lie::ALL.iter().filter(|lie| !UNSEEN.contains(lie)) {
        let found = qualify(&Broken::lying(*lie)).await;
        let clause =
            Clause::ALL.iter().find(|clause| clause.name == lie.caught_by()).expect("it is in the table");
        let reasons = found.fitness.reasons();
        println!("{lie:<30} {}: {reasons:#?}", found.fitness);
        let as_judged = match clause.weight {
            Weight::Refuses => matches!(found.fitness, Fitness::Refused(_)),
            Weight::Limits => matches!(found.fitness, Fitness::FitWithLimits(_)),
        };
        assert!(as_judged, "{lie}: {} {reasons:#?}", found.fitness);
        assert!(reasons.iter().any(|reason| reason.starts_with(clause.title)), "{lie}: {reasons:#?}");
        assert_eq!(found.advice.is_some(), !matches!(found.fitness, Fitness::Refused(_)), "{lie}");
    }
}

#[tokio::test]
async fn an_honest_store_is_fit_and_its_ttl_is_recommended() {
    let found = qualify(&Broken::honest()).await;
    assert_eq!(found.fitness, Fitness::Fit);
    assert_eq!(found.equal_bytes_share_a_version, Some(false));
    assert_eq!(found.advice.unwrap().timing.ttl().as_duration(), Duration::from_secs(15));
    let measured = found.measured.unwrap();
    assert_eq!((measured.replace.samples, measured.replace.failed, measured.rate.writes), (10, 0, 10));
}

#[tokio::test]
async fn the_failure_of_a_racy_store_names_its_rate() {
    let found = qualify(&Broken::lying(Lie::RacyCheckThenAct)).await;
    let told = found.fitness.reasons().join("\n");
    assert!(told.contains("5 of 5 rounds were not won by exactly one, with up to 16 winners"), "{told}");
    // Sequential checks alone would have accepted the store.
    let failed = found.checks.iter().filter(|check| check.verdict.to_string() == "FAILED");
    let clauses: BTreeSet<_> = failed.map(|check| check.clause.name).collect();
    assert_eq!(clauses, BTreeSet::from(["races", "removal"]));
}

#[tokio::test]
async fn a_store_that_bears_one_write_a_second_is_fit_for_a_longer_ttl() {
    let mut guarantees = Broken::honest().guarantees();
    guarantees.write_interval = Duration::from_secs(1);
    let found = qualify(&Broken::honest().declaring(guarantees)).await;
    let Fitness::FitWithLimits(limits) = &found.fitness else { panic!("{:?}", found.fitness) };
    assert_eq!(limits.len(), 1, "{limits:?}");
    assert!(limits[0].starts_with("it throttled "), "{limits:?}");
    let timing = found.advice.unwrap().timing;
    assert!(timing.retry() >= Duration::from_secs(1), "{timing}");
}

#[tokio::test]
async fn a_store_that_promises_too_little_is_refused_before_anything_is_sent() {
    let probe = probe(&Broken::honest().declaring(Guarantees::default()));
    let error = probe.run(&|_| ()).await.unwrap_err();
    assert!(matches!(error, ProbeError::Refused { .. }), "{error}");
    let sentence = error.to_string();
    assert!(
        sentence.starts_with("an honest store is refused: it does not promise atomic create"),
        "{sentence}"
    );
    assert_eq!(probe.calls().total(), 0);
}

#[tokio::test]
async fn progress_is_reported_step_by_step_to_the_end() {
    let probe = probe(&Broken::honest());
    let told = Mutex::new(Vec::new());
    probe.run(&|progress| told.lock().unwrap().push(progress)).await.unwrap();
    let told = told.into_inner().unwrap();
    assert!(told.iter().enumerate().all(|(at, progress)| progress.done == at && progress.of == told.len()));
    assert_eq!(told[0].title, "connection");
    assert_eq!(told.last().unwrap().title, "measuring");
}
