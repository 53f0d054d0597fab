use serde::{Deserialize, Serialize};
use tenure_core::machine::Recalled;
use tenure_core::record::Nonce;
use tenure_store::{Key, Version};

use crate::clock::Instant;

/// Sighting of one key of one store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogbookEntry {
    pub(super) store: String,
    pub(super) key: String,
    version: String,
    nonce: String,
    /// Start of the wait for this version, in nanoseconds of the boot-time clock.
    first: u64,
    /// Time of the last sighting.
    last: u64,
    /// True if a contender saw it; false if only an observer did.
    wanted: bool,
}

impl LogbookEntry {
    pub(crate) fn new(store: &str, key: &Key, seen: &Recalled, last: Instant, wanted: bool) -> Self {
        Self {
            store: store.to_owned(),
            key: key.as_str().to_owned(),
            version: seen.version.as_str().to_owned(),
            nonce: seen.nonce.to_string(),
            first: seen.from.as_nanos(),
            last: last.as_nanos(),
            wanted,
        }
    }

    /// The sighting in the form that contenders and observers use.
    pub(crate) fn to_recall(&self) -> Option<Recalled> {
        let nonce = Nonce::parse(&self.nonce)?;
        let version = Version::new(self.version.as_str());
        Some(Recalled { version, nonce, from: Instant::from_nanos(self.first) })
    }

    /// True if a contender saw it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Time of the last sighting.
    pub(super) fn last(&self) -> Instant {
        Instant::from_nanos(self.last)
    }

    /// True if the entry is consistent, and not from the future.
    pub(super) fn is_plausible(&self, now: Instant) -> bool {
        self.first <= self.last && self.last() <= now && Nonce::parse(&self.nonce).is_some()
    }

    /// Takes in another sighting of the same key. Of one version the first sighting stays; of two versions, the one
    /// seen last. A sighting by a contender stays marked as such.
    pub(super) fn merge(&mut self, other: Self) {
        let wanted = self.wanted || other.wanted;
        if (&self.version, &self.nonce) == (&other.version, &other.nonce) {
            self.first = self.first.min(other.first);
            self.last = self.last.max(other.last);
        } else if other.last >= self.last {
            *self = other;
        }
        self.wanted = wanted;
    }
}
