//! What the crate `tenure-sim` uses to run the driver on a simulated host. Not part of the public interface.

mod belief_probe;

pub use crate::host::disk::page_files::PageFiles;
pub use crate::host::simulation::{Duty, SimulatedHost, install};
pub use crate::host::witness::files::WitnessFiles;
pub use crate::host::witness::locked_file::LockedFile;
pub use belief_probe::BeliefProbe;

/// A copy of this handle with another secret. A program that can only read the record could make it.
pub fn forged(handle: &crate::Handle) -> crate::Handle {
    handle.with_other_secret()
}
