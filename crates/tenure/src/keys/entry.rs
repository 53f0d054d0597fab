use std::sync::Arc;
use std::time::Duration;

use tenure_core::Holder;
use tenure_core::keys::SeenEntry;
use tenure_core::machine::Remaining;
use tenure_core::record::Ttl;
use tenure_store::Key;

use super::Revision;
use crate::Error;
use crate::clock::WallTime;

/// An entry of a plain key, as this process saw it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeyEntry {
    /// Its key.
    pub key: Key,
    /// Its value.
    pub value: Arc<str>,
    /// Its revision: greater for every change of the key.
    pub revision: Revision,
    /// Name of its owner. Informational: the owner proves itself by its secret.
    pub owner: Option<Arc<Holder>>,
    /// Time after which it runs out without a renewal or a change; `None` if it never does.
    pub ttl: Option<Duration>,
    /// Its longest remaining time; `None` if it never runs out.
    pub remaining: Option<Remaining>,
    /// Time of the change that made it, by its owner's wall clock. Informational.
    pub changed_at: WallTime,
    /// Time of its latest write, which may be a renewal, by its owner's wall clock. Informational.
    pub written_at: WallTime,
    pub(super) secret_hash: Option<[u8; 32]>,
}

/// Result of a listing: each key with its entry, or with the error of its read.
pub type KeyEntries = Vec<(Key, Result<KeyEntry, Error>)>;

impl KeyEntry {
    pub(super) fn new(key: &Key, seen: &SeenEntry) -> Self {
        let record = &seen.record;
        Self {
            key: key.clone(),
            value: Arc::clone(&record.value),
            revision: Revision::of(record.token),
            owner: record.holder.clone(),
            ttl: record.ttl.map(Ttl::as_duration),
            remaining: seen.remaining,
            changed_at: record.granted_at,
            written_at: record.written_at,
            secret_hash: record.secret_hash,
        }
    }
}
