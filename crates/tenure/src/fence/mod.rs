//! Fences: writes that carry the token, and that the resource refuses when a newer holder has been there.
//!
//! [`Lease::fenced`](crate::Lease::fenced) writes to each of them under a lease.

mod fenced;
mod file;
mod gate;
#[cfg(feature = "tower")]
pub mod http;
mod idempotency_key;
mod manifest;
pub mod message;
mod value;

pub use fenced::Fenced;
pub use file::{FencedFile, FencedLog, FileMark};
pub use gate::{DurableGate, Enter, Gate, Pass};
pub use idempotency_key::IdempotencyKey;
pub use manifest::{FencedManifest, Manifest, ManifestEntry};
#[doc(inline)]
pub use tenure_fence::{Fence, FenceError, FencingToken, FencingTokenError, Seal};
pub use value::FencedValue;
