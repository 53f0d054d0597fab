use std::fmt;
use std::sync::Arc;

use crate::Key;

/// One entry of a listing [with stamps](crate::Store::list_stamped).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// The key of the entry.
    pub key: Key,
    /// The stamp that the listing shows for it.
    pub stamp: Stamp,
}

impl Listed {
    /// An entry with this stamp.
    pub fn new(key: Key, stamp: Stamp) -> Self {
        Self { key, stamp }
    }
}

/// The stamp of one write of one key in a listing: an ETag or a generation, and the size of the value.
///
/// A stamp is no [`Version`](crate::Version), and the two types cannot be compared: some stores write the same ETag in
/// one form in a listing and in another form in the answer to a read. Stamps of one key can be compared for equality,
/// between listings of the same store.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Stamp {
    mark: Arc<str>,
    size: Option<u64>,
}

impl Stamp {
    /// The stamp as the store itself writes it.
    pub fn new(mark: impl Into<Arc<str>>) -> Self {
        Self { mark: mark.into(), size: None }
    }

    /// Adds the size of the value, in bytes.
    pub fn with_size(mut self, size: Option<u64>) -> Self {
        self.size = size;
        self
    }

    /// Size of the value, in bytes, if the listing shows it.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Some(size) => write!(f, "Stamp({}, {size} bytes)", self.mark),
            None => write!(f, "Stamp({})", self.mark),
        }
    }
}
