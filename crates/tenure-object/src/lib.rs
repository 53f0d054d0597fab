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

mod credentials;
mod inner;
mod name;
mod open;
mod s3;
mod tls;
mod wire;

pub use open::{Environment, OpenError};
pub use s3::{S3, S3Builder};
pub use wire::Requests;
