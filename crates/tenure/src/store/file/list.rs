use std::collections::BTreeSet;

use tenure_store::{Key, Prefix, StoreError};

use super::directory::Directory;
use super::envelope::Envelope;
use super::name::{self, FileName, Stem};
use super::read;
use crate::host::disk::io_error::IoError;

/// The keys that have an entry, each once. Skips marks, temporary files and foreign files.
pub(super) fn keys(directory: &Directory, prefix: &Prefix) -> Result<Vec<Key>, StoreError> {
    directory.is_in_place()?;
    let io_error = |errno| IoError::reading("cannot list", directory.path(), errno).refused();
    let (mut entries, mut locks) = (BTreeSet::new(), BTreeSet::new());
    let mut names = rustix::fs::Dir::read_from(directory).map_err(io_error)?;
    while let Some(name) = names.read() {
        let name = name.map_err(io_error)?;
        match name::parse(name.file_name().to_bytes()) {
            FileName::Entry(stem) => entries.insert(stem.to_owned()),
            FileName::Lock(stem) => locks.insert(stem.to_owned()),
            FileName::Temporary
            | FileName::Witness
            | FileName::Mark
            | FileName::Tried
            | FileName::Foreign => false,
        };
    }
    // On some file systems, a name that is the target of a rename during the listing may appear twice or not at all.
    // The lock file beside it is replaced only if its owner is stopped.
    for stem in locks.difference(&entries.clone()) {
        if directory.status_of(&name::entry_of(stem)).is_ok() {
            entries.insert(stem.clone());
        }
    }
    let mut keys = Vec::new();
    for stem in &entries {
        let key = match name::parse_stem(stem) {
            Stem::Of(key) => Some(key),
            Stem::Long => long(directory, &name::entry_of(stem))?,
            Stem::Foreign => None,
        };
        keys.extend(key.filter(|key| prefix.covers(key)));
    }
    Ok(keys)
}

/// The key of an entry whose key is too long for a file name. An unreadable entry has no key and is not listed.
fn long(directory: &Directory, name: &str) -> Result<Option<Key>, StoreError> {
    let Some(bytes) = read::bytes(directory, name)? else { return Ok(None) };
    let key = Envelope::decode(bytes).ok().map(|envelope| envelope.key);
    Ok(key.filter(|key| name::entry(key) == name))
}
