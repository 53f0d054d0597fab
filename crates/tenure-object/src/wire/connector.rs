use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::CACHE_CONTROL;
use http::{HeaderName, HeaderValue};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};

use super::requests::Counter;
use super::seen_time::SeenTime;
use super::{Call, CallState, HeaderNames, Proxies, Proxy, Requests, Roots, ServerAnswer, connection_error};
use crate::tls;

/// The network settings for requests.
#[derive(Clone, Debug)]
pub(crate) struct NetworkSettings {
    /// True if no request ever goes to an address with a certificate.
    pub(crate) unencrypted: bool,
    pub(crate) roots: Roots,
    /// Environment variable that names a file of certificates in this dialect, for messages.
    pub(crate) ca_variable: Option<&'static str>,
    pub(crate) proxies: Proxies,
    /// The headers of the dialect.
    pub(crate) names: &'static HeaderNames,
    /// Additional header of every request. (The client library adds it to some requests only.)
    pub(crate) header: Option<(HeaderName, HeaderValue)>,
}

/// Creates the clients that send requests, and observes everything that they do.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    counter: Arc<Counter>,
    seen_time: Arc<SeenTime>,
    network: NetworkSettings,
}

impl Connector {
    pub(crate) fn new(network: NetworkSettings) -> Self {
        Self { counter: Arc::default(), seen_time: Arc::default(), network }
    }

    pub(crate) fn requests(&self) -> Requests {
        self.counter.so_far()
    }

    /// The proxy in front of this address.
    pub(crate) fn proxy(&self, address: &http::Uri) -> Option<Proxy> {
        self.network.proxies.of(address).ok().flatten()
    }

    /// Describes the error on the way to this host, through this proxy.
    pub(crate) fn describe(&self, error: &HttpError, host: &str, proxy: Option<&Proxy>) -> String {
        connection_error::words(error, host, proxy, self.network.ca_variable)
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        tls::prepare();
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("tenure/", env!("CARGO_PKG_VERSION")))
            .https_only(!plain)
            .http1_only()
            // Following a redirect turns some writes into reads, whose success would then count as that of the write.
            // Also, a signature is valid for one address only.
            .redirect(reqwest::redirect::Policy::none())
            // Retries are Tenure's decision: a write that is sent again is answered with a conflict, and a win becomes
            // a loss.
            .retry(reqwest::retry::never())
            .timeout(CALL_MAX)
            .connect_timeout(CONNECT_MAX)
            .pool_idle_timeout(IDLE_MAX)
            // Only the given proxies: the client must not read the environment.
            .no_proxy();
        let proxies = self.network.proxies.clone();
        client = client.proxy(reqwest::Proxy::custom(move |url| {
            let address = url.as_str().parse().ok()?;
            proxies.of(&address).ok().flatten().map(|proxy| proxy.url().clone())
        }));
        client = if self.network.unencrypted {
            // A machine without any root certificate, such as a small container, could not create a client.
            client.tls_certs_only([])
        } else {
            client.tls_certs_merge(self.network.roots.certificates())
        };
        let client = client
            .build()
            .map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })?;
        Ok(HttpClient::new(CallHook { client, connector: self.clone() }))
    }
}

#[derive(Debug)]
struct CallHook {
    client: reqwest::Client,
    connector: Connector,
}

#[async_trait::async_trait]
impl HttpService for CallHook {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // Requests for credentials have no call.
        let Some(call) = request.extensions().get::<Call>().cloned() else {
            return HttpService::call(&self.client, request).await;
        };
        let Connector { counter, seen_time, network } = &self.connector;
        let (mut parts, body) = request.into_parts();
        parts.headers.extend(network.header.clone());
        // A cache on the way must ask the store. The header is not part of any signature.
        parts.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        counter.count(&parts);
        let signed = network.names.signed_at(&parts.headers);
        let address = parts.uri.clone();
        // If the future is dropped after this, no caller reads the state. If it panics, this state is correct.
        call.note(CallState::Cut("there was no answer".to_owned()));
        let response = match HttpService::call(&self.client, HttpRequest::from_parts(parts, body)).await {
            Ok(response) => response,
            Err(error) => {
                let host = address.authority().map_or("", |authority| authority.as_str());
                let words = self.connector.describe(&error, host, self.connector.proxy(&address).as_ref());
                call.note(if is_certainly_unsent(&error) {
                    CallState::NotConnected(words)
                } else {
                    CallState::Cut(words)
                });
                return Err(error);
            }
        };
        let mut answer = ServerAnswer::new(response.status().as_u16(), response.headers(), network.names);
        answer.signed = signed;
        if let Some(date) = answer.untied_date() {
            answer.drift = seen_time.drift(date);
        }
        answer.proxy = self.connector.proxy(&address);
        // The status has arrived, so it is the answer, even if the remaining part is lost.
        call.note(CallState::Answered(Box::new(answer.clone())));
        if answer.is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let body = error_body(body).await;
        if let Some(body) = &body {
            call.note(CallState::Answered(Box::new(answer.with_text(body))));
        }
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(body.unwrap_or_default())))
    }
}

/// True if there was no connection. After every other error, the request may have been sent. The client library reports
/// a connection that was not made in time as a timeout.
fn is_certainly_unsent(error: &HttpError) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.downcast_ref().is_some_and(reqwest::Error::is_connect) {
            return true;
        }
        cause = error.source();
    }
    error.kind() == HttpErrorKind::Connect
}

/// The body of an error; `None` if it is cut off or far too long.
async fn error_body(body: HttpResponseBody) -> Option<Bytes> {
    let mut text = BytesMut::new();
    let mut pieces = body.bytes_stream();
    while let Some(piece) = pieces.next().await {
        text.extend_from_slice(&piece.ok()?);
        if text.len() > ERROR_MAX {
            return None;
        }
    }
    Some(text.freeze())
}

/// The keeper of leases gives up much sooner; this limit is for callers that set none.
const CALL_MAX: Duration = Duration::from_secs(60);

/// Longer than the second attempt after a lost first packet, which comes after one second; the third comes after three.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// If a server closes a connection at the moment of its reuse, a write that was never read has no answer. No server
/// closes connections after so short a time, and consecutive calls still share one. Renewals are further apart than
/// this, and each opens a new connection.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// Errors have a few hundred bytes.
const ERROR_MAX: usize = 64 * 1024;
