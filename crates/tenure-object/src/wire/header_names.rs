use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;

use super::server_answer::{header, parse_date};

/// Names of the headers that differ between the dialects.
#[derive(Debug)]
pub(crate) struct HeaderNames {
    /// Identifier of the request for questions to the provider.
    pub(crate) request_id: &'static str,
    /// One of them is present if the object is locked against removal for a period.
    pub(crate) locks: &'static [&'static str],
    /// The version of an object, if it is not the ETag.
    pub(crate) version: Option<&'static str>,
    /// The real region of the bucket.
    pub(crate) region: Option<&'static str>,
    /// The code of an error, if a header contains it too.
    pub(crate) error_code: Option<&'static str>,
    /// The scheme of a signature that depends on this machine's time, and the header with that time. A server that
    /// accepts such a signature has nearly the same time.
    pub(crate) signed: Option<(&'static str, &'static str)>,
}

impl HeaderNames {
    /// Time at which a request was signed, from its headers: this code has no clock.
    pub(crate) fn signed_at(&self, headers: &HeaderMap) -> Option<Timestamp> {
        let (scheme, name) = self.signed?;
        headers.get(AUTHORIZATION).filter(|value| value.as_bytes().starts_with(scheme.as_bytes()))?;
        let text = header(headers, name)?;
        match jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", &text) {
            Ok(at) => at.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|at| at.timestamp()),
            Err(_) => parse_date(&text),
        }
    }
}
