use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::HeaderValue;
use http::header::AUTHORIZATION;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};

use super::FetchError;
use super::fetch_answer::FetchAnswer;
use super::text::fits_header;
use crate::wire::Connector;

/// Changes to the requests for credentials, and requirements on their answers, where the client library copies text
/// without a check.
#[derive(Clone, Debug, Default)]
pub(crate) struct FetchRules {
    /// Header that replaces the client's.
    pub(crate) authorization: Option<HeaderValue>,
    /// True if the query ends with a token from a file. The client also sends the line break at the end of the file,
    /// and the service would refuse it.
    pub(crate) query_ends_with_token: bool,
    /// The same, in the middle of a form.
    pub(crate) form_contains_token: bool,
    /// Ends of the paths whose answers the client copies into the next request. It panics if they do not fit there.
    pub(crate) copied: &'static [&'static str],
}

/// Creates the clients that fetch credentials once, and records the last answer or error.
#[derive(Clone, Debug)]
pub(crate) struct FetchConnector {
    connector: Connector,
    rules: FetchRules,
    seen: Arc<Mutex<FetchState>>,
}

/// State of a fetch.
#[derive(Clone, Debug, Default)]
enum FetchState {
    /// No request was sent.
    #[default]
    NotSent,
    /// The service at this address sent no answer, or one that cannot be used.
    Failed(String, String),
    /// The service at this address answered.
    Answered(String, FetchAnswer),
}

impl FetchConnector {
    pub(crate) fn new(connector: Connector, rules: FetchRules) -> Self {
        Self { connector, rules, seen: Arc::default() }
    }

    /// Lifetime of the credentials in the last answer.
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        match self.seen() {
            FetchState::Answered(_, answer) => answer.lifetime,
            FetchState::NotSent | FetchState::Failed(..) => None,
        }
    }

    /// The error of a fetch that the client reports as failed. Its own report is used only if it sent nothing: it may
    /// repeat a complete answer.
    pub(crate) fn error(&self, error: &object_store::Error) -> FetchError {
        match self.seen() {
            FetchState::NotSent => FetchError::denied(error.to_string()),
            FetchState::Failed(host, words) => FetchError::unreachable(of_service(&host, &words)),
            FetchState::Answered(host, answer) if answer.is_refusal() => {
                FetchError::new(answer.reason(), of_service(&host, &answer.words()))
            }
            // The metadata address at AWS reports a problem with a role like this.
            FetchState::Answered(_, answer) => {
                self.unusable(&format!("its answer contains no credentials ({})", answer.words()))
            }
        }
    }

    /// The error of a fetch whose last answer is a success that cannot be used.
    pub(crate) fn unusable(&self, words: &str) -> FetchError {
        match self.seen() {
            FetchState::Answered(host, _) | FetchState::Failed(host, _) => {
                FetchError::unreachable(of_service(&host, words))
            }
            FetchState::NotSent => FetchError::unreachable(words),
        }
    }

    fn seen(&self) -> FetchState {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, seen: FetchState) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// Applies the rules to a request.
    fn prepare(&self, request: &mut HttpRequest) {
        if let Some(value) = &self.rules.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        if self.rules.query_ends_with_token {
            let uri = request.uri().to_string();
            let trimmed = ["%0A", "%0D"].iter().fold(uri.as_str(), |uri, end| uri.trim_end_matches(end));
            if let Ok(uri) = trimmed.parse() {
                *request.uri_mut() = uri;
            }
        }
        if self.rules.form_contains_token
            && let Some(form) = request.body().as_bytes().and_then(|form| str::from_utf8(form).ok())
        {
            let trimmed = form.replace("%0D%0A&", "&").replace("%0A&", "&");
            *request.body_mut() = trimmed.into();
        }
    }
}

impl HttpConnector for FetchConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.connector.connect(options)?;
        Ok(HttpClient::new(FetchHook { client, connector: self.clone() }))
    }
}

#[derive(Debug)]
struct FetchHook {
    client: HttpClient,
    connector: FetchConnector,
}

impl FetchHook {
    async fn exchange(&self, request: HttpRequest) -> Result<(HttpResponse, FetchAnswer), HttpError> {
        let copied = self.connector.rules.copied.iter().any(|end| request.uri().path().ends_with(end));
        let (parts, body) = self.client.execute(request).await?.into_parts();
        let mut body = bounded(body).await?;
        let answer = FetchAnswer::new(parts.status.as_u16(), &parts.headers, &body);
        if copied && !answer.is_refusal() {
            let text = str::from_utf8(&body).unwrap_or_default().trim_end().to_owned();
            let fits_path = format!("/{text}").parse::<http::Uri>().is_ok();
            if text.is_empty() || !fits_header(&text) || !fits_path {
                return Err(failed("its answer is not one word"));
            }
            body = text.into();
        }
        Ok((HttpResponse::from_parts(parts, body.into()), answer))
    }
}

#[async_trait::async_trait]
impl HttpService for FetchHook {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let address = request.uri().clone();
        let host = address.authority().map(ToString::to_string).unwrap_or_default();
        self.connector.prepare(&mut request);
        #[expect(clippy::disallowed_methods, reason = "a limit for a server, not a promise to a holder")]
        let limited = tokio::time::timeout(ANSWER_MAX, self.exchange(request));
        let exchanged = limited.await.unwrap_or_else(|_| {
            Err(failed(&format!("there was no answer within {} s", ANSWER_MAX.as_secs())))
        });
        match exchanged {
            Ok((response, answer)) => {
                self.connector.note(FetchState::Answered(host, answer));
                Ok(response)
            }
            Err(error) => {
                let is_connect = error.kind() == HttpErrorKind::Connect;
                let proxy = self.connector.connector.proxy(&address).filter(|_| is_connect);
                let words = self.connector.connector.describe(&error, &host, proxy.as_ref());
                self.connector.note(FetchState::Failed(host, words));
                Err(error)
            }
        }
    }
}

/// The body of an answer.
async fn bounded(body: HttpResponseBody) -> Result<Bytes, HttpError> {
    let mut bytes = BytesMut::new();
    let mut pieces = body.bytes_stream();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() > BODY_MAX {
            return Err(failed("its answer is far too long"));
        }
    }
    Ok(bytes.freeze())
}

fn of_service(host: &str, words: &str) -> String {
    format!("the credentials service at {host} cannot be used: {words}")
}

fn failed(words: &str) -> HttpError {
    HttpError::new_boxed(HttpErrorKind::Unknown, words.into())
}

/// Credentials services are near and answer within a second. A renewal that has no valid credentials waits this long,
/// and then has time for another attempt.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Credentials have a few thousand bytes.
const BODY_MAX: usize = 256 * 1024;
