//! Tenure's stores in buckets. The first of them is [`S3`]: AWS, and every server that speaks like it *and keeps its
//! conditional writes*.
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
//! What it guarantees, what it needs, and against which servers it was tested: `docs/stores/s3.md`.
//!
//! # How it is made
//!
//! The client underneath is [`object_store`], which speaks to several clouds. It is believed for what it sends, and not
//! for what it says came back: it reports a 404 on a replace as a failed precondition, and a 409 as "already exists".
//! So every request passes through a hook (`wire`) that notes what was really answered, and the answer alone decides
//! (`s3::classify`). Nothing is ever sent twice.

mod name;
mod s3;
mod tls;
mod wire;

pub use s3::{Environment, OpenError, S3, S3Builder};
pub use wire::Requests;
