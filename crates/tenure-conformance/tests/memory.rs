//! The memory store keeps the contract, with racers that really run at the same time, and supports leases and primitives.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::store::Memory;
use tenure::store::memory::{PutFault, Snapshot};
use tenure_conformance::{Harness, Report, Step, Suite, Supported, TestTime};
use tenure_store::{BoxFuture, Key, Store, StoreClock};

#[derive(Debug)]
struct InMemory {
    memory: Memory,
    /// `None` on the machine's own clock.
    time: Option<TestTime>,
    backup: Mutex<Option<Snapshot>>,
}

impl InMemory {
    fn on_the_machines_clock() -> Self {
        Self { memory: Memory::new(), time: None, backup: Mutex::default() }
    }

    /// On a clock that moves as fast as all keepers can follow.
    fn on_test_time(store_clock: StoreClock) -> Self {
        let time = TestTime::new();
        let clock = Arc::new(time.clock().clone());
        let memory = Memory::builder().clock(clock).store_clock(store_clock).build();
        Self { memory, time: Some(time), backup: Mutex::default() }
    }
}

impl Harness for InMemory {
    fn name(&self) -> String {
        self.memory.to_string()
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async { Arc::new(self.memory.clone()) as Arc<dyn Store> })
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        match &self.time {
            Some(time) => Box::pin(time.pass(wait)),
            None => BootClock.sleep_until(BootClock.now() + wait),
        }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        match &self.time {
            Some(time) => time.machine(),
            None => Arc::new(BootClock::new()),
        }
    }

    fn race(&self, racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'_, ()> {
        tenure_testkit::race(racers)
    }

    fn restart(&self) -> BoxFuture<'_, Supported> {
        Box::pin(async { Supported::No("memory ends with its process".into()) })
    }

    fn lose_next_answer(&self) -> BoxFuture<'_, Supported> {
        self.memory.faults().next_put(PutFault::LoseAnswer);
        Box::pin(async { Supported::Yes })
    }

    fn lose_next_request(&self) -> BoxFuture<'_, Supported> {
        self.memory.faults().next_put(PutFault::LoseRequest);
        Box::pin(async { Supported::Yes })
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        self.memory.delete(key);
        Box::pin(async { Supported::Yes })
    }

    fn snapshot(&self) -> BoxFuture<'_, Supported> {
        *self.backup.lock().expect("no panic under this lock") = Some(self.memory.snapshot());
        Box::pin(async { Supported::Yes })
    }

    fn restore(&self) -> BoxFuture<'_, Supported> {
        if let Some(backup) = &*self.backup.lock().expect("no panic under this lock") {
            self.memory.restore(backup);
        }
        Box::pin(async { Supported::Yes })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_keeps_the_contract_and_carries_leases_and_primitives() {
    let suite = Suite::new(1).racers(64).rounds(100).ttl(Duration::from_secs(15));
    let report = suite.run(&InMemory::on_test_time(StoreClock::Ages)).await;
    println!("{report}");
    report.assert_passed();
    let skipped: Vec<_> = report.skips().map(|finding| (finding.clause, finding.check)).collect();
    assert_eq!(
        skipped,
        [
            ("keeps", "acknowledged writes survive a restart, each with its version"),
            ("recovery", "tokens grow across a restart of the store, and an owner stays the only one")
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_carries_leases_on_the_machines_own_clock() {
    let suite = Suite::new(1).ttl(Duration::from_secs(1)).contenders(4).turns(2);
    let (report, told) = run_and_listen(&suite.only_leases(), &InMemory::on_the_machines_clock()).await;
    println!("{report}");
    report.assert_passed();
    let mut clauses: Vec<_> = report.findings.iter().map(|finding| finding.clause).collect();
    clauses.dedup();
    let in_order = Suite::clauses().windows(clauses.len()).any(|window| window == clauses);
    assert!(in_order, "the report is in the order of the checks: {report}");
    let acts_on_the_whole_store = |clause| ["answers", "recovery"].contains(&clause);
    let alone = report.findings.iter().filter(|finding| acts_on_the_whole_store(finding.clause)).count();
    let (beside, alone) = told.split_at(told.len() - 2 * alone);
    let begun_together = |steps: &[String]| steps.iter().all(|step| step.starts_with("begun "));
    assert!(beside.windows(2).any(begun_together), "they run at the same time: {beside:#?}");
    one_after_another(alone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_carries_the_primitives_on_the_machines_own_clock() {
    let suite = Suite::new(1).ttl(Duration::from_secs(1)).only_primitives();
    let report = suite.run(&InMemory::on_the_machines_clock()).await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.skips().count(), 0, "{report}");
}

/// Runs the suite and collects every step that it reports.
async fn run_and_listen(suite: &Suite, harness: &InMemory) -> (Report, Vec<String>) {
    let told = Mutex::new(Vec::new());
    let listen = |step: Step<'_>| {
        told.lock().unwrap().push(match step {
            Step::Begun { check, .. } => format!("begun {check}"),
            Step::Ended(finding) => format!("ended {}", finding.check),
            other => panic!("{other:?}"),
        });
        ControlFlow::Continue(())
    };
    let report = suite.run_telling(harness, &listen).await;
    (report, told.into_inner().unwrap())
}

#[track_caller]
fn one_after_another(told: &[String]) {
    for check in told.chunks(2) {
        assert_eq!(check[0].strip_prefix("begun "), check[1].strip_prefix("ended "), "{told:#?}");
    }
}

/// Tokens then grow by one, and only as long as the record exists.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_without_a_clock_keeps_the_rest() {
    let report = Suite::new(1).rounds(5).run(&InMemory::on_test_time(StoreClock::Nothing)).await;
    report.assert_passed();
    let clocks = report.skips().filter(|finding| ["clock", "ages"].contains(&finding.clause));
    assert_eq!(clocks.count(), 5, "{report}");
    let of_tokens = report.skips().filter(|finding| ["tokens", "recovery"].contains(&finding.clause));
    assert_eq!(
        of_tokens.map(|finding| finding.check).collect::<Vec<_>>(),
        [
            "tokens grow across the deletion of the record",
            "tokens grow though the record was forgotten",
            "tokens grow across the restore of a backup",
            "tokens grow across a restart of the store, and an owner stays the only one"
        ]
    );
}

/// The clock of most servers: usable for tokens, not for ages. Contenders wait for the ttl that they have observed
/// themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_with_a_clock_for_floors_alone_carries_leases_and_primitives() {
    let suite = Suite::new(1).only_leases().only_primitives();
    let (report, told) = run_and_listen(&suite, &InMemory::on_test_time(StoreClock::Floors)).await;
    report.assert_passed();
    one_after_another(&told);
}
