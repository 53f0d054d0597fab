//! This machine, as opposed to the protocol: files, locks, processes, random numbers and threads.

pub(crate) mod checksum;
pub(crate) mod disk;
pub(crate) mod entropy;
pub(crate) mod file_rights;
pub(crate) mod fork;
pub(crate) mod inotify;
pub(crate) mod logbook;
pub(crate) mod pause;
mod process_holder;
pub(crate) mod simulation;
mod this_process;
pub(crate) mod verdicts;
pub(crate) mod witness;
pub(crate) mod workers;

pub use logbook::Logbook;
pub use process_holder::process_holder;
pub use this_process::this_process;
pub use verdicts::Verdicts;
pub use witness::{Survivor, Survivors, WitnessPart};
