use std::marker::PhantomData;
use std::path::Path;

use super::page::Page;
use super::page_directory::PageDirectory;
use super::page_files::PageFiles;
use crate::clock::{Clock, Domain};
use crate::host::checksum::checksum;
use crate::host::simulation::simulated;

/// A private directory with small files that all programs of the user read and write: one page for each clock domain,
/// because its entries count on that clock alone. Every error is a sentence.
#[derive(Debug)]
pub(crate) struct PerBootFiles<P> {
    files: Box<dyn PageFiles>,
    page: PhantomData<P>,
}

impl<P: Page> PerBootFiles<P> {
    /// `None` if the directory does not exist.
    pub(crate) fn open_if_there(path: &Path) -> Result<Option<Self>, String> {
        match simulated(|host| host.pages(path)) {
            Some(files) => Ok(Some(Self::on(files))),
            None => Ok(PageDirectory::open_if_there(path)?.map(|files| Self::on(Box::new(files)))),
        }
    }

    /// Creates the directory if necessary, for this user alone.
    pub(crate) fn open_or_make(path: &Path) -> Result<Self, String> {
        match simulated(|host| host.pages(path)) {
            Some(files) => Ok(Self::on(files)),
            None => Ok(Self::on(Box::new(PageDirectory::open_or_make(path)?))),
        }
    }

    fn on(files: Box<dyn PageFiles>) -> Self {
        Self { files, page: PhantomData }
    }

    /// The page of this domain; an empty one if there is none, or none that can be trusted.
    pub(crate) fn read(&self, domain: &Domain, clock: &dyn Clock) -> P {
        self.read_if_there(domain, clock).unwrap_or_default()
    }

    /// Adds entries to the page of this domain, under the lock of all writers. `false` if the lock stayed taken for too
    /// long.
    pub(crate) fn add(
        &self,
        domain: &Domain,
        clock: &dyn Clock,
        entries: Vec<P::Entry>,
    ) -> Result<bool, String> {
        let mut entries = Some(entries);
        self.files.locked(&mut || {
            let known = self.read_if_there(domain, clock);
            let is_first = known.is_none();
            let mut page: P = known.unwrap_or_default();
            let now = clock.now();
            entries.take().into_iter().flatten().for_each(|entry| page.add(entry, now));
            self.files.replace(&self.name(domain, PAGE), page.encode(domain).as_bytes())?;
            if is_first {
                // Optional: remaining files do no harm.
                let _ = self.clean(Some(domain), OTHERS_MAX);
            }
            Ok(())
        })
    }

    fn read_if_there(&self, domain: &Domain, clock: &dyn Clock) -> Option<P> {
        let bytes = self.files.read(&self.name(domain, PAGE))?;
        // After the read: a later entry was not written yet.
        P::decode(&bytes, domain, clock.now())
    }

    /// Removes the file of this domain.
    pub(crate) fn remove(&self, domain: &Domain) -> Result<(), String> {
        self.files.remove(&self.name(domain, PAGE))
    }

    /// Removes the files of all other domains.
    pub(crate) fn remove_others(&self, domain: Option<&Domain>) -> Result<(), String> {
        self.clean(domain, 0)
    }

    /// Removes the files of other domains, except the latest ones. A process in another time namespace may still use
    /// one; without its file it starts over.
    fn clean(&self, here: Option<&Domain>, stay: usize) -> Result<(), String> {
        let here = here.map(|domain| self.name(domain, ""));
        let is_here = |name: &str| here.as_ref().is_some_and(|here| name.starts_with(here));
        let mut others = self.files.names()?;
        others.retain(|name| self.is_page(name) && !is_here(name));
        let many = others.len().saturating_sub(stay);
        others.iter().take(many).try_for_each(|name| self.files.remove(name))
    }

    /// The file name of a domain, by checksum, because a domain may be too long for a name. The file contains the
    /// domain.
    fn name(&self, domain: &Domain, end: &str) -> String {
        format!("{}{:016x}{end}", P::PREFIX, checksum(&[domain.to_string().as_bytes()]))
    }

    fn is_page(&self, name: &str) -> bool {
        let rest = name.strip_prefix(P::PREFIX);
        let digits = rest.and_then(|name| name.strip_suffix(PAGE).or(name.strip_suffix(NEW)));
        digits
            .is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
    }
}

/// End of the name of a page.
pub(super) const PAGE: &str = ".jsonl";

/// End of the name of a page that is being written.
pub(super) const NEW: &str = ".new";

/// Number of files of other domains to keep.
const OTHERS_MAX: usize = 8;

/// Maximum length of a file.
pub(crate) const BYTES_MAX: usize = 256 * 1024;
