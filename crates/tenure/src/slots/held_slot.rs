use std::sync::Arc;

use tenure_core::machine::Remaining;
use tenure_core::record::Record;

/// One slot of a group, and its holder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeldSlot {
    /// The index of the slot.
    pub index: u16,
    /// Its record, which names the holder and the token.
    pub record: Arc<Record>,
    /// Longest remaining time, unless the holder renews it.
    pub remaining: Remaining,
}

impl HeldSlot {
    /// The name of the holder.
    pub fn holder(&self) -> &str {
        self.record.holder.as_ref().map_or("another holder", |holder| holder.id())
    }
}
