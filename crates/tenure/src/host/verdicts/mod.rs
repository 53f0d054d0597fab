//! Verdicts: which stores passed the safety check, and when.
//!
//! The check at connect costs five requests, too many for a command that runs for a second. So a positive verdict is
//! stored on disk for a day, for the next process that connects. A negative one is not stored: such a store is checked
//! each time.
//!
//! A stored verdict can only save a check. It applies to the exact place that the store names, on the same clock
//! domain, and not after a breach. A file that is damaged, or that another user could have written, is ignored, and the
//! store is checked. So the file needs no sync.

mod page;

use std::path::PathBuf;

use crate::clock::{BootClock, Clock, Domain, Instant};
use crate::host::disk::per_boot_files::PerBootFiles;
use crate::{Error, ErrorKind};
use page::{Verdict, VerdictPage};

/// Verdicts on networked stores that passed the safety check, so that the next connect need not repeat it.
///
/// They are stored in a private directory of the user, on a local file system, and are valid for a day of one boot. The
/// directory is created with the first verdict; deleting it costs five requests. Pass it to
/// [`CoordinatorBuilder::verdicts`](crate::CoordinatorBuilder::verdicts).
///
/// ```no_run
/// # async fn example(store: impl tenure_store::Store) -> Result<(), tenure::Error> {
/// use tenure::{Coordinator, Verdicts};
///
/// let verdicts = Verdicts::in_directory("/home/me/.local/state/tenure-verdicts");
/// let coordinator = Coordinator::builder().verdicts(verdicts).connect(store).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Verdicts {
    directory: PathBuf,
}

impl Verdicts {
    /// Verdicts in this directory, which must have no other use.
    pub fn in_directory(path: impl Into<PathBuf>) -> Self {
        Self { directory: path.into() }
    }

    /// Voids the verdict on the store at this [place](tenure_store::Identity::place): the next connect checks it. Waits
    /// for the disk.
    ///
    /// After an error, other processes may rely on the verdict until it is a day old.
    pub fn forget(&self, place: &str) -> Result<(), Error> {
        let clock = BootClock::new();
        self.write_broken(place, clock.domain().as_ref(), &clock)
            .map_err(|why| Error::new(ErrorKind::Unavailable, why))
    }

    /// True if the store at this place passed the check in the last day. False in every doubtful case.
    pub(crate) fn is_sound(&self, place: &str, domain: &Domain, clock: &dyn Clock) -> bool {
        let files = PerBootFiles::<VerdictPage>::open_if_there(&self.directory).ok().flatten();
        files.is_some_and(|files| files.read(domain, clock).is_sound(place, clock.now()))
    }

    /// Stores that the store at this place passed a check that began at `began`.
    pub(crate) fn write_sound(&self, place: &str, began: Instant, domain: &Domain, clock: &dyn Clock) {
        if let Ok(files) = PerBootFiles::<VerdictPage>::open_or_make(&self.directory) {
            // A verdict that is not stored costs a check.
            let _ = files.add(domain, clock, vec![Verdict::sound(place, began)]);
        }
    }

    /// Voids the verdict on the store at this place after a breach. A check in progress counts no more, either.
    pub(crate) fn write_broken(
        &self,
        place: &str,
        domain: Option<&Domain>,
        clock: &dyn Clock,
    ) -> Result<(), String> {
        let kept = |why: String| {
            format!(
                "the verdict on {place} could not be removed from {}: {why}. Remove that directory",
                self.directory.display()
            )
        };
        let Some(files) = PerBootFiles::<VerdictPage>::open_if_there(&self.directory).map_err(kept)? else {
            return Ok(());
        };
        let forgotten = domain.map_or(Ok(()), |domain| {
            match files.add(domain, clock, vec![Verdict::broken(place, clock.now())]) {
                Ok(true) => Ok(()),
                // A full disk, or a process that does not release the lock. Removing the file needs neither.
                Ok(false) | Err(_) => files.remove(domain),
            }
        });
        // Files of other clock domains are removed entirely.
        forgotten.and(files.remove_others(domain)).map_err(kept)
    }
}

#[cfg(test)]
mod tests;
