use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::providers::{AWS, PROVIDERS};

/// Known facts about a provider or a server of S3. A provider is found by the address of its endpoint.
///
/// `docs/stores/s3.md` shows the facts as a table, which a test makes from them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Provider {
    /// Name of the provider or the server; empty for an unknown server.
    pub(super) name: &'static str,
    /// Suffixes of the host of the endpoint; none for a server that people run themselves.
    pub(super) hosts: &'static [&'static str],
    /// Form of the endpoint.
    pub(super) endpoint: &'static str,
    /// Expected result of `tenure probe`.
    pub(super) probe: &'static str,
    /// Limits that a lease meets.
    pub(super) limits: &'static str,
    /// Source of these facts, and its date.
    pub(super) source: &'static str,
    pub(super) date: &'static str,
    /// Shortest interval between two writes of one object.
    pub(super) write_interval: Duration,
    /// Additional header of every request.
    pub(super) header: Option<(&'static str, &'static str)>,
    /// Reason why the provider cannot store leases, whatever it answers, and the next step. `BUCKET` stands for the
    /// bucket.
    pub(super) refused: Option<&'static str>,
}

impl Provider {
    /// The provider at this host; `None` is AWS itself.
    pub(super) fn at(host: Option<&str>) -> &'static Self {
        let Some(host) = host else { return &AWS };
        let ends_with =
            |end: &&str| host == *end || host.strip_suffix(*end).is_some_and(|rest| rest.ends_with('.'));
        let known = PROVIDERS.iter().find(|provider| provider.hosts.iter().any(ends_with));
        known.unwrap_or(&UNKNOWN)
    }

    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.header.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
    }
}

/// A server without an entry: treated like AWS, because nothing is known about it.
const UNKNOWN: Provider = Provider { name: "", hosts: &[], ..AWS };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_known_by_the_end_of_its_host() {
        let name = |host| Provider::at(Some(host)).name;
        assert_eq!(name("abc.eu.r2.cloudflarestorage.com"), "Cloudflare R2");
        assert_eq!(name("notr2.cloudflarestorage.com.example.org"), "");
        assert_eq!(name("evilr2.cloudflarestorage.com"), "", "by whole labels");
        assert_eq!(name("s3.eu-central-003.backblazeb2.com"), "Backblaze B2");
        assert_eq!(name("fra1.digitaloceanspaces.com"), "DigitalOcean Spaces");
        assert!(Provider::at(Some("fly.storage.tigris.dev")).header.is_some());
        assert!(Provider::at(Some("t3.storage.dev")).header.is_some());
        assert!(Provider::at(Some("storage.googleapis.com")).refused.is_some());
        assert_eq!(Provider::at(None), &AWS);
        assert_eq!(Provider::at(Some("127.0.0.1")), &UNKNOWN);
    }

    #[test]
    fn a_provider_with_one_write_per_second_has_a_longer_interval() {
        let interval = |host| Provider::at(Some(host)).write_interval.as_millis();
        assert_eq!(interval("abc.r2.cloudflarestorage.com"), 1100);
        assert_eq!(interval("minio.example.org"), 100);
    }
}
