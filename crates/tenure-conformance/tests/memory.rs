//! The store in memory keeps the contract, with racers that really run at the same time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::store::Memory;
use tenure::store::memory::{PutFault, Snapshot};
use tenure_conformance::{Harness, Suite, Supported};
use tenure_store::{BoxFuture, Key, Store, StoreClock};

#[derive(Debug)]
struct InMemory {
    memory: Memory,
    backup: Mutex<Option<Snapshot>>,
}

impl InMemory {
    fn of(memory: Memory) -> Self {
        Self { memory, backup: Mutex::default() }
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
        BootClock.sleep_until(BootClock.now() + wait)
    }

    #[expect(clippy::disallowed_methods, reason = "racers in one task would take turns and never meet")]
    fn race(&self, racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'_, ()> {
        let racers: Vec<_> = racers.into_iter().map(tokio::spawn).collect();
        Box::pin(async {
            for racer in racers {
                racer.await.expect("a racer does not panic");
            }
        })
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
        *self.backup.lock().expect("nobody panics here") = Some(self.memory.snapshot());
        Box::pin(async { Supported::Yes })
    }

    fn restore(&self) -> BoxFuture<'_, Supported> {
        if let Some(backup) = &*self.backup.lock().expect("nobody panics here") {
            self.memory.restore(backup);
        }
        Box::pin(async { Supported::Yes })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_keeps_the_contract() {
    let report = Suite::new(1).racers(64).rounds(100).run(&InMemory::of(Memory::new())).await;
    println!("{report}");
    report.assert_passed();
    let skipped: Vec<_> = report.skips().map(|finding| (finding.clause, finding.check)).collect();
    assert_eq!(skipped, [("keeps", "acknowledged writes survive a restart, each with its version")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_without_a_clock_keeps_the_rest() {
    let memory = Memory::builder().store_clock(StoreClock::Nothing).build();
    let report = Suite::new(1).rounds(5).run(&InMemory::of(memory)).await;
    report.assert_passed();
    assert!(report.skips().filter(|finding| finding.clause == "clock").count() == 4, "{report}");
}
