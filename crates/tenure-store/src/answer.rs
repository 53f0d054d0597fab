use crate::{StoreTime, Version};

/// The definite answers to a conditional write. An answer that is not definite is a [`StoreError`](crate::StoreError).
///
/// Exhaustive: the write happened or it did not, and the writer acts on both.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "without its answer, a write may or may not have happened"]
pub enum Put {
    /// The write happened.
    Applied(Applied),
    /// The write did not happen: the entry is not the expected one.
    Conflict(Conflict),
}

/// A write that happened, and the version that it left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// The version of the entry after this write.
    pub version: Version,
    /// The store's own time when it answered, if it has a clock.
    pub time: Option<StoreTime>,
}

impl Applied {
    /// A write that left this version behind, in a store that reports no time.
    pub fn new(version: Version) -> Self {
        Self { version, time: None }
    }

    /// Adds the store's own time.
    pub fn with_time(self, time: impl Into<Option<StoreTime>>) -> Self {
        Self { time: time.into(), ..self }
    }
}

/// The entry is not the expected one, so *this attempt* had no effect.
///
/// A balancer between the client and the store may have sent the same request twice. Then the first copy was applied,
/// and the answer to the second is a conflict. So the writer must read before it concludes that another writer won, and
/// this type carries nothing that it could use instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflict;
