//! The public suite that every Tenure store must pass, and (feature `broken-stores`) broken stores that must fail it.
//!
//! A lease is only as safe as the conditional write under it. The suite is for every author of a store, and has three
//! levels:
//!
//! * **The contract** of [`tenure_store`], clause by clause: sequential checks, races over several connections, lost
//!   answers, dropped futures, hostile keys, restarts. It does not involve leases.
//! * **Leases** on top of it, taken by the library itself, in the situations for which they exist: many contenders;
//!   holders that are paused, that crash, or whose writes arrive a ttl late. Other programs replace records, delete
//!   them, or restore them from a backup.
//! * **Primitives** that the library builds on both: several leases at once, slots, elections, and plain keys.
//!
//! | clause | what is true of leases on a correct store |
//! | --- | --- |
//! | `connect` | the library's own check at connect accepts the store |
//! | `owner` | of many contenders one owns the lease at a time, each with a greater token |
//! | `renewal` | only the owner renews, and never over a record that another program has written |
//! | `expiry` | a renewal after the ttl revives nothing, whenever it arrives |
//! | `release` | a release ends its own term and no other, whenever it arrives |
//! | `pauses` | a holder that was paused for longer than the ttl has lost the lease, and knows it |
//! | `foreign` | a value that is not a Tenure record is never overwritten |
//! | `tokens` | tokens grow across release and crash; and, where the store has a clock, deletion |
//! | `answers` | lost requests and answers cost time and nothing else |
//! | `recovery` | tokens grow across a restart; and, where the store has a clock, the restore of a backup |
//!
//! | clause | what is true of the primitives on a correct store |
//! | --- | --- |
//! | `set` | several leases are held at once or not at all, and contenders never wait for each other |
//! | `slots` | a group has at most as many holders as slots, and a freed slot is granted again |
//! | `election` | one leader at a time, each with a greater token, and an observer never sees an older one |
//! | `entries` | one participant creates an entry, and only its owner renews and releases it |
//! | `revisions` | a change needs the present revision, so none is lost; revisions grow, across deletion too |
//! | `doubt` | a change whose request or answer is lost happens once |
//!
//! # Check your store
//!
//! Write a [`Harness`], run the [`Suite`], read the [`Report`]:
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
//!     server: Memory, // in production: the address of a server that was started for this test
//! }
//!
//! impl Harness for MyStore {
//!     fn name(&self) -> String {
//!         "my store".into()
//!     }
//!
//!     // Called several times: each call opens a separate connection to the same keys.
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
//! // The number names this run: the suite deletes nothing, so a persistent store needs a new number each time.
//! let suite = Suite::new(1).racers(64).rounds(10).ttl(Duration::from_secs(1));
//! # let suite = suite.only_contract(); // leases on a real clock take their time
//! let report = suite.run(&store).await;
//! println!("{report}");
//! report.assert_passed();
//! # }
//! ```
//!
//! # What it promises, and what it does not
//!
//! * **The suite checks only what the store declares.** Other checks are *skipped* as "not promised"; so is every check
//!   whose hook the harness does not have. A skip is never a pass: read [`Report::skips`].
//! * **Temporary trouble is tolerated.** Throttled calls are tried again later, and an unknown outcome is resolved by
//!   reading back, as Tenure itself does. A store that gives no definite answer for a long time fails.
//! * **A pass is not a proof.** A race that was not lost in a hundred rounds may be lost in the next. Race servers with
//!   several gateways over all of them.
//! * **Time and tasks come from the harness**. Leases use [`Harness::clock`], and time passes in [`Harness::pause`]: on
//!   the machine's clock the lease level takes about ten times [`Suite::ttl`], the primitives about four times, and on
//!   [`TestTime`] next to nothing.
//! * **The suite checks safety.** A holder that loses its lease to a busy machine is tried again; two holders at one
//!   instant, or a token that does not grow, fail at once.
//!
//! # Tests of the suite itself
//!
//! The module `broken`, behind the feature `broken-stores`, has a store for each observed way in which a real system
//! breaks the contract: `Lie` names the system and the clause that must catch it. `tests/broken_stores.rs` shows that
//! each is caught, and that each check of a store's behaviour fails for at least one of them. It writes the table into the
//! file that `TENURE_LIARS_TABLE` names. Some lies keep the contract literally: only leases reveal `Lie::AgesRunFast`, and
//! only primitives reveal `Lie::EvictsIdleEntries` and `Lie::HidesReservedNames`.

#[cfg(feature = "broken-stores")]
pub mod broken;
mod check;
mod check_outcome;
mod contract;
mod finding;
mod harness;
mod lease;
mod machine_clock;
mod primitive;
mod report;
mod step;
mod stop;
mod suite;
mod supported;
mod test_time;
mod trial;
mod world;

pub use check_outcome::CheckOutcome;
pub use finding::Finding;
pub use harness::Harness;
pub use report::Report;
pub use step::Step;
pub use suite::Suite;
pub use supported::Supported;
pub use test_time::TestTime;
