//! Observation of leases without contending: one key, all keys, and every change.

mod listing;
mod observation;
mod observers;
mod reported_causes;
mod watch;

pub(crate) use listing::{keys, slot_keys};
pub use observation::{Observation, Observations};
pub(crate) use observers::Observers;
pub(crate) use reported_causes::ReportedCauses;
pub use watch::{Change, ChangeKind, Watch, WatchEvent};
pub(crate) use watch::{ChangeHints, HolderExits, observe_surely};
