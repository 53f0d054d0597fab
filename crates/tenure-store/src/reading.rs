use std::time::Duration;

use bytes::Bytes;

use crate::{StoreTime, Version};

/// The answer to a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// The entry, if there is one.
    pub entry: Option<Entry>,
    /// The store's own time when it answered, if it has a clock.
    pub time: Option<StoreTime>,
}

/// The value of a key, with its version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The bytes of the last write.
    pub value: Bytes,
    /// The stamp of that write.
    pub version: Version,
    /// Time since that write, if the store measures it *with a clock of its own that does not jump*
    /// ([`StoreClock::Ages`](crate::StoreClock::Ages)).
    pub age: Option<Duration>,
}

impl Reading {
    /// The entry of a key, in a store that reports no time.
    pub fn new(entry: Option<Entry>) -> Self {
        Self { entry, time: None }
    }

    /// Adds the store's own time.
    pub fn with_time(self, time: impl Into<Option<StoreTime>>) -> Self {
        Self { time: time.into(), ..self }
    }
}

impl Entry {
    /// These bytes with the stamp of their write, and no age.
    pub fn new(value: Bytes, version: Version) -> Self {
        Self { value, version, age: None }
    }

    /// Adds the age.
    pub fn with_age(self, age: impl Into<Option<Duration>>) -> Self {
        Self { age: age.into(), ..self }
    }
}
