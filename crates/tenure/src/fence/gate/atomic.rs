//! Atomics of a gate. `tests/gate_loom.rs` replaces them with those of the model checker.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};
