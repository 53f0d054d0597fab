use std::time::Duration;

use http::header::{DATE, HeaderMap};
use jiff::Timestamp;
use serde_json::Value;
use tenure_store::Reason;

/// The last answer of a credentials service, as it was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct FetchAnswer {
    status: u16,
    /// Name of the error, such as `AccessDenied`; empty if it has none.
    code: String,
    message: String,
    /// Time from the answer until its credentials expire, by the clock of the service alone; `None` if it does not say.
    pub(crate) lifetime: Option<Duration>,
}

impl FetchAnswer {
    pub(crate) fn new(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let fields = Fields::parse(&text);
        let date = headers.get(DATE).and_then(|date| jiff::fmt::rfc2822::parse(date.to_str().ok()?).ok());
        let lifetime = || {
            if let Some(seconds) = fields.get(&["expires_in"]) {
                return Some(Duration::from_secs(seconds.parse().ok()?));
            }
            // Both times are of one clock. That of this machine may be wrong.
            let expiration: Timestamp = fields.get(&["Expiration", "expireTime"])?.parse().ok()?;
            let left = expiration.as_second() - date?.timestamp().as_second();
            Some(Duration::from_secs(left.try_into().unwrap_or_default()))
        };
        Self {
            status,
            code: fields.get(&["Code", "code", "error"]).unwrap_or_default(),
            message: fields.get(&["Message", "message", "error_description"]).unwrap_or_default(),
            lifetime: lifetime().map(|lifetime| lifetime.min(LIFETIME_MAX)),
        }
    }

    /// True if the service answered, and not with credentials.
    pub(crate) fn is_refusal(&self) -> bool {
        !(200..300).contains(&self.status)
    }

    /// A service that refuses in so many words refuses the next request too. Everything else may pass.
    pub(crate) fn reason(&self) -> Reason {
        let passing = PASSING.contains(&self.code.as_str()) || self.code.contains("Throttl");
        match self.status {
            400 | 401 | 403 if !passing => Reason::Denied,
            _ => Reason::Unreachable,
        }
    }

    /// The answer as the end of a sentence.
    pub(crate) fn words(&self) -> String {
        let Self { status, code, message, .. } = self;
        let message = message.trim_end_matches('.');
        match (code.is_empty(), message.is_empty()) {
            (true, true) => format!("it answered {status}"),
            (true, false) => format!("it answered {status}: {message}"),
            (false, true) => format!("it answered {status} {code}"),
            (false, false) => format!("it answered {status} {code}: {message}"),
        }
    }
}

/// Longer lifetimes are as good as none, and some would not fit into a calculation.
const LIFETIME_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Errors that services send with a status of a refusal, although the next request may succeed.
const PASSING: &[&str] = &["IDPCommunicationError", "SlowDown", "temporarily_unavailable", "RequestExpired"];

/// The fields of an answer in JSON or XML.
enum Fields<'a> {
    Json(Value),
    Xml(&'a str),
}

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Self {
        serde_json::from_str(text).map_or(Self::Xml(text), Self::Json)
    }

    /// The first of these fields that is there.
    fn get(&self, names: &[&str]) -> Option<String> {
        let found = |name: &&str| match self {
            Self::Json(object) => match object.get(name)? {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            },
            Self::Xml(text) => {
                let (_, rest) = text.split_once(&format!("<{name}>"))?;
                Some(rest.split_once("</")?.0.to_owned())
            }
        };
        let text = names.iter().find_map(found)?;
        // One line of bounded length: a server may send any text.
        let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        Some(line.take(LINE_MAX).collect::<String>().trim().to_owned())
    }
}

/// Maximum length of a line in a message.
const LINE_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> FetchAnswer {
        let date = "Sun, 15 Nov 2026 12:00:00 GMT".parse().unwrap();
        FetchAnswer::new(status, &HeaderMap::from_iter([(DATE, date)]), body.as_bytes())
    }

    #[test]
    fn the_lifetime_is_by_the_clock_of_the_service() {
        let seconds = |body| answer(200, body).lifetime.map(|lifetime| lifetime.as_secs());
        assert_eq!(seconds(r#"{"Expiration":"2026-11-15T13:00:00Z"}"#), Some(3600));
        assert_eq!(seconds("<R><Expiration>2026-11-15T12:30:00Z</Expiration></R>"), Some(1800));
        assert_eq!(seconds(r#"{"access_token":"hush","expires_in":3599}"#), Some(3599));
        assert_eq!(seconds(r#"{"access_token":"hush","expires_in":"3599"}"#), Some(3599));
        assert_eq!(seconds(r#"{"Expiration":"2026-11-15T11:00:00Z"}"#), Some(0), "already expired");
        assert_eq!(seconds(r#"{"Expiration":"soon"}"#), None);
        assert!(seconds(r#"{"expires_in":18446744073709551615}"#).is_some_and(|seconds| seconds < 1 << 32));
        assert_eq!(seconds("my-role"), None);
        let undated = FetchAnswer::new(200, &HeaderMap::new(), br#"{"Expiration":"2026-11-15T13:00:00Z"}"#);
        assert_eq!(undated.lifetime, None);
    }

    #[test]
    fn a_refusal_in_words_is_denied_and_everything_else_may_pass() {
        let reason = |status, body| answer(status, body).reason();
        assert_eq!(reason(403, "<Error><Code>AccessDenied</Code></Error>"), Reason::Denied);
        assert_eq!(reason(400, "<Error><Code>InvalidIdentityToken</Code></Error>"), Reason::Denied);
        assert_eq!(reason(401, r#"{"error":"invalid_client"}"#), Reason::Denied);
        assert_eq!(reason(400, "<Error><Code>IDPCommunicationError</Code></Error>"), Reason::Unreachable);
        assert_eq!(reason(400, "<Error><Code>ThrottlingException</Code></Error>"), Reason::Unreachable);
        for status in [404, 408, 429, 500, 503] {
            assert_eq!(reason(status, ""), Reason::Unreachable, "{status}");
        }
    }

    #[test]
    fn the_answer_is_repeated_in_one_line() {
        let words = |status, body| answer(status, body).words();
        let error = "<E><Error><Code>AccessDenied</Code><Message>Not\nyou.</Message></Error></E>";
        assert_eq!(words(403, error), "it answered 403 AccessDenied: Not you");
        assert_eq!(words(400, r#"{"code":"X","message":"no"}"#), "it answered 400 X: no");
        assert_eq!(words(500, "<html>"), "it answered 500");
    }
}
