use std::time::Duration;

use http::header::{DATE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED, RETRY_AFTER};
use jiff::Timestamp;
use tenure_store::StoreTime;

use super::Proxy;

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
    /// This machine's clock when the request was signed.
    pub(crate) signed: Option<Timestamp>,
    /// True if the object is locked against removal for a period.
    pub(crate) locked: bool,
    /// Identifier of the request for questions to the provider.
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
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
    /// An error in S3's format.
    Error { code: String, message: String },
    /// The server requires TLS.
    WantsTls,
    /// Another text: the answer does not come from an S3 server.
    Foreign,
}

impl ServerAnswer {
    pub(crate) fn new(status: u16, headers: &HeaderMap, signed: Option<Timestamp>) -> Self {
        let date = header(headers, &DATE).and_then(|date| parse_date(&date));
        Self {
            status,
            date,
            modified: header(headers, &LAST_MODIFIED).and_then(|date| parse_date(&date)),
            etag: header(headers, &ETAG),
            signed,
            locked: headers.contains_key(LOCK_MODE),
            request_id: header(headers, &REQUEST_ID),
            retry_after: header(headers, &RETRY_AFTER).and_then(|after| parse_wait(&after, date)),
            region: header(headers, &BUCKET_REGION),
            proxy: None,
            text: AnswerText::Nothing,
        }
    }

    pub(crate) fn with_text(mut self, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(body);
        self.text = parse_text(&body);
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

    /// The store's time: never later than the server's clock was, because the header has whole seconds.
    pub(crate) fn time(&self) -> Option<StoreTime> {
        let micros = self.date?.as_microsecond();
        u64::try_from(micros).ok().map(StoreTime::from_micros)
    }

    /// Age of an object that was written at this time, by the server's clock alone; `None` if the result would be
    /// implausible. Both times are truncated to whole seconds, so the real age may be nearly a second less than their
    /// difference. The result never exceeds the real age.
    pub(crate) fn age_of(&self, modified: Option<Timestamp>) -> Option<Duration> {
        let plausible =
            |at: Timestamp| (YEAR_2020..YEAR_2200).contains(&at.as_second()).then(|| at.as_second());
        let age = plausible(self.date?)? - plausible(modified?)? - 1;
        u64::try_from(age).ok().map(Duration::from_secs)
    }

    /// Seconds by which this machine's clock is ahead of the server's.
    pub(crate) fn ahead(&self) -> Option<i64> {
        Some(self.signed?.as_second() - self.date?.as_second())
    }
}

/// Time at which a request was signed, from its headers: this code has no clock.
pub(crate) fn signed_at(headers: &HeaderMap) -> Option<Timestamp> {
    let text = header(headers, &AMZ_DATE)?;
    jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", text)
        .ok()?
        .to_zoned(jiff::tz::TimeZone::UTC)
        .ok()
        .map(|at| at.timestamp())
}

fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    Some(plain(headers.get(name)?.to_str().ok()?, LINE_MAX))
}

fn parse_date(text: &str) -> Option<Timestamp> {
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
        Some(code) => AnswerText::Error { code, message: element(body, "Message").unwrap_or_default() },
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

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");
const LOCK_MODE: HeaderName = HeaderName::from_static("x-amz-object-lock-mode");
const BUCKET_REGION: HeaderName = HeaderName::from_static("x-amz-bucket-region");
const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");

/// Answers of servers written in Go, nginx and Apache to an unencrypted request.
const WANTS_TLS: [&str; 3] = [
    "HTTP request to an HTTPS server",
    "plain HTTP request was sent to HTTPS port",
    "speaking plain HTTP to an SSL-enabled server port",
];

/// A clock outside this range was never set.
const YEAR_2020: i64 = 1_577_836_800;
const YEAR_2200: i64 = 7_258_118_400;

/// Maximum length of a line in a message.
const LINE_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&'static str, &'static str)]) -> ServerAnswer {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        ServerAnswer::new(503, &headers, None)
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
        let at = |text: &str| parse_date(text);
        let age = |date: &'static str, modified| answer(&[("date", date)]).age_of(at(modified));
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
        let signed = HeaderMap::from_iter([(AMZ_DATE, "20261115T130000Z".parse().unwrap())]);
        let date = HeaderMap::from_iter([(DATE, "Sun, 15 Nov 2026 12:00:00 GMT".parse().unwrap())]);
        assert_eq!(ServerAnswer::new(403, &date, signed_at(&signed)).ahead(), Some(3600));
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
