use std::sync::Arc;

use tenure_core::slots::GroupSize;
use tenure_store::Key;

use crate::keeper::Connection;
use crate::keys::{Creation, KeyEntry, Keys, Replacement, Revision};
use crate::{Error, ErrorKind};

/// The plain key that holds the number of slots of a group.
#[derive(Clone, Debug)]
pub(super) struct SizeKey {
    keys: Keys,
    store: Arc<str>,
    key: Key,
    group: Key,
}

impl SizeKey {
    pub(super) fn new(keys: Keys, connection: &Connection, group: &Key) -> Result<Self, Error> {
        let (store, key) = (Arc::clone(&connection.store), Key::group_size(group)?);
        Ok(Self { keys, store, key, group: group.clone() })
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// The size of the group, by a read that is sent now; `None` if it has none.
    pub(super) async fn read(&self) -> Result<Option<GroupSize>, Error> {
        Ok(self.read_entry().await?.map(|(size, _)| size))
    }

    /// Stores the size of a group that has none, and returns the size that it has now.
    pub(super) async fn create(&self, size: GroupSize) -> Result<GroupSize, Error> {
        match self.keys.create_key(&self.key, &size.to_string(), None).await? {
            Creation::Created(_) => Ok(size),
            Creation::Exists(entry) => self.size_of(&entry),
        }
    }

    /// Replaces the size of a group, and returns the former one.
    pub(super) async fn replace(&self, size: GroupSize) -> Result<GroupSize, Error> {
        let no_size = || {
            let sentence = format!(
                "group {} on {} has no size yet: acquire a slot of it first, which stores the number of slots",
                self.group, self.store
            );
            Error::new(ErrorKind::Invalid, sentence)
        };
        let (mut former, mut revision) = self.read_entry().await?.ok_or_else(no_size)?;
        for _ in 0..REPLACEMENTS_MAX {
            if former == size {
                return Ok(former);
            }
            match self.keys.set_key(&self.key, revision, &size.to_string(), None).await? {
                Replacement::Created(_) | Replacement::Updated(_) => return Ok(former),
                Replacement::Conflict(entry) => {
                    let entry = entry.ok_or_else(no_size)?;
                    (former, revision) = (self.size_of(&entry)?, entry.revision);
                }
            }
        }
        let sentence = format!(
            "the size of group {} on {} changed during each attempt to resize it: try again",
            self.group, self.store
        );
        Err(Error::new(ErrorKind::Unavailable, sentence))
    }

    async fn read_entry(&self) -> Result<Option<(GroupSize, Revision)>, Error> {
        let Some(entry) = self.keys.get_key(&self.key).await? else { return Ok(None) };
        Ok(Some((self.size_of(&entry)?, entry.revision)))
    }

    fn size_of(&self, entry: &KeyEntry) -> Result<GroupSize, Error> {
        GroupSize::from_stored(&entry.value).ok_or_else(|| {
            let sentence = format!(
                "group {} on {} has {:?} as its number of slots, which is not a size: find out what wrote it",
                self.group, self.store, entry.value
            );
            Error::new(ErrorKind::Corrupt, sentence)
        })
    }
}

/// Number of attempts to replace a size that others change at the same time.
const REPLACEMENTS_MAX: u32 = 8;
