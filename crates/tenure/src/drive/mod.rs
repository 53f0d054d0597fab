//! Turns the machine's effects into calls on a store and a clock.
//!
//! The [`Coordinator`] is what users connect. Its **keeper** is a thread of its own with a small runtime of its own;
//! the store is connected and called there, so that a user's starved, blocked or dropped executor does not cost the
//! lease. One keeper serves all leases of a coordinator from one timer queue. If it dies, every lease is lost at once.

mod breach;
mod calls;
mod caught;
mod command;
mod coordinator;
mod entropy;
mod flights;
mod forget;
mod forgotten;
mod guarded;
mod handles;
mod hints;
mod keeper;
mod kept;
mod limits;
mod local;
mod notes;
mod observation;
mod observers;
mod recorder;
mod reporter;
mod timers;
mod trust;
mod watching;
mod within;
mod witnesses;

pub(crate) use command::{Command, KeeperHandle, LeaseId};
pub use coordinator::{Builder, Coordinator};
pub(crate) use entropy::secret;
pub use forgotten::{Forgotten, WhyKept};
pub use observation::{Observation, Observations};
pub use recorder::{AttemptOutcome, AttemptReport, EventReport, Operation, Recorder};
pub use watching::{Change, ChangeKind, Watch, WatchEvent};
