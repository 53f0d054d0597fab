use serde::{Deserialize, Serialize};
use tenure_core::machine::Recalled;
use tenure_core::record::Nonce;
use tenure_store::{Key, Version};

use crate::clock::Instant;

/// What was seen of one key of one store, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogbookEntry {
    pub(super) store: String,
    pub(super) key: String,
    version: String,
    nonce: String,
    /// Since when the waiting for this version counts, in nanoseconds of the boot-time clock.
    first: u64,
    /// When it was seen last.
    last: u64,
    /// Whether somebody wanted the lease, or only looked.
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

    /// What a contender or an observer goes by.
    pub(crate) fn to_recall(&self) -> Option<Recalled> {
        let nonce = Nonce::parse(&self.nonce)?;
        let version = Version::new(self.version.as_str());
        Some(Recalled { version, nonce, from: Instant::from_nanos(self.first) })
    }

    /// Whether somebody wanted the lease.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// When it was seen last.
    pub(super) fn last(&self) -> Instant {
        Instant::from_nanos(self.last)
    }

    /// Whether it can be: nobody has seen anything later than now.
    pub(super) fn is_plausible(&self, now: Instant) -> bool {
        self.first <= self.last && self.last() <= now && Nonce::parse(&self.nonce).is_some()
    }

    /// Takes in what somebody else saw of the same key. Of one version the first sight stays; of two, the one that was
    /// seen last. What was wanted once is not taken for something that somebody only looked at.
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
