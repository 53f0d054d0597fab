//! Tenure's stores in buckets. The first is [`S3`]: AWS, and every server with the same API *that keeps its conditional
//! writes*.
//!
//! ```no_run
//! use tenure_object::S3;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // Region, endpoint and credentials come from the environment, as with every tool for AWS.
//! let store = S3::builder("my-bucket").prefix("locks").open()?;
//! # Ok(())
//! # }
//! ```
//!
//! Guarantees, requirements and tested servers: `docs/stores/s3.md`.
//!
//! # Design
//!
//! The client underneath is [`object_store`], which supports several clouds. Tenure relies on it for the requests, and
//! not for its reports of the answers: it reports a 404 on a replace as a failed precondition, and a 409 as "already
//! exists". So every request passes through a hook (`wire`) that records the real answer, and that answer alone decides
//! (the `classify` of each dialect). No request is ever sent twice.

#![cfg_attr(
    not(all(feature = "s3", feature = "gs")),
    allow(dead_code, unused_imports, reason = "each store uses a part of the rest")
)]

#[cfg(not(any(feature = "s3", feature = "gs")))]
compile_error!("choose at least one store: turn the feature `s3` or `gs` on");

mod credentials;
#[cfg(feature = "gs")]
mod google;
mod inner;
mod name;
mod open;
#[cfg(feature = "s3")]
mod s3;
mod tls;
mod wire;

#[cfg(feature = "gs")]
pub use google::{Google, GoogleBuilder};
pub use open::{Environment, OpenError};
#[cfg(feature = "s3")]
pub use s3::{S3, S3Builder};
pub use wire::Requests;
