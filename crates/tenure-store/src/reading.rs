use std::time::Duration;

use bytes::Bytes;

use crate::{StoreTime, Version};

/// The answer to a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// The entry, if there is one.
    pub entry: Option<Entry>,
    /// The store's own time when it answered, where it has a clock.
    pub time: Option<StoreTime>,
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The bytes that were written last.
    pub value: Bytes,
    /// The stamp of that write.
    pub version: Version,
    /// How long ago that write was, where the store can tell *by a clock of its own that does not jump*
    /// ([`StoreClock::Ages`](crate::StoreClock::Ages)).
    pub age: Option<Duration>,
}

impl Reading {
    /// What the key holds, in a store that tells no time.
    pub fn new(entry: Option<Entry>) -> Self {
        Self { entry, time: None }
    }

    /// The same with the store's own time.
    pub fn with_time(self, time: impl Into<Option<StoreTime>>) -> Self {
        Self { time: time.into(), ..self }
    }
}

impl Entry {
    /// These bytes with the stamp of their write, of an age that the store does not tell.
    pub fn new(value: Bytes, version: Version) -> Self {
        Self { value, version, age: None }
    }

    /// The same with its age.
    pub fn with_age(self, age: impl Into<Option<Duration>>) -> Self {
        Self { age: age.into(), ..self }
    }
}
