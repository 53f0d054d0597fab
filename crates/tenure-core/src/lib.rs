//! The protocol of Tenure, without I/O, clock or randomness.
//!
//! * [`machine`]: one lease as a state machine: inputs in, effects out. `machine/rules.rs` has its decisions.
//! * [`set`]: several leases at once, all or nothing, on top of it.
//! * [`election`]: what leader election adds to a lease. `election/rules.rs` has its decisions.
//! * [`keys`]: one operation on a plain key as a state machine of the same kind. `keys/key_rules.rs` has its decisions.
//! * [`record`]: the stored format.
//! * [`slots`]: a contender for one slot of a group.
//! * [`check`]: the guarantees that a store must declare, and the safety check before Tenure grants a lease on it.
//! * [`Timing`] and [`Drift`]: durations that are safe together.
//! * [`Belief`] and [`Works`]: the atomic words that a holder and its keeper share.
//!
//! Programs use the crate `tenure`, which drives this code on a store and a clock, and re-exports the types that its
//! users see. The simulation drives the same code in a simulated world.
//!
//! # Exhaustive types
//!
//! The types between a machine and its driver (inputs, effects, events, outcomes, parameters, sightings) are
//! exhaustive. The keeper of `tenure` and the simulation each handle every case, and the compiler verifies it. A new
//! case is a new major version of this crate. The types that users of `tenure` see (records, standings, losses,
//! denials, purposes) are non-exhaustive and have constructors.

mod atomic;
mod belief;
pub mod check;
mod drift;
pub mod election;
mod error;
mod holder;
mod instant;
pub mod keys;
pub mod machine;
mod process_info;
pub mod record;
pub mod set;
pub mod slots;
mod text;
mod timing;
mod wall_time;
mod works;

pub use belief::Belief;
pub use drift::Drift;
pub use error::{Error, ErrorKind};
pub use holder::{Holder, HolderError};
pub use instant::Instant;
pub use process_info::ProcessInfo;
#[doc(inline)]
pub use tenure_store::{Token, TokenError};
pub use timing::{Timing, TimingBuilder};
pub use wall_time::WallTime;
pub use works::Works;
