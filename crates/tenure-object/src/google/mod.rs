//! Leases in a bucket of Google Cloud Storage.

mod builder;
mod classify;
mod credentials;
mod federation;
mod key_file;
mod metadata;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use object_store::UpdateVersion;
use object_store::gcp::GoogleCloudStorage;
use tenure_store::Version;

pub use builder::GoogleBuilder;

use crate::inner::{AnswerMeaning, CredentialsFlaw, Dialect, InnerStore, RequestKind, store_over_inner};
use crate::wire::{HeaderNames, ServerAnswer};

/// A store in a bucket of Google Cloud Storage. Clones are the same store.
///
/// It must be polled inside a tokio runtime that has io and time enabled. A call sends one request, whatever its result
/// (a listing: one for each page), and never repeats it.
#[derive(Clone)]
pub struct Google(Arc<InnerStore<GoogleDialect>>);

/// The dialect of Google's XML API: a version is a generation, which every write changes.
struct GoogleDialect {
    bucket: String,
    /// False for a private server.
    is_google: bool,
}

impl Google {
    /// Returns a builder for the store in this bucket.
    pub fn builder(bucket: &str) -> GoogleBuilder {
        GoogleBuilder::new(bucket)
    }

    /// The provider of the bucket, by the address of the endpoint; `None` for a private server.
    pub fn offered_by(&self) -> Option<&'static str> {
        self.0.dialect().is_google.then_some("Google Cloud Storage")
    }
}

store_over_inner!(Google);

impl Dialect for GoogleDialect {
    type Client = GoogleCloudStorage;

    const PROTOCOL: &'static str = "Google Cloud Storage";

    /// Generations are microseconds since 1970. Zero is not a version: as a condition it means that there is no object.
    const IMPOSSIBLE_VERSION: &'static str = "1";

    fn classify(&self, asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning {
        classify::classify(asked, answer)
    }

    fn credentials_flaw(&self, answer: &ServerAnswer) -> Option<CredentialsFlaw> {
        classify::credentials_flaw(answer)
    }

    fn advice(&self, asked: RequestKind, answer: &ServerAnswer) -> Option<String> {
        classify::advice(asked, answer, &self.bucket)
    }

    fn version(&self, _: Option<String>, generation: Option<String>) -> Option<Version> {
        generation.filter(|text| is_generation(text)).map(Version::new)
    }

    fn condition(&self, version: &Version) -> UpdateVersion {
        UpdateVersion { e_tag: None, version: Some(version.as_str().to_owned()) }
    }

    fn retains_every_write(&self) -> String {
        classify::retains_every_write(&self.bucket)
    }

    fn may_not_delete(&self) -> String {
        format!(
            "the credentials may not delete: storage.objects.delete is not allowed on {} ({})",
            self.bucket,
            classify::ROLE
        )
    }

    fn refuses_current_version(&self) -> String {
        "the server refuses to replace the version that it shows: it does not keep to Google's XML API: run tenure probe"
            .to_owned()
    }
}

/// True for the number of a generation. Zero would turn the condition of a replace into that of a create.
fn is_generation(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse().is_ok_and(|number: u64| number > 0)
}

const HEADERS: HeaderNames = HeaderNames {
    request_id: "x-guploader-uploadid",
    locks: &["x-goog-object-lock-mode"],
    version: Some("x-goog-generation"),
    region: None,
    error_code: None,
    // A token says nothing about this machine's time.
    signed: None,
};
