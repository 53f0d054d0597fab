//! Tenure's stores in buckets and containers. Each has a feature, and all are on by default.
//!
//! | store | feature | guarantees, requirements, tested servers |
//! | --- | --- | --- |
//! | `S3`: AWS, and every server with the same API *that keeps its conditional writes* | `s3` | `docs/stores/s3.md` |
//! | `Azure`: Azure Blob Storage | `az` | `docs/stores/azure.md` |
//! | `Google`: Google Cloud Storage | `gs` | `docs/stores/google.md` |
//!
//! ```no_run
//! # #[cfg(feature = "s3")] {
//! use tenure_object::S3;
//!
//! // Region, endpoint and credentials come from the environment, as with every tool for AWS.
//! let store = S3::builder("my-bucket").prefix("locks").open()?;
//! # }
//! # Ok::<(), tenure_object::OpenError>(())
//! ```
//!
//! # Objects at exact names
//!
//! A bucket opened with `exact_names` uses each key as the exact name of an object. On it, a fenced value is an object at
//! the name that its readers know: see `docs/concepts/fenced-values.md`.
//!
//! ```no_run
//! # #[cfg(feature = "s3")]
//! # async fn publish(csv: Vec<u8>) -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use tenure::{Key, fence::FencedValue};
//! use tenure_object::S3;
//!
//! let bucket = S3::builder("my-bucket").exact_names().open()?;
//! let report = FencedValue::on(Arc::new(bucket), Key::parse("reports/today.csv")?);
//! report.write(&"billing/nightly=7".parse()?, csv).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Design
//!
//! The client underneath is [`object_store`], which supports several clouds. Tenure relies on it for the requests, and
//! not for its reports of the answers: it reports a 404 on a replace as a failed precondition, and a 409 as "already
//! exists". So every request passes through a hook (`wire`) that records the real answer, and that answer alone decides
//! (the `classify` of each dialect). No request is ever sent twice.

#![cfg_attr(
    not(all(feature = "s3", feature = "az", feature = "gs")),
    allow(dead_code, unused_imports, reason = "each store uses a part of the rest")
)]

#[cfg(not(any(feature = "s3", feature = "az", feature = "gs")))]
compile_error!("choose at least one store: turn the feature `s3`, `az` or `gs` on");

#[cfg(feature = "az")]
mod azure;
mod boot_time;
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

#[cfg(feature = "az")]
pub use azure::{Azure, AzureBuilder};
#[cfg(feature = "gs")]
pub use google::{Google, GoogleBuilder};
pub use open::{Environment, OpenError};
#[cfg(feature = "s3")]
pub use s3::{S3, S3Builder};
pub use wire::Requests;
