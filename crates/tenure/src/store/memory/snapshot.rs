use std::collections::BTreeMap;

use tenure_store::Key;

use super::state::Stored;

/// A backup of a [`Memory`](super::Memory) at one moment: values and versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub(super) entries: BTreeMap<Key, Stored>,
    /// The next version at that moment: a store that is restored from this never gives an earlier one.
    pub(super) next_version: u64,
}
