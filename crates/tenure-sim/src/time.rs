//! Spans of simulated time, in nanoseconds.

pub(crate) const MICRO: u64 = 1_000;
pub(crate) const MILLI: u64 = 1_000 * MICRO;
pub(crate) const SECOND: u64 = 1_000 * MILLI;
pub(crate) const MINUTE: u64 = 60 * SECOND;
