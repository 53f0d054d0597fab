//! The complete store in the documentation of the library keeps the contract and supports leases.

use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure_conformance::{Harness, Suite};
use tenure_store::{BoxFuture, Store};

#[path = "../../tenure/src/docs/shelf.rs"]
mod shelf;

use shelf::Shelf;

#[derive(Debug, Default)]
struct OneShelf(Arc<Shelf>);

impl Harness for OneShelf {
    fn name(&self) -> String {
        self.0.to_string()
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async { Arc::clone(&self.0) as Arc<dyn Store> })
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        BootClock.sleep_until(BootClock.now() + wait)
    }

    fn race(&self, racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'_, ()> {
        tenure_testkit::race(racers)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_of_the_documentation_keeps_the_contract_and_carries_leases() {
    let suite = Suite::new(1).racers(16).rounds(20).ttl(Duration::from_secs(3)).contenders(4).turns(2);
    let report = suite.run(&OneShelf::default()).await;
    println!("{report}");
    report.assert_passed();
}

#[test]
fn the_store_of_the_documentation_is_short() {
    let lines = include_str!("../../tenure/src/docs/shelf.rs").lines().count();
    assert!(lines < 100, "{lines} lines");
}
