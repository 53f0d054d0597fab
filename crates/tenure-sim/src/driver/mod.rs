//! The world of the driver.
//!
//! The production keeper, coordinator, leases, handles, observers, elections, slots, sets and plain keys run here on one
//! thread, under virtual time, on simulated machines and against a simulated store. The first world runs the protocol and re-implements everything
//! around it; this one runs everything around it as users do. Threads become tasks: one of those that are ready runs at a
//! time, the seed chooses which, and a task can be preempted in the middle of its code while all others go on.
//!
//! The oracle sees every belief, every write that the store applies, and every lock, in true time.

mod bounded;
mod clock;
mod drops;
mod executor;
mod faults;
mod fleet;
mod focus;
mod host;
mod kernel;
mod machine;
mod mutants;
mod oracle;
mod outage;
mod pages;
mod panics;
mod plan;
mod process;
mod public_future;
mod reached;
mod report;
mod seed;
mod server;
mod store;
mod users;
mod world;

pub use drops::Drops;
pub use fleet::{DriverHunt, DriverRun};
pub use focus::DriverFocus;
pub use mutants::{DRIVER_MUTANTS, DriverChange, DriverMutant};
pub use outage::{OutageManner, OutageReport, OutageScenario};
pub use public_future::PublicFuture;
pub use reached::Reached;
pub use report::{DRIVER_HUNTED, OUTAGES, driver_failure, driver_hunted, driver_table, outage_row};
pub use seed::{DriverOutcome, DriverSeed};
