use std::time::Duration;

use http::{HeaderName, HeaderValue};

/// What is known of those who offer S3, by the address at which they do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Provider {
    /// What it is called; empty for a server of somebody's own.
    pub(super) name: &'static str,
    /// What the host of the endpoint ends with.
    host: &'static str,
    /// The shortest interval at which one object may be written.
    pub(super) write_interval: Duration,
    /// What every request has to say besides.
    header: Option<(&'static str, &'static str)>,
    /// Why leases cannot be kept there, whatever it answers.
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

/// No limit is published for one object. Fifteen conditional writes in a second were measured, each waiting for the one
/// before; a tenth of a second leaves room.
const AWS: Provider = Provider {
    name: "AWS S3",
    host: "amazonaws.com",
    write_interval: Duration::from_millis(100),
    header: None,
    refused: None,
};

const KNOWN: &[Provider] = &[
    AWS,
    // One write of an object in a second is the published limit; more is answered with 429.
    Provider {
        name: "Cloudflare R2",
        host: "r2.cloudflarestorage.com",
        write_interval: Duration::from_millis(1100),
        ..AWS
    },
    // Asks the nearest copy unless told otherwise.
    Provider { name: "Tigris", host: "tigris.dev", header: TIGRIS, ..AWS },
    Provider { name: "Tigris", host: "t3.storage.dev", header: TIGRIS, ..AWS },
    // Takes the conditions and ignores them.
    Provider {
        name: "Google",
        host: "storage.googleapis.com",
        refused: Some(
            "Google's S3 interface ignores the conditions of writes, so two contenders could be granted the same lease",
        ),
        ..AWS
    },
];

/// A server of somebody's own: like AWS, for want of knowledge.
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
