use std::collections::BTreeMap;

use tenure_store::Key;

use super::state::Stored;

/// What a [`Memory`](super::Memory) held at one moment, as a backup does: values and versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub(super) entries: BTreeMap<Key, Stored>,
    /// The version that was to be given next: a store that is restored from this never gives an earlier one.
    pub(super) next_version: u64,
}
