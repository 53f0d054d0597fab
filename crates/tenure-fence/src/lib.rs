//! The contract of a fence: a write that carries a token, and that **the resource refuses, atomically with the write**,
//! when a newer token has been there.
//!
//! A process can be paused after it has checked its lease and before it writes. No clock and no lease prevents that. A
//! resource that remembers the greatest token it has admitted does.
//!
//! * [`FencingToken`]: a token with the name of its lease. It orders, prints and parses.
//! * [`Fence`]: a resource that checks it. [`FenceError`] is its refusal, or a failure.
//! * [`Seal`]: raises the fence without a write: the first act of a new holder.
//! * [`SeenMark`]: the memory with which a fence finds that its resource went back.
//! * `suite`: the property test that a fence must pass.
//!
//! Programs use `Lease::fenced` of the crate `tenure`, which takes the token at the moment of each write. The fences
//! themselves are in `tenure` (values in a store, files, HTTP requests, a gate) and in the crates of the servers.

mod fence;
mod fence_error;
mod fencing_token;
mod seen_mark;
#[cfg(feature = "suite")]
pub mod suite;

pub use fence::{Fence, Seal};
pub use fence_error::FenceError;
pub use fencing_token::{FencingToken, FencingTokenError};
pub use seen_mark::SeenMark;
