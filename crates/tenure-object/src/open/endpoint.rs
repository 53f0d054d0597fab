use std::fmt;
use std::net::IpAddr;

use super::OpenError;
use crate::wire::is_loopback;

/// Address of a server: `https://s3.example.org`, optionally with a port or a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    scheme: &'static str,
    authority: String,
    host: String,
    /// Empty, or begins with a slash and does not end with one.
    path: String,
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, OpenError> {
        let wrong = || {
            OpenError::invalid(
                "an endpoint is http:// or https://, a host, and a port or path where it has one: write it like \
                 endpoint=https://s3.example.org",
            )
        };
        let uri: http::Uri = text.parse().map_err(|_| wrong())?;
        // The client underneath parses the address like this, and is stricter about ports.
        reqwest::Url::parse(text).map_err(|_| wrong())?;
        let scheme = match uri.scheme_str() {
            Some("https") => "https",
            Some("http") => "http",
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err(OpenError::invalid(
                "an endpoint carries no name and no password: put credentials into the environment or a profile",
            ));
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(wrong());
        }
        Ok(Self {
            scheme,
            authority: authority.as_str().to_ascii_lowercase(),
            host: authority.host().trim_matches(['[', ']']).to_ascii_lowercase(),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Empty, or begins with a slash and does not end with one.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The same server, with this as the path.
    pub(crate) fn with_path(self, segment: &str) -> Self {
        Self { path: format!("/{segment}"), ..self }
    }

    /// True if the host is an address or `localhost`, so that nothing can be in front of it.
    pub(crate) fn has_no_name(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok()
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.scheme == "https"
    }

    /// True if requests to it stay on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// This endpoint without the bucket, if it names the bucket: in front of its host name, or at the end of its path.
    pub(crate) fn without_bucket(&self, bucket: &str) -> Option<Self> {
        let behind = |host: &str| Some(host.strip_prefix(bucket)?.strip_prefix('.')?.to_owned());
        let path = self.path.strip_suffix(bucket).and_then(|path| path.strip_suffix('/'));
        match (behind(&self.authority), behind(&self.host), path) {
            (Some(authority), Some(host), path) => {
                let path = path.unwrap_or(&self.path).to_owned();
                Some(Self { scheme: self.scheme, authority, host, path })
            }
            (_, _, Some(path)) => Some(Self { path: path.to_owned(), ..self.clone() }),
            _ => None,
        }
    }

    /// The address of a bucket that is part of the host name.
    pub(crate) fn of_bucket(&self, bucket: &str) -> Result<String, OpenError> {
        if self.host.parse::<IpAddr>().is_ok() {
            return Err(OpenError::invalid(
                "path-style=false puts the bucket in front of the endpoint's host, which must be a name then, not an \
                 address",
            ));
        }
        let Self { scheme, authority, path, .. } = self;
        Ok(format!("{scheme}://{bucket}.{authority}{path}"))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, authority, path, .. } = self;
        write!(f, "{scheme}://{authority}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_written_in_one_way() {
        for (text, canonical) in [
            ("http://127.0.0.1:9000/", "http://127.0.0.1:9000"),
            ("https://S3.Example.org", "https://s3.example.org"),
            ("https://x.org/storage/v1/s3/", "https://x.org/storage/v1/s3"),
            ("http://[::1]:9000", "http://[::1]:9000"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn an_invalid_endpoint_is_refused_and_its_password_not_repeated() {
        for wrong in ["", "127.0.0.1:9000", "ftp://x", "https://", "https://x?a=b", "https://x#y", "http:x"] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
        let error = Endpoint::parse("https://me:hush@x.org").unwrap_err().to_string();
        assert!(error.contains("no password") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn loopback_is_this_machine_and_nothing_else() {
        let is = |text| Endpoint::parse(text).unwrap().is_loopback();
        assert!(
            is("http://127.0.0.1:1")
                && is("http://127.9.9.9")
                && is("http://[::1]:1")
                && is("http://localhost")
        );
        assert!(
            !is("http://10.0.0.1")
                && !is("http://localhost.example.org")
                && !is("http://127.0.0.1.example.org")
        );
    }

    #[test]
    fn a_bucket_in_an_endpoint_is_found_and_taken_out() {
        let without = |text| Some(Endpoint::parse(text).unwrap().without_bucket("my.jobs")?.to_string());
        for (text, rest) in [
            ("http://my.jobs.s3.org:9000", "http://s3.org:9000"),
            ("https://My.Jobs.s3.org/v1", "https://s3.org/v1"),
            ("https://s3.org/v1/my.jobs/", "https://s3.org/v1"),
            ("https://my.jobs.s3.org/my.jobs", "https://s3.org"),
        ] {
            assert_eq!(without(text).as_deref(), Some(rest));
        }
        for text in [
            "http://my.jobs:9000",
            "http://my.jobs2.org",
            "https://s3.org/my.jobs/v1",
            "https://s3.org/xmy.jobs",
        ] {
            assert_eq!(without(text), None, "{text}");
        }
    }

    #[test]
    fn a_bucket_can_be_in_front_of_a_name_and_not_of_an_address() {
        let of = |text| Endpoint::parse(text).unwrap().of_bucket("b");
        assert_eq!(of("http://localhost:9000").unwrap(), "http://b.localhost:9000");
        assert!(of("http://127.0.0.1:9000").is_err());
    }
}
