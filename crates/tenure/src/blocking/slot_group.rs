use std::sync::Arc;

use tenure_core::record::Record;
use tenure_store::Key;

use crate::{Error, HeldSlot};

/// A group of slots, without a contender, for blocking threads: its size and its holders.
#[derive(Clone, Debug)]
pub struct SlotGroup(pub(super) crate::SlotGroup);

impl SlotGroup {
    same! { answers of SlotGroup:
        name() -> &Key;
    }

    same! { waits of SlotGroup:
        size() -> Result<Option<u16>, Error>;
        resize(slots: u32) -> Result<u16, Error>;
        holders() -> Result<Vec<HeldSlot>, Error>;
        record(index: u16) -> Result<Option<Arc<Record>>, Error>;
    }
}
