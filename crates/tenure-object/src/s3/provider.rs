use std::time::Duration;

use http::{HeaderName, HeaderValue};

/// Known facts about an S3 provider, found by the address of its endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Provider {
    /// Name of the provider; empty for a private server.
    pub(super) name: &'static str,
    /// Suffix of the host of the endpoint.
    host: &'static str,
    /// Shortest interval between two writes of one object.
    pub(super) write_interval: Duration,
    /// Additional header of every request.
    header: Option<(&'static str, &'static str)>,
    /// Reason why the provider cannot store leases, whatever it answers.
    pub(super) refused: Option<&'static str>,
}

impl Provider {
    /// The provider at this host; `None` is AWS itself.
    pub(super) fn at(host: Option<&str>) -> &'static Self {
        let Some(host) = host else { return &AWS };
        let ends_with =
            |end: &str| host == end || host.strip_suffix(end).is_some_and(|rest| rest.ends_with('.'));
        KNOWN.iter().find(|provider| ends_with(provider.host)).unwrap_or(&OTHER)
    }

    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.header.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
    }
}

/// No limit is published for one object. Fifteen sequential conditional writes per second were measured; a tenth of a
/// second leaves a margin.
const AWS: Provider = Provider {
    name: "AWS S3",
    host: "amazonaws.com",
    write_interval: Duration::from_millis(100),
    header: None,
    refused: None,
};

const KNOWN: &[Provider] = &[
    AWS,
    // The published limit is one write per second and object; the server answers more with 429.
    Provider {
        name: "Cloudflare R2",
        host: "r2.cloudflarestorage.com",
        write_interval: Duration::from_millis(1100),
        ..AWS
    },
    // By default it reads from the nearest copy.
    Provider { name: "Tigris", host: "tigris.dev", header: TIGRIS, ..AWS },
    Provider { name: "Tigris", host: "t3.storage.dev", header: TIGRIS, ..AWS },
    // Accepts the conditions and ignores them.
    Provider {
        name: "Google",
        host: "storage.googleapis.com",
        refused: Some(
            "Google's S3 interface ignores the conditions of writes, so two contenders could be granted the same lease",
        ),
        ..AWS
    },
];

/// A private server: treated like AWS, because nothing is known about it.
const OTHER: Provider = Provider { name: "", host: "", ..AWS };

const TIGRIS: Option<(&str, &str)> = Some(("x-tigris-consistent", "true"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_known_by_the_end_of_its_host() {
        let interval = |host| Provider::at(Some(host)).write_interval.as_millis();
        assert_eq!(interval("abc.eu.r2.cloudflarestorage.com"), 1100);
        assert_eq!(interval("notr2.cloudflarestorage.com.example.org"), 100);
        assert_eq!(interval("evilr2.cloudflarestorage.com"), 100, "by whole labels");
        assert_eq!(Provider::at(Some("fly.storage.tigris.dev")).header, TIGRIS);
        assert_eq!(Provider::at(Some("t3.storage.dev")).header, TIGRIS);
        assert!(Provider::at(Some("storage.googleapis.com")).refused.is_some());
        assert_eq!(Provider::at(None), &AWS);
        assert_eq!(Provider::at(Some("127.0.0.1")), &OTHER);
    }
}
