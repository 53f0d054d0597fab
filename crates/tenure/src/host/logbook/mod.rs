//! Sightings of this machine, for later processes.
//!
//! On a store that does not report the age of a version, a dead holder is detected by observing the same version for
//! its ttl. A command that does not wait is a new observer each time, and never observes for long enough. So its
//! sightings are stored on disk for the next process.
//!
//! An entry can only prove that a version was seen *earlier*. It counts for that version and nonce alone, on the same
//! clock: there is one file for each boot and time namespace. A file that is damaged, or that another user could have
//! written, is ignored; the wait then starts anew, as without a logbook. So the file needs no sync: after a power cut
//! the boot is another one.

mod entry;
mod page;

use std::path::{Path, PathBuf};

pub(crate) use entry::LogbookEntry;
pub(crate) use page::LogbookPage;

use crate::clock::{Clock, Domain};
use crate::host::disk::per_boot_files::PerBootFiles;

/// Sightings of this machine, so that those of a short-lived program count for the next one.
///
/// They are stored in a private directory of the user, on a local file system. The directory is created with the first
/// sighting; deleting it costs only time. Pass it to
/// [`CoordinatorBuilder::logbook`](crate::CoordinatorBuilder::logbook).
///
/// ```no_run
/// # async fn example(store: impl tenure_store::Store) -> Result<(), tenure::Error> {
/// use tenure::{Coordinator, Logbook};
///
/// let logbook = Logbook::in_directory("/home/me/.local/state/tenure-logbook");
/// let coordinator = Coordinator::builder().logbook(logbook).connect(store).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Logbook {
    directory: PathBuf,
}

impl Logbook {
    /// The logbook in this directory, which must have no other use.
    pub fn in_directory(path: impl Into<PathBuf>) -> Self {
        Self { directory: path.into() }
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sightings of other processes on the same clock; empty if there are none, or none that can be trusted. The error
    /// is a sentence about why the logbook cannot be used.
    pub(crate) fn read(&self, domain: &Domain, clock: &dyn Clock) -> Result<LogbookPage, String> {
        let files = PerBootFiles::open_if_there(&self.directory).map_err(|why| self.problem(&why))?;
        Ok(files.map(|files| files.read(domain, clock)).unwrap_or_default())
    }

    /// Adds sightings to those that other processes have written.
    pub(crate) fn write(
        &self,
        domain: &Domain,
        clock: &dyn Clock,
        entries: Vec<LogbookEntry>,
    ) -> Result<(), String> {
        let files = PerBootFiles::<LogbookPage>::open_or_make(&self.directory);
        let added = files.and_then(|files| files.add(domain, clock, entries));
        added.map(drop).map_err(|why| self.problem(&why))
    }

    fn problem(&self, why: &str) -> String {
        format!("sightings are not stored in {}: {why}", self.directory.display())
    }
}
