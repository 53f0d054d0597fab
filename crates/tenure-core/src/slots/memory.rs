use super::{SlotSight, Stamped};
use crate::Instant;
use crate::record::Ttl;

/// A contender's memory of one slot.
#[derive(Clone, Debug, Default)]
pub struct SlotMemory {
    /// Its state at the latest read; `None` if it was not read yet.
    pub sight: Option<SlotSight>,
    /// Time of the latest read.
    pub read_at: Option<Instant>,
    /// Time at which the latest read was sent; `None` if it failed.
    pub sent_at: Option<Instant>,
    /// Its stamp in the listings; `None` before the first listing.
    pub stamped: Option<Stamped>,
    /// Time at which it was last tried without being granted.
    pub denied_at: Option<Instant>,
    /// Time of the next read after a hint.
    pub hinted: Option<Instant>,
}

impl SlotMemory {
    /// True if the latest read showed that a contender is granted.
    pub fn is_free(&self) -> bool {
        matches!(self.sight, Some(SlotSight::Free))
    }

    /// True if the latest read showed that it is never granted.
    pub fn is_unusable(&self) -> bool {
        matches!(self.sight, Some(SlotSight::Unusable))
    }

    /// Instant at which its version has run out, unless its holder renews it.
    pub fn due(&self) -> Option<Instant> {
        match &self.sight {
            Some(SlotSight::Held { due, .. }) => Some(*due),
            _ => None,
        }
    }

    /// True if the latest read shows the entry of its stamp or a later one.
    pub fn is_read_since_stamped(&self) -> bool {
        match (&self.stamped, self.sent_at) {
            (Some(stamped), Some(sent)) => sent >= stamped.received,
            _ => false,
        }
    }

    /// The ttl of its holder.
    pub(super) fn ttl(&self) -> Option<Ttl> {
        match &self.sight {
            Some(SlotSight::Held { record, .. }) => record.ttl,
            _ => None,
        }
    }
}
