//! Atomics that a lease and its keeper share. `tests/loom.rs` replaces them with those of the model checker.

pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
