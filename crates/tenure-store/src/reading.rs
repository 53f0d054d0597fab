use std::time::Duration;

use bytes::Bytes;

use crate::{StoreTime, Version};

/// The answer to a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The entry, if there is one.
    pub entry: Option<Entry>,
    /// The store's own time when it answered, where it has a clock.
    pub time: Option<StoreTime>,
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The bytes that were written last.
    pub value: Bytes,
    /// The stamp of that write.
    pub version: Version,
    /// How long ago that write was, where the store can tell *by a clock of its own that does not jump*
    /// ([`StoreClock::Ages`](crate::StoreClock::Ages)).
    pub age: Option<Duration>,
}
