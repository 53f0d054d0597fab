//! Leases in a bucket: AWS S3, and servers with the same API.

mod builder;
mod classify;
mod credentials;
mod profile;
mod provider;
mod providers;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use object_store::UpdateVersion;
use object_store::aws::AmazonS3;
use tenure_store::Version;

pub use builder::S3Builder;

use crate::inner::{AnswerMeaning, CredentialsFlaw, Dialect, InnerStore, RequestKind, store_over_inner};
use crate::wire::{HeaderNames, ServerAnswer};

/// A store in a bucket. Clones are the same store.
///
/// It must be polled inside a tokio runtime that has io and time enabled. A call sends one request, whatever its result
/// (a listing: one for each page), and never repeats it.
#[derive(Clone)]
pub struct S3(Arc<InnerStore<S3Dialect>>);

/// The dialect of S3: a version is an ETag.
struct S3Dialect {
    bucket: String,
    /// Name of the provider; empty for a private server.
    offered_by: &'static str,
    bare_etags: bool,
}

impl S3 {
    /// Returns a builder for the store in this bucket.
    pub fn builder(bucket: &str) -> S3Builder {
        S3Builder::new(bucket)
    }

    /// The provider of the bucket, such as `AWS S3`, by the address of the endpoint; `None` for a private server.
    pub fn offered_by(&self) -> Option<&'static str> {
        Some(self.0.dialect().offered_by).filter(|name| !name.is_empty())
    }
}

store_over_inner!(S3);

impl Dialect for S3Dialect {
    type Client = AmazonS3;

    const PROTOCOL: &'static str = "S3";

    /// It looks like an ETag. It is practically impossible that it is the hash of any content.
    const IMPOSSIBLE_VERSION: &'static str = "\"00000000000000000000000000000000\"";

    fn classify(&self, asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning {
        classify::classify(asked, answer)
    }

    fn credentials_flaw(&self, answer: &ServerAnswer) -> Option<CredentialsFlaw> {
        classify::credentials_flaw(answer)
    }

    fn advice(&self, asked: RequestKind, answer: &ServerAnswer) -> Option<String> {
        classify::advice(asked, answer, &self.bucket)
    }

    fn version(&self, etag: Option<String>, _: Option<String>) -> Option<Version> {
        etag.map(Version::new)
    }

    fn condition(&self, version: &Version) -> UpdateVersion {
        UpdateVersion { e_tag: Some(self.etag(version.as_str())), version: None }
    }

    fn etag(&self, etag: &str) -> String {
        if self.bare_etags { etag.trim_matches('"').to_owned() } else { etag.to_owned() }
    }

    fn retains_every_write(&self) -> String {
        classify::retains_every_write(&self.bucket)
    }

    fn may_not_delete(&self) -> String {
        format!("the credentials may not delete: s3:DeleteObject is not allowed on {}", self.bucket)
    }

    fn refuses_current_version(&self) -> String {
        let advice = if self.bare_etags {
            "it seems to want ETags with their quotes: take etags=bare out of the URL"
        } else {
            "it seems to want ETags without their quotes: write etags=bare in the URL"
        };
        format!("the server refuses to replace the version that it shows; {advice}, and run tenure probe")
    }
}

const HEADERS: HeaderNames = HeaderNames {
    request_id: "x-amz-request-id",
    locks: &["x-amz-object-lock-mode"],
    version: None,
    region: Some("x-amz-bucket-region"),
    error_code: None,
    signed: Some(("AWS4-HMAC-SHA256", "x-amz-date")),
};
