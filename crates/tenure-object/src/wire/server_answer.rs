use std::time::Duration;

use http::header::{AGE, AsHeaderName, DATE, ETAG, HeaderMap, LAST_MODIFIED, RETRY_AFTER};
use jiff::Timestamp;
use tenure_store::StoreTime;

use super::{HeaderNames, Proxy};

/// The answer to a request, as the server sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerAnswer {
    pub(crate) status: u16,
    /// The server's clock, in whole seconds.
    pub(crate) date: Option<Timestamp>,
    /// Time of the object's last write, by the server's clock, in whole seconds.
    pub(crate) modified: Option<Timestamp>,
    /// The version that the answer refers to.
    pub(crate) etag: Option<String>,
    /// The same version in a header of its own: equal bytes may have equal ETags.
    pub(crate) generation: Option<String>,
    /// This machine's clock when the request was signed.
    pub(crate) signed: Option<Timestamp>,
    /// Seconds by which `date` is ahead of the time that earlier answers showed, if it is not believed for that reason.
    pub(crate) drift: Option<i64>,
    /// True if the object is locked against removal for a period.
    pub(crate) locked: bool,
    /// Identifier of the request for questions to the provider.
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    /// Age of the answer, if it comes from a cache.
    pub(crate) cached_for: Option<Duration>,
    /// The real region of the bucket, if it is another one.
    pub(crate) region: Option<String>,
    /// The proxy that the answer came through.
    pub(crate) proxy: Option<Proxy>,
    pub(crate) text: AnswerText,
}

/// The body of an answer. The body of a success is the value, which is not parsed here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnswerText {
    /// No body, or one that was cut off.
    #[default]
    Nothing,
    /// An error in the format of the store.
    Error { code: String, message: String },
    /// The server requires TLS.
    WantsTls,
    /// Another text: the answer does not come from the store.
    Foreign,
}

impl ServerAnswer {
    pub(crate) fn new(status: u16, headers: &HeaderMap, names: &HeaderNames) -> Self {
        let date = header(headers, DATE).and_then(|date| parse_date(&date));
        let age = header(headers, AGE).and_then(|age| age.parse().ok()).map(Duration::from_secs);
        let code = names.error_code.and_then(|name| header(headers, name));
        Self {
            status,
            date,
            modified: header(headers, LAST_MODIFIED).and_then(|date| parse_date(&date)),
            etag: header(headers, ETAG),
            generation: names.version.and_then(|name| header(headers, name)),
            signed: None,
            drift: None,
            locked: names.locks.iter().any(|name| headers.contains_key(*name)),
            request_id: header(headers, names.request_id),
            retry_after: header(headers, RETRY_AFTER).and_then(|after| parse_wait(&after, date)),
            cached_for: age.filter(|age| !age.is_zero()),
            region: names.region.and_then(|name| header(headers, name)),
            proxy: None,
            text: code.map_or(AnswerText::Nothing, |code| AnswerText::Error { code, message: String::new() }),
        }
    }

    pub(crate) fn with_text(mut self, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(body);
        let text = parse_text(&body);
        // A code in a header needs no body.
        if !matches!(
            (&self.text, &text),
            (AnswerText::Error { .. }, AnswerText::Nothing | AnswerText::Foreign)
        ) {
            self.text = text;
        }
        self.region = self.region.or_else(|| element(&body, "Region")).filter(|region| !region.is_empty());
        self
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn code(&self) -> &str {
        match &self.text {
            AnswerText::Error { code, .. } => code,
            AnswerText::Nothing | AnswerText::WantsTls | AnswerText::Foreign => "",
        }
    }

    /// True if the code of the error is one of these.
    pub(crate) fn is_one_of(&self, codes: &[&str]) -> bool {
        codes.contains(&self.code())
    }

    /// True if the server asks for fewer requests: by its status, by one of these codes of the dialect, or by a code that
    /// names throttling.
    pub(crate) fn is_throttling(&self, codes: &[&str]) -> bool {
        self.status == 429
            || self.status == 503 && self.retry_after.is_some()
            || self.is_one_of(codes)
            || self.code().contains("Throttl")
    }

    /// True if a cache on the way answered, and not the store.
    pub(crate) fn is_from_a_cache(&self) -> bool {
        self.cached_for.is_some()
    }

    /// The store's time, if it can be believed. It is never later than the server's clock was, because the header has
    /// whole seconds.
    pub(crate) fn time(&self) -> Option<StoreTime> {
        let date = self.date.filter(|_| self.doubt().is_none())?;
        u64::try_from(date.as_microsecond()).ok().map(StoreTime::from_micros)
    }

    /// The reason not to believe the `Date` of this answer. A token that is made from a time in the far future stays
    /// above every later one, until that time has come.
    pub(crate) fn doubt(&self) -> Option<String> {
        let Some(date) = self.date else {
            return Some(
                "its answer has no Date that can be read, and tokens need the time of the store: make the server, or \
                 the proxy in front of it, send one"
                    .to_owned(),
            );
        };
        if !is_plausible(date) {
            return Some(format!(
                "its answer is dated {date}, so its clock was never set: set the server's clock"
            ));
        }
        // A server that checks signatures refuses requests whose time is so far off from its own.
        match (self.ahead(), self.signed) {
            (Some(ahead), Some(signed)) if ahead.abs() > SKEW_MAX => Some(format!(
                "its answer is dated {date}, but it accepted a request that was signed at {signed}: the clocks of the \
                 server's front ends differ, so its time cannot be believed: set the server's clock"
            )),
            _ => self.drift.map(|drift| {
                format!(
                    "its answer is dated {date}, {} min {} the time that its earlier answers showed, and is not \
                     believed until a second answer agrees: set the server's clock",
                    drift.abs() / 60,
                    if drift < 0 { "before" } else { "after" }
                )
            }),
        }
    }

    /// The `Date` of an answer that shows the store's state, if no signature ties it to this machine's clock.
    pub(super) fn untied_date(&self) -> Option<Timestamp> {
        let shows_state = self.is_success() || matches!(self.status, 304 | 404);
        self.date.filter(|date| shows_state && self.signed.is_none() && is_plausible(*date))
    }

    /// Age of the object, by the server's clock alone; `None` if the result would be implausible. Both times are
    /// truncated to whole seconds, so the real age may be nearly a second less than their difference. The result never
    /// exceeds the real age.
    ///
    /// Both times are of this answer: an object that was written again with equal bytes has the same ETag, and the time
    /// of its earlier write would make it too old.
    pub(crate) fn age(&self) -> Option<Duration> {
        let plausible = |at: Option<Timestamp>| at.filter(|at| is_plausible(*at)).map(Timestamp::as_second);
        let age = plausible(self.date)? - plausible(self.modified)? - 1;
        u64::try_from(age).ok().map(Duration::from_secs)
    }

    /// Seconds by which this machine's clock is ahead of the server's.
    pub(crate) fn ahead(&self) -> Option<i64> {
        Some(self.signed?.as_second() - self.date?.as_second())
    }
}

fn is_plausible(at: Timestamp) -> bool {
    (YEAR_2020..YEAR_2200).contains(&at.as_second())
}

pub(super) fn header(headers: &HeaderMap, name: impl AsHeaderName) -> Option<String> {
    Some(plain(headers.get(name)?.to_str().ok()?, LINE_MAX))
}

pub(super) fn parse_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|at| at.timestamp())
}

/// Parses seconds, or a time of the server's own clock.
fn parse_wait(text: &str, now: Option<Timestamp>) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let seconds = parse_date(text)?.as_second() - now?.as_second();
    Some(Duration::from_secs(seconds.try_into().unwrap_or_default()))
}

/// Errors are flat XML; only a few of the elements are used.
fn parse_text(body: &str) -> AnswerText {
    match element(body, "Code") {
        Some(code) => {
            let message = element(body, "Message").unwrap_or_default();
            // Azure appends the request and the time, which other fields of an answer contain.
            let message = message.split("RequestId:").next().unwrap_or_default().trim_end().to_owned();
            AnswerText::Error { code, message }
        }
        None if body.trim().is_empty() => AnswerText::Nothing,
        None if WANTS_TLS.iter().any(|sentence| body.contains(sentence)) => AnswerText::WantsTls,
        None => AnswerText::Foreign,
    }
}

fn element(body: &str, name: &str) -> Option<String> {
    let (_, rest) = body.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(plain(&unescape(text), LINE_MAX))
}

fn unescape(text: &str) -> String {
    let pairs =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&apos;", "'")];
    let text = pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.replace("&amp;", "&")
}

/// One line of bounded length: a server may send any text.
fn plain(text: &str, max: usize) -> String {
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(max).collect::<String>().trim().to_owned()
}

/// Answers of servers written in Go, nginx and Apache to an unencrypted request.
const WANTS_TLS: [&str; 3] = [
    "HTTP request to an HTTPS server",
    "plain HTTP request was sent to HTTPS port",
    "speaking plain HTTP to an SSL-enabled server port",
];

/// Largest difference between the clocks of a client and of a server that accepts its signature, in seconds.
pub(super) const SKEW_MAX: i64 = 15 * 60;

/// A clock outside this range was never set.
const YEAR_2020: i64 = 1_577_836_800;
const YEAR_2200: i64 = 7_258_118_400;

/// Maximum length of a line in a message.
const LINE_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: HeaderNames = HeaderNames {
        request_id: "x-amz-request-id",
        locks: &[],
        version: None,
        region: None,
        error_code: Some("x-error-code"),
        signed: Some(("Scheme", "x-date")),
    };

    #[test]
    fn a_code_in_a_header_counts_without_a_body() {
        let answer = answer(&[("x-error-code", "BlobNotFound")]);
        assert_eq!(answer.clone().with_text(b"").code(), "BlobNotFound");
        assert_eq!(answer.with_text(b"<Error><Code>Other</Code></Error>").code(), "Other");
    }

    fn answer(headers: &[(&'static str, &'static str)]) -> ServerAnswer {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        ServerAnswer::new(503, &headers, &NAMES)
    }

    #[test]
    fn the_date_is_the_stores_time_in_whole_seconds() {
        let answer = answer(&[("date", "Sun, 15 Nov 2026 12:16:36 GMT"), ("x-amz-request-id", "17A")]);
        assert_eq!(answer.time(), Some(StoreTime::from_micros(1_794_744_996_000_000)));
        assert_eq!(answer.request_id.as_deref(), Some("17A"));
    }

    #[test]
    fn a_missing_or_broken_date_is_no_time() {
        for headers in [&[][..], &[("date", "yesterday")], &[("date", "Wed, 31 Dec 1969 23:59:59 GMT")]] {
            assert_eq!(answer(headers).time(), None, "{headers:?}");
        }
    }

    #[test]
    fn an_age_is_never_overstated_and_nonsense_is_none() {
        let age = |date, modified| answer(&[("date", date), ("last-modified", modified)]).age();
        let now = "Sun, 15 Nov 2026 12:16:36 GMT";
        assert_eq!(age(now, "Sun, 15 Nov 2026 12:16:26 GMT"), Some(Duration::from_secs(9)));
        assert_eq!(age(now, "Sun, 15 Nov 2026 12:16:35 GMT"), Some(Duration::ZERO));
        assert_eq!(age(now, now), None, "it may be just written");
        assert_eq!(age(now, "Sun, 15 Nov 2026 12:16:40 GMT"), None, "two clocks, or one that was set");
        assert_eq!(age(now, "Thu, 01 Jan 1970 00:00:00 GMT"), None, "a clock that was never set");
        assert_eq!(age("Thu, 01 Jan 2201 00:00:00 GMT", now), None);
        assert_eq!((age("yesterday", now), age(now, "yesterday")), (None, None));
    }

    #[test]
    fn a_wait_is_in_seconds_or_by_the_servers_own_clock() {
        let date = ("date", "Sun, 15 Nov 2026 12:16:36 GMT");
        assert_eq!(answer(&[("retry-after", "7")]).retry_after, Some(Duration::from_secs(7)));
        let until = ("retry-after", "Sun, 15 Nov 2026 12:16:40 GMT");
        assert_eq!(answer(&[date, until]).retry_after, Some(Duration::from_secs(4)));
        let past = ("retry-after", "Sun, 15 Nov 2026 12:16:30 GMT");
        assert_eq!(answer(&[date, past]).retry_after, Some(Duration::ZERO));
        assert_eq!(answer(&[until]).retry_after, None, "without the server's clock it says nothing");
    }

    #[test]
    fn the_difference_of_the_clocks_is_that_of_two_lines_of_the_same_exchange() {
        let request = |signature: &str| {
            HeaderMap::from_iter([
                (http::header::AUTHORIZATION, signature.parse().unwrap()),
                ("x-date".parse().unwrap(), "20261115T130000Z".parse().unwrap()),
            ])
        };
        let mut answer = answer(&[("date", "Sun, 15 Nov 2026 12:00:00 GMT")]);
        answer.signed = NAMES.signed_at(&request("Scheme abc"));
        assert_eq!(answer.ahead(), Some(3600));
        assert_eq!(NAMES.signed_at(&request("Bearer abc")), None, "no time is part of this signature");
    }

    #[test]
    fn an_error_is_parsed_from_xml_and_anything_else_is_foreign() {
        let text = |body: &str| ServerAnswer::default().with_text(body.as_bytes()).text;
        let error = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code><Message>The &quot;key&quot;\nis\x1b gone\
                     </Message><Key>a</Key></Error>";
        let expected = AnswerText::Error { code: "NoSuchKey".into(), message: "The \"key\" is  gone".into() };
        assert_eq!(text(error), expected);
        assert_eq!(text("  "), AnswerText::Nothing);
        assert_eq!(text("<html>404</html>"), AnswerText::Foreign);
        assert_eq!(text("Client sent an HTTP request to an HTTPS server.\n"), AnswerText::WantsTls);
        assert_eq!(
            text("<Error><Code>Slow"),
            AnswerText::Foreign,
            "a cut is noticed by its length, not here"
        );
    }
}
