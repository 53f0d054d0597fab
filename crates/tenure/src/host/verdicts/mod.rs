//! Which stores were found sound, and when.
//!
//! The check at connect costs five requests, and a command that runs for a second would make them each time. So a good
//! verdict is kept on the disk for a day, for whoever connects next. A bad one is not: such a store is checked each time.
//!
//! What is kept can only save a check. It counts for the very place that the store names, on the very clock that it was
//! made by, and not after a promise was seen broken there. What was damaged, or could be somebody else's, is not
//! believed: then the store is checked, as it is without this. So nothing here needs to be on the disk for sure.

mod page;

use std::path::{Path, PathBuf};

use crate::clock::{BootClock, Clock, Domain, Instant};
use crate::host::disk::per_boot_files::PerBootFiles;
use crate::{Error, ErrorKind};
use page::{Verdict, VerdictPage};

/// Which stores of the network were found sound of late, so that a program which connects again need not check again.
///
/// They lie in a folder of the user's own, on a local file system, and are good for a day of one boot. Nothing is made
/// before there is one to keep, and whoever deletes the folder loses nothing but five requests. Give it to
/// [`CoordinatorBuilder::verdicts`](crate::CoordinatorBuilder::verdicts).
///
/// ```no_run
/// # async fn example(store: impl tenure_store::Store) -> Result<(), tenure::Error> {
/// use tenure::{Coordinator, Verdicts};
///
/// let verdicts = Verdicts::in_folder("/home/me/.local/state/tenure-verdicts");
/// let coordinator = Coordinator::builder().verdicts(verdicts).connect(store).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Verdicts {
    folder: PathBuf,
}

impl Verdicts {
    /// The verdicts in this folder, which must not be used for anything else.
    pub fn in_folder(path: impl Into<PathBuf>) -> Self {
        Self { folder: path.into() }
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Forgets that the store at this [place](tenure_store::Identity::place) was found sound, whoever found it so: it is
    /// checked when it is connected next. It waits for the disk.
    ///
    /// The error says why that was not possible: then others may go by the verdict until it is a day old.
    pub fn forget(&self, place: &str) -> Result<(), Error> {
        let clock = BootClock::new();
        self.write_broken(place, clock.domain().as_ref(), &clock)
            .map_err(|why| Error::new(ErrorKind::Unavailable, why))
    }

    /// Whether the store at this place was found sound of late. Every doubt means that it was not.
    pub(crate) fn is_sound(&self, place: &str, domain: &Domain, clock: &dyn Clock) -> bool {
        let files = PerBootFiles::<VerdictPage>::open_if_there(&self.folder).ok().flatten();
        files.is_some_and(|files| files.read(domain, clock).is_sound(place, clock.now()))
    }

    /// The store at this place was found sound, by a check that began then.
    pub(crate) fn write_sound(&self, place: &str, began: Instant, domain: &Domain, clock: &dyn Clock) {
        if let Ok(files) = PerBootFiles::<VerdictPage>::open_or_make(&self.folder) {
            // What is not kept costs a check.
            let _ = files.add(domain, clock, vec![Verdict::sound(place, began)]);
        }
    }

    /// The store at this place was seen to break a promise. A check that is under way counts no more, either.
    pub(crate) fn write_broken(
        &self,
        place: &str,
        domain: Option<&Domain>,
        clock: &dyn Clock,
    ) -> Result<(), String> {
        let kept = |why: String| {
            format!(
                "that {place} was found sound is not forgotten in {}: {why}. Remove that folder",
                self.folder.display()
            )
        };
        let Some(files) = PerBootFiles::<VerdictPage>::open_if_there(&self.folder).map_err(kept)? else {
            return Ok(());
        };
        let forgotten = domain.map_or(Ok(()), |domain| {
            match files.add(domain, clock, vec![Verdict::broken(place, clock.now())]) {
                Ok(true) => Ok(()),
                // A full disk, or somebody who does not let go of the lock. Taking the file away needs neither.
                Ok(false) | Err(_) => files.remove(domain),
            }
        });
        // What others have, on clocks that mean nothing here, goes whole.
        forgotten.and(files.remove_others(domain)).map_err(kept)
    }
}

#[cfg(test)]
mod tests;
