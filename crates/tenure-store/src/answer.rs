use crate::{StoreTime, Version};

/// The definite answers to a conditional write. Whatever is not definite is a [`StoreError`](crate::StoreError).
///
/// Exhaustive: it happened or it did not, and who wrote acts on both.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a write whose answer nobody reads is a guess"]
pub enum Put {
    /// The write happened.
    Applied(Applied),
    /// The write did not happen: the entry is not what was expected.
    Conflict(Conflict),
}

/// The write happened, and this is the version it left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// The version of the entry after this write.
    pub version: Version,
    /// The store's own time when it answered, where it has a clock.
    pub time: Option<StoreTime>,
}

impl Applied {
    /// A write that left this version behind, in a store that tells no time.
    pub fn new(version: Version) -> Self {
        Self { version, time: None }
    }

    /// The same with the store's own time.
    pub fn with_time(self, time: impl Into<Option<StoreTime>>) -> Self {
        Self { time: time.into(), ..self }
    }
}

/// The entry is not what the write expected, so *this attempt* had no effect.
///
/// A balancer between us and the store may have sent the same request twice; then the first copy was applied and the
/// answer to the second is a conflict. Whoever receives it therefore reads before believing that somebody else won, and so
/// it carries nothing that could be believed instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflict;
