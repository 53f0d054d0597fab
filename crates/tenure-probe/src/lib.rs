//! Qualifies a store for Tenure: does it keep the contract under races, how fast is it, and which ttl fits it?
//!
//! A lease is only as safe as the conditional write under it, and several servers keep their conditions only without
//! concurrent writers. The check at connect is short, and finds only servers that always break them. A [`Probe`] takes
//! longer. It runs every check of the contract in [`tenure_conformance`], in a private scratch area that listings hide.
//! Then it measures the store, and reports *fit*, *fit with limits* or *refused*, with its reasons.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use tenure::store::Memory;
//! use tenure_probe::{Fitness, Plan, Probe};
//! use tenure_store::Store;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Memory::new(); // in production: a networked store
//! let plan = Plan::default().racers(32)?.rounds(2)?.samples(20)?;
//! // Each open creates a separate connection. The number names this run: draw it at random.
//! let probe = Probe::open(plan, 0x5eed, || Ok::<_, tenure::Error>(Arc::new(server.clone()) as Arc<dyn Store>))?;
//!
//! let qualified = probe.run(&|progress| eprintln!("{} of {}", progress.done, progress.of)).await;
//! // Always, also after a failure or an interruption.
//! let cleaned = probe.clean_up(Duration::from_secs(30)).await;
//!
//! let qualification = qualified?;
//! assert_eq!(qualification.fitness, Fitness::Fit);
//! println!("use a ttl of {:?} or longer", qualification.advice.unwrap().timing.ttl());
//! assert_eq!(cleaned.left, 0);
//! # Ok(())
//! # }
//! ```
//!
//! # Reasons for a refusal
//!
//! [`Clause::ALL`] is the table. It says which clauses leases depend on: a store that breaks one of them is refused. A
//! store that breaks one of the others is usable, within limits.
//!
//! # What it does not find
//!
//! **A pass is not a proof.** A race that was not lost in ten rounds may be lost in the next. Probe servers with
//! several gateways through each of them. The probe cannot restart the server or cut its power, and it observes the
//! store only while it runs.

mod cleaning;
mod error;
mod harness;
mod judge;
mod ledger;
mod measure;
mod plan;
mod probe;
mod progress;
mod qualification;
mod quoting;
mod scratch_area;
mod ttl;
mod words;

pub use cleaning::CleanUp;
pub use error::ProbeError;
pub use judge::{Clause, Judged, Weight};
pub use ledger::Calls;
pub use measure::{ClockSeen, Latency, Measured, WriteRate};
pub use plan::{Plan, PlanError};
pub use probe::Probe;
pub use progress::Progress;
pub use qualification::{Fitness, Qualification};
pub use quoting::{Quoting, Taken};
pub use tenure_conformance::CheckOutcome;
pub use ttl::Advice;
