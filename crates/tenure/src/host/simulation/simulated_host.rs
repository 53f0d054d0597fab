use std::path::Path;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;

use tenure_core::machine::Rules;

use super::Duty;
use crate::host::disk::page_files::PageFiles;
use crate::host::witness::files::WitnessFiles;

/// The part of a machine that the driver uses beside its store and its clock.
pub trait SimulatedHost {
    /// Fills the bytes with random numbers.
    fn fill(&self, bytes: &mut [u8]);

    /// Runs a keeper on its own thread.
    fn start_keeper(&self, keeper: LocalBoxFuture<'static, ()>);

    /// Runs a job on a thread that waits for the disk; `false` if no thread can be started.
    fn run_job(&self, job: Box<dyn FnOnce() + Send>) -> bool;

    /// Directory of witnesses of the current process; `None` if there is none.
    fn witnesses(&self) -> Option<Arc<dyn WitnessFiles>>;

    /// The pages in this directory of the machine of the current process.
    fn pages(&self, directory: &Path) -> Box<dyn PageFiles>;

    /// Rules of the protocol.
    fn rules(&self) -> &'static dyn Rules;

    /// Number of keys that a keeper remembers.
    fn keys_max(&self) -> usize;

    /// The kernel may preempt the current thread here.
    fn preempt(&self);

    /// True if the driver under test neglects this duty.
    fn neglects(&self, duty: Duty) -> bool;
}
