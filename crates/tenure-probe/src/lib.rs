//! Qualifies a store for Tenure: does it keep the contract under races, how fast is it, and which ttl fits it?
//!
//! A lease is worth as much as the conditional write under it, and several servers keep their conditions only as long as
//! nobody races. The check at connect is short, and finds those that always lie. A [`Probe`] takes its time: it makes
//! every check of the contract in [`tenure_conformance`], in a corner of the store that nobody else uses and that
//! listings hide, then it measures, and in the end it says *fit*, *fit with limits* or *refused*, with its reasons.
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
//! let server = Memory::new(); // in real life: something that is reached over a network
//! let plan = Plan::default().racers(32)?.rounds(2)?.samples(20)?;
//! // Each opening is a connection of its own. The number names this run: draw it.
//! let probe = Probe::open(plan, 0x5eed, || Ok::<_, tenure::Error>(Arc::new(server.clone()) as Arc<dyn Store>))?;
//!
//! let qualified = probe.run(&|progress| eprintln!("{} of {}", progress.done, progress.of)).await;
//! // Always, also if it failed or was broken off.
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
//! # What makes it say no
//!
//! [`Clause::ALL`] is the table: which clause of the contract leases rest on, so that a store which breaks it is refused, and
//! which they do not need, so that it is a limit for whoever uses the store.
//!
//! # What it does not find
//!
//! **A pass is not a proof.** A race that was not lost in ten rounds may be lost in the next; servers with several gateways
//! should be probed through each. It cannot restart the server or pull its plug, and it looks for as long as it runs.

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
