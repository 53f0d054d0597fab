use std::fmt;
use std::ops::Deref;

use tenure_store::Key;

use super::Lease;

/// A granted slot of a group. It is a [`Lease`], with an index. Dropping it releases it without waiting.
///
/// The token is that of the slot, and is not comparable with the token of another slot: see
/// [`tenure::Slot`](crate::Slot).
#[must_use = "dropping a slot releases it"]
pub struct Slot {
    lease: Lease,
    group: Key,
    index: u16,
}

impl Slot {
    pub(super) fn new(slot: crate::Slot) -> Self {
        let (group, index) = (slot.group().clone(), slot.index());
        Self { lease: Lease(slot.into_lease()), group, index }
    }

    /// The index of the slot, from 0 to the size of the group minus 1.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// The group.
    pub fn group(&self) -> &Key {
        &self.group
    }

    /// The lease of the slot, without its index.
    pub fn into_lease(self) -> Lease {
        self.lease
    }
}

impl Deref for Slot {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl fmt::Debug for Slot {
    /// One line, as in `Slot(3 of gpu, Lease(…))`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({} of {}, {:?})", self.index, self.group, self.lease)
    }
}
