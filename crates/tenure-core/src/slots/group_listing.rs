use tenure_store::{Key, Listed, Stamp};

/// The stamps of a group in one listing of the store.
#[derive(Clone, Debug, Default)]
pub struct GroupListing {
    /// The stamp of its size.
    pub size: Option<Stamp>,
    /// The stamps of its slots, by index, in any order. A slot without an entry is missing.
    pub slots: Vec<(u16, Stamp)>,
}

impl GroupListing {
    /// The stamps of the group whose size has this key.
    pub fn new(size_key: &Key, listed: Vec<Listed>) -> Self {
        let mut listing = Self::default();
        for Listed { key, stamp, .. } in listed {
            match key.slot_index() {
                Some(index) => listing.slots.push((index, stamp)),
                None if key == *size_key => listing.size = Some(stamp),
                None => {}
            }
        }
        listing
    }
}
