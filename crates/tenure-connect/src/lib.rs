//! Opens a store by its URL: a command line, a variable or a line of a file can name the store.
//!
//! | URL | store | feature |
//! | --- | --- | --- |
//! | `file:///var/lib/tenure` | a directory on the local disk | `file`, on by default |
//! | `memory:`, `memory:name` | the memory of this process; each open creates a separate store | `memory` |
//! | `redis://host:6379`, `rediss:`, `redis+unix:`, `redis+sentinel:` | a Redis or Valkey server | `redis` |
//! | `s3://bucket/prefix` | a bucket of AWS S3, or of a server with the same API | `s3` |
//! | `az://container/prefix` | a container of Azure Blob Storage | `az` |
//! | `gs://bucket/prefix` | a bucket of Google Cloud Storage | `gs` |
//! | `postgres://role@host/database` | a PostgreSQL database | `postgres` |
//!
//! `file:///srv/leases?share=group` is a file store that the users in the group of its directory share.
//!
//! To accept a risk that a file store refuses, name it, as often as needed:
//! `file:///srv/leases?accept=foreign-owner&accept=nfs`.
//!
//! ```
//! use tenure_connect::StoreUrl;
//!
//! let url: StoreUrl = "file:///var/lib/my%20jobs?accept=nfs".parse()?;
//! assert_eq!(url.to_string(), "file:///var/lib/my%20jobs?accept=nfs");
//!
//! // The error shows a valid URL.
//! let error = "/var/lib/jobs".parse::<StoreUrl>().unwrap_err();
//! assert!(error.to_string().contains("file:///var/lib/jobs"));
//! # Ok::<(), tenure_connect::UrlError>(())
//! ```

#[cfg(not(any(
    feature = "file",
    feature = "memory",
    feature = "postgres",
    feature = "redis",
    feature = "s3",
    feature = "az",
    feature = "gs"
)))]
compile_error!(
    "choose at least one store: turn the feature `file`, `memory`, `postgres`, `redis`, `s3`, `az` or `gs` on"
);

#[cfg(feature = "az")]
mod azure;
#[cfg(any(feature = "s3", feature = "az", feature = "gs"))]
mod container;
#[cfg(any(feature = "postgres", feature = "redis", feature = "s3", feature = "az", feature = "gs"))]
mod decode;
mod error;
#[cfg(feature = "file")]
mod file;
#[cfg(feature = "gs")]
mod google;
#[cfg(feature = "memory")]
mod memory;
#[cfg(any(
    feature = "file",
    feature = "postgres",
    feature = "redis",
    feature = "s3",
    feature = "az",
    feature = "gs"
))]
mod options;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "s3")]
mod s3;
mod url;

pub use error::UrlError;
pub use url::{ObjectPlace, StoreUrl};
