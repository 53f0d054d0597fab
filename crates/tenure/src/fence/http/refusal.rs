use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use super::{HIGHEST, header_value};
use crate::fence::message::TokenHeaderError;
use crate::fence::{Enter, FenceError, FencingToken};

/// The answer to a request that does not reach the handler.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    status: StatusCode,
    highest: Option<HeaderValue>,
    line: String,
}

impl HttpRefusal {
    /// The request has no usable token.
    pub(super) fn of_header(error: &TokenHeaderError) -> Self {
        let status = match error {
            TokenHeaderError::Missing => StatusCode::PRECONDITION_REQUIRED,
            _ => StatusCode::BAD_REQUEST,
        };
        Self { status, highest: None, line: error.to_string() }
    }

    /// The gate did not admit the token.
    pub(super) fn of_gate(gate: &impl Enter, token: &FencingToken, error: &FenceError) -> Self {
        if let FenceError::Stale { highest, .. } = error {
            let highest = FencingToken::new(token.name().clone(), *highest).ok();
            let highest = highest.as_ref().map(header_value);
            return Self { status: StatusCode::CONFLICT, highest, line: error.to_string() };
        }
        if token.name() != gate.lease()
            || matches!(error, FenceError::OtherLease { .. } | FenceError::NotGranted { .. })
        {
            return Self { status: StatusCode::CONFLICT, highest: None, line: error.to_string() };
        }
        // The words of the store may name what clients must not see.
        tracing::warn!(%token, %error, "a request was answered with 503: its token cannot be made durable");
        let line = format!("token {token} cannot be made durable now, and nothing was written: try again");
        Self { status: StatusCode::SERVICE_UNAVAILABLE, highest: None, line }
    }

    pub(super) fn into_response<B: From<String>>(self) -> Response<B> {
        // One line, whatever an error contains.
        let line: String = self.line.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
        let mut response = Response::new(B::from(line + "\n"));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if let Some(highest) = self.highest {
            headers.insert(HIGHEST, highest);
        }
        response
    }
}
