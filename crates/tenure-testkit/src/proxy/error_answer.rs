//! Error answers of servers.

use super::message::HttpRequest;

/// An error answer: in the format of S3, which Google shares, or in the format of Azure if the request is one of Azure's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorAnswer {
    /// The status.
    pub status: u16,
    /// The code in the body; empty for an answer without a body.
    pub code: &'static str,
    /// The seconds of a `Retry-After` header.
    pub retry_after: Option<u32>,
}

impl ErrorAnswer {
    /// 409: another conditional write was in progress.
    pub const CONFLICT: Self = Self::new(409, "ConditionalRequestConflict");
    /// 429: too many requests, retry after a second.
    pub const TOO_MANY: Self = Self { retry_after: Some(1), ..Self::new(429, "TooManyRequests") };
    /// 500: internal error.
    pub const INTERNAL: Self = Self::new(500, "InternalError");
    /// 503 as throttling.
    pub const SLOW_DOWN: Self = Self::new(503, "SlowDown");
    /// 503 as an outage.
    pub const UNAVAILABLE: Self = Self::new(503, "ServiceUnavailable");

    /// 404 without a body, as a load balancer sends it.
    pub const EMPTY_NOT_FOUND: Self = Self::new(404, "");

    /// Any other error.
    pub const fn new(status: u16, code: &'static str) -> Self {
        Self { status, code, retry_after: None }
    }

    /// The answer to this request as bytes. The answer to a HEAD request has no body.
    pub(crate) fn bytes(&self, request: &HttpRequest) -> Vec<u8> {
        let Self { status, code, .. } = self;
        let body = if code.is_empty() {
            String::new()
        } else {
            format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>by the faulty proxy</Message></Error>"
            )
        };
        let mut answer = format!("HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\n");
        answer += &format!("Content-Length: {}\r\n", body.len());
        if let Some(seconds) = self.retry_after {
            answer += &format!("Retry-After: {seconds}\r\n");
        }
        // Azure's code is in a header, too. All its requests name a version.
        if request.header("x-ms-version").is_some() {
            answer += &format!("x-ms-error-code: {code}\r\n");
        }
        answer += "\r\n";
        if request.method != "HEAD" {
            answer += &body;
        }
        answer.into_bytes()
    }
}
