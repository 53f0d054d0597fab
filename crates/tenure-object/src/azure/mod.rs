//! Leases in a container of Azure Blob Storage, and of servers with the same API.

mod builder;
mod classify;
mod connection_string;
mod credentials;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use object_store::UpdateVersion;
use object_store::azure::MicrosoftAzure;
use tenure_store::Version;

pub use builder::AzureBuilder;
use credentials::CredentialKind;

use crate::inner::{AnswerMeaning, CredentialsFlaw, Dialect, InnerStore, RequestKind, store_over_inner};
use crate::wire::{HeaderNames, ServerAnswer};

/// A store in a container. Clones are the same store.
///
/// It must be polled inside a tokio runtime that has io and time enabled. A call sends one request, whatever its result
/// (a listing: one for each page), and never repeats it.
#[derive(Clone)]
pub struct Azure(Arc<InnerStore<AzureDialect>>);

/// The dialect of Azure: a version is an ETag, which changes with every write.
struct AzureDialect {
    container: String,
    /// True if the endpoint is one of Microsoft's.
    is_public: bool,
    credentials: CredentialKind,
}

impl Azure {
    /// Returns a builder for the store in this container.
    pub fn builder(container: &str) -> AzureBuilder {
        AzureBuilder::new(container)
    }

    /// The provider of the container, by the address of the endpoint; `None` for a private server.
    pub fn offered_by(&self) -> Option<&'static str> {
        self.0.dialect().is_public.then_some("Azure Blob Storage")
    }
}

store_over_inner!(Azure);

impl Dialect for AzureDialect {
    type Client = MicrosoftAzure;

    const PROTOCOL: &'static str = "Azure Blob";

    /// Azure derives its ETags from the time of the write.
    const IMPOSSIBLE_VERSION: &'static str = "\"0x000000000000000\"";

    fn classify(&self, asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning {
        classify::classify(asked, answer)
    }

    fn credentials_flaw(&self, answer: &ServerAnswer) -> Option<CredentialsFlaw> {
        classify::credentials_flaw(answer)
    }

    fn advice(&self, asked: RequestKind, answer: &ServerAnswer) -> Option<String> {
        classify::advice(asked, answer, &self.container, self.credentials)
    }

    fn version(&self, etag: Option<String>, _: Option<String>) -> Option<Version> {
        etag.map(Version::new)
    }

    fn condition(&self, version: &Version) -> UpdateVersion {
        UpdateVersion { e_tag: Some(version.as_str().to_owned()), version: None }
    }

    fn retains_every_write(&self) -> String {
        classify::retains_every_write(&self.container)
    }

    /// The client deletes in a batch of one, and reports its failure only as text.
    fn is_denied(&self, error: &object_store::Error) -> bool {
        let words = error.to_string();
        ["status code: 401", "status code: 403", "(code: 401)", "(code: 403)"]
            .iter()
            .any(|part| words.contains(part))
    }

    fn may_not_delete(&self) -> String {
        format!(
            "the credentials may not delete: assign them the role Storage Blob Data Contributor on the container {:?}, \
             or add the permission d (delete) to the SAS token",
            self.container
        )
    }

    fn refuses_current_version(&self) -> String {
        "the server refuses to replace the version that it shows: run tenure probe".to_owned()
    }
}

const HEADERS: HeaderNames = HeaderNames {
    request_id: "x-ms-request-id",
    locks: &["x-ms-immutability-policy-until-date"],
    version: None,
    region: None,
    error_code: Some("x-ms-error-code"),
    signed: Some(("SharedKey", "date")),
};
