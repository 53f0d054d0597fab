//! What this machine saw, and when.
//!
//! On a store that cannot tell how old a version is, a holder that died is found out by seeing the same version for its
//! ttl. A command that does not wait is a new observer each time, and would never have seen anything for long enough. So
//! what was seen is kept on the disk, for whoever looks next.
//!
//! An entry can only say that a version was seen *earlier*. It counts for that version and that nonce alone, on the very
//! clock it was seen by: one file for each boot and time namespace. What was damaged, or could be somebody else's, is not
//! believed; then, as without a logbook, the waiting begins anew. So nothing here needs to be on the disk for sure: after a
//! power cut the boot is another one, and what was written before it means nothing.

mod entry;
mod page;

use std::path::{Path, PathBuf};

pub(crate) use entry::LogbookEntry;
pub(crate) use page::LogbookPage;

use crate::clock::{Clock, Domain};
use crate::host::disk::per_boot_files::PerBootFiles;

/// What this machine saw, and when: so that a program which looks for a moment and ends counts for the next one.
///
/// It lies in a folder of the user's own, on a local file system. Nothing is made before there is something to remember,
/// and whoever deletes the folder loses nothing but time. Give it to [`CoordinatorBuilder::logbook`](crate::CoordinatorBuilder::logbook).
///
/// ```no_run
/// # async fn example(store: impl tenure_store::Store) -> Result<(), tenure::Error> {
/// use tenure::{Coordinator, Logbook};
///
/// let logbook = Logbook::in_folder("/home/me/.local/state/tenure-logbook");
/// let coordinator = Coordinator::builder().logbook(logbook).connect(store).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Logbook {
    folder: PathBuf,
}

impl Logbook {
    /// The logbook in this folder, which must not be used for anything else.
    pub fn in_folder(path: impl Into<PathBuf>) -> Self {
        Self { folder: path.into() }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was seen by others on the same clock; nothing if there is none yet, or none that can be believed. The error is
    /// a sentence that says why it cannot be used at all.
    pub(crate) fn read(&self, domain: &Domain, clock: &dyn Clock) -> Result<LogbookPage, String> {
        let files = PerBootFiles::open_if_there(&self.folder).map_err(|why| self.problem(&why))?;
        Ok(files.map(|files| files.read(domain, clock)).unwrap_or_default())
    }

    /// Adds what was seen to what others have written meanwhile.
    pub(crate) fn write(
        &self,
        domain: &Domain,
        clock: &dyn Clock,
        entries: Vec<LogbookEntry>,
    ) -> Result<(), String> {
        let files = PerBootFiles::<LogbookPage>::open_or_make(&self.folder);
        let added = files.and_then(|files| files.add(domain, clock, entries));
        added.map(drop).map_err(|why| self.problem(&why))
    }

    fn problem(&self, why: &str) -> String {
        format!("what is seen here is not remembered in {}: {why}", self.folder.display())
    }
}
