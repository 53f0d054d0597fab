//! The public suite that every Tenure store must pass, and [broken stores](broken) that must fail it.
//!
//! A lease is worth as much as the conditional write under it. This suite takes the contract of
//! [`tenure_store`] clause by clause and holds a store to it: sequential checks, races of many over several
//! connections, lost answers, dropped futures, hostile keys, restarts. It is meant for everybody who writes a store, and
//! it knows nothing of leases.
//!
//! # Check your store
//!
//! Write a [`Harness`], run the [`Suite`], look at the [`Report`]:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use tenure::clock::{BootClock, Clock};
//! use tenure::store::Memory;
//! use tenure::store::memory::PutFault;
//! use tenure_conformance::{Harness, Suite, Supported};
//! use tenure_store::{BoxFuture, Store};
//!
//! struct MyStore {
//!     server: Memory, // in real life: the address of a server that was started for this test
//! }
//!
//! impl Harness for MyStore {
//!     fn name(&self) -> String {
//!         "my store".into()
//!     }
//!
//!     // Called several times: each is a connection of its own to the same keys.
//!     fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
//!         Box::pin(async { Arc::new(self.server.clone()) as Arc<dyn Store> })
//!     }
//!
//!     fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
//!         BootClock.sleep_until(BootClock.now() + wait)
//!     }
//!
//!     // Without this, racers take turns in one task.
//!     fn race(&self, racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'_, ()> {
//!         Box::pin(async {
//!             let racers: Vec<_> = racers.into_iter().map(tokio::spawn).collect();
//!             for racer in racers {
//!                 racer.await.unwrap();
//!             }
//!         })
//!     }
//!
//!     // One of the hooks: without it the checks of lost answers are skipped, and the report says so.
//!     fn lose_next_answer(&self) -> BoxFuture<'_, Supported> {
//!         self.server.faults().next_put(PutFault::LoseAnswer);
//!         Box::pin(async { Supported::Yes })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
//! # async fn main() {
//! let store = MyStore { server: Memory::new() };
//! // The number names this run: the suite deletes nothing, so a store that stays needs a new one each time.
//! let report = Suite::new(1).racers(64).rounds(10).run(&store).await;
//! println!("{report}");
//! report.assert_passed();
//! # }
//! ```
//!
//! # What it promises, and what it does not
//!
//! * **Only what the store declares is checked.** The rest is *skipped* as "not promised"; so is every check whose hook
//!   the harness does not have. A skip is never a pass: read [`Report::skips`].
//! * **A bad day is borne.** Throttled calls are tried again later, and an unknown outcome is resolved by reading back,
//!   as Tenure itself does it. A store that gives no definite answer for long fails.
//! * **A pass is not a proof.** A race that was not lost in a hundred rounds may be lost in the next. Servers with
//!   several gateways should be raced over all of them.
//! * **Time, tasks and randomness come from the harness**, so the suite also runs in a simulation.
//!
//! # Is the suite itself any good?
//!
//! [`broken`] has a store for each way in which real systems were seen to break the contract: [`Lie`](broken::Lie) names
//! the system and the clause that must catch it. `tests/broken_stores.rs` shows that each is caught, and that each check
//! of a store's acts is failed by at least one of them.

pub mod broken;
mod check;
mod contract;
mod finding;
mod harness;
mod report;
mod stop;
mod suite;
mod supported;
mod trial;
mod verdict;

pub use finding::Finding;
pub use harness::Harness;
pub use report::Report;
pub use suite::Suite;
pub use supported::Supported;
pub use verdict::Verdict;
