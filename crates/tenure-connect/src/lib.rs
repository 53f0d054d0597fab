//! Opens a store by its URL, so that a command line, a variable or a line of a file can name it.
//!
//! | URL | store | feature |
//! | --- | --- | --- |
//! | `file:///var/lib/tenure` | a folder on the local disk | `file`, on by default |
//! | `memory:`, `memory:name` | the memory of this process; each opening is a store of its own | `memory` |
//! | `s3://bucket/prefix` | a bucket of AWS S3, or of a server that speaks like it | `s3` |
//!
//! A risk that a store of files refuses is accepted by its name, as often as needed:
//! `file:///srv/leases?accept=foreign-owner&accept=nfs`.
//!
//! ```
//! use tenure_connect::StoreUrl;
//!
//! let url: StoreUrl = "file:///var/lib/my%20jobs?accept=nfs".parse()?;
//! assert_eq!(url.to_string(), "file:///var/lib/my%20jobs?accept=nfs");
//!
//! // What is wrong is said with what would be right.
//! let error = "/var/lib/jobs".parse::<StoreUrl>().unwrap_err();
//! assert!(error.to_string().contains("file:///var/lib/jobs"));
//! # Ok::<(), tenure_connect::UrlError>(())
//! ```

#[cfg(not(any(feature = "file", feature = "memory", feature = "s3")))]
compile_error!("choose at least one store: turn the feature `file`, `memory` or `s3` on");

mod error;
#[cfg(feature = "file")]
mod file;
#[cfg(feature = "memory")]
mod memory;
#[cfg(feature = "s3")]
mod s3;
mod url;

pub use error::UrlError;
pub use url::StoreUrl;
