//! The atomics that a lease and its keeper meet in. `tests/loom.rs` puts those of the model checker in their place.

pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
