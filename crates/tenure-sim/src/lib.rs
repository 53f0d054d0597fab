//! The simulated world that attacks Tenure's lease protocol.
//!
//! The *production* machine, not a copy, runs here in one thread under virtual time. Each contender has its own clock,
//! and is paused, killed and restarted. Requests and answers are lost, delayed, duplicated, or retried by the network
//! itself. There are witnesses, and files that only look like a witness. Records are deleted, restored or replaced, and
//! some stores lie. An oracle judges in true time, which the code under test cannot see. A seed determines the complete
//! history: the same seed gives the same trace.
//!
//! A second world has many keys in one store, and runs elections, groups of slots, plain keys and sets of leases:
//! [`Focus::Primitives`]. It shares the clocks, the network, the store and the faults of the first.
//!
//! The oracle is tested, too: every [`Mutant`] replaces one rule of the protocol, or breaks one thing in the world, and
//! names the invariant that must catch it.
//!
//! ```
//! use tenure_sim::Seed;
//!
//! let outcome = Seed::new(1).minutes(5).run();
//! assert_eq!(outcome.violation, None);
//! ```

mod driver;
mod failover;
mod fleet;
mod focus;
mod invariant;
mod liars;
mod mutants;
mod oracle;
mod parts;
mod primitives;
mod report;
mod rng;
mod seed;
mod swarm;
mod tally;
mod time;
mod trace;
mod violation;
mod world;

pub use driver::{
    DRIVER_HUNTED, DRIVER_MUTANTS, DriverChange, DriverFocus, DriverHunt, DriverMutant, DriverOutcome,
    DriverRun, DriverSeed, Drops, OUTAGES, OutageManner, OutageReport, OutageScenario, PublicFuture, Reached,
    driver_failure, driver_hunted, driver_table, outage_row,
};
pub use failover::{Crowd, Goals, Reads, Situation, Takeovers, crowd, failover};
pub use fleet::{Fleet, Hunt, Run};
pub use focus::Focus;
pub use invariant::Invariant;
pub use mutants::{Change, MUTANTS, Mutant};
pub use report::{HUNTED, failure, hunted, table};
pub use seed::{Outcome, Seed};
pub use tally::{Fault, Met, Number, Sometimes, Tally};
pub use violation::Violation;
