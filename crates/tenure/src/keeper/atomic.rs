//! Words and locks that a lease and its keeper share. `tests/held_loom.rs` replaces them with those of the model checker.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};
pub(super) use std::sync::{Mutex, OnceLock};

pub(super) use tenure_core::{Belief, Works};
pub(super) use tokio_util::sync::CancellationToken;
