//! A server with scripted answers, for cases that no real server produces on demand.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use tenure_object::S3;
use tenure_object::{Environment, S3Builder};
use tenure_testkit::Authority;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// Reply to the next request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Sends these bytes, and keeps the connection.
    Send(String),
    /// Sends these bytes, and closes the connection.
    SendAndCut(String),
}

#[derive(Clone)]
pub(crate) struct Scripted {
    scheme: &'static str,
    port: u16,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Scripted {
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::start_with(replies, None).await
    }

    /// Starts a server with TLS, with a certificate of this authority for 127.0.0.1.
    pub(crate) async fn start_encrypted(
        replies: impl IntoIterator<Item = Reply>,
        authority: &Authority,
    ) -> Self {
        let certificate = authority.certify(&["127.0.0.1"]);
        let chain = CertificateDer::from_pem_slice(certificate.chain.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![chain], key).unwrap();
        Self::start_with(replies, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(replies: impl IntoIterator<Item = Reply>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        let scheme = if tls.is_some() { "https" } else { "http" };
        let server = Self { scheme, port, replies, heads: Arc::default(), connections: Arc::default() };
        let serving = server.clone();
        #[expect(clippy::disallowed_methods, reason = "a test owns its server")]
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::Relaxed);
                let (serving, tls) = (serving.clone(), tls.clone());
                #[expect(clippy::disallowed_methods, reason = "a test owns its server")]
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => serving.serve(tls.accept(connection).await.unwrap()).await,
                        None => serving.serve(connection).await,
                    }
                });
            }
        });
        server
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    pub(crate) fn builder(&self) -> S3Builder {
        S3::builder("leases").prefix("locks").endpoint(&self.endpoint()).keys("id", "hush")
    }

    pub(crate) fn store(&self) -> S3 {
        self.builder().open_in(&Environment::default()).unwrap()
    }

    /// The heads of all received requests, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// Number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    async fn serve(self, mut connection: impl AsyncRead + AsyncWrite + Unpin) {
        while let Some(head) = receive(&mut connection).await {
            self.heads.lock().unwrap().push(head);
            let reply = self.replies.lock().unwrap().pop_front();
            match reply {
                Some(Reply::Send(bytes)) => connection.write_all(bytes.as_bytes()).await.unwrap(),
                Some(Reply::SendAndCut(bytes)) => {
                    connection.write_all(bytes.as_bytes()).await.unwrap();
                    return;
                }
                None => return,
            }
        }
    }
}

/// Receives the head of the next request, and reads its body to the end.
async fn receive(connection: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    let (head, mut there) = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break (String::from_utf8_lossy(&bytes[..end]).to_lowercase(), bytes.len() - end - 4);
        }
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    while there < length.unwrap_or_default() {
        let mut more = Vec::new();
        match connection.read_buf(&mut more).await.ok()? {
            0 => return None,
            read => there += read,
        }
    }
    Some(head)
}

/// A complete answer, with a date like that of every server.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Reply {
    let (date, length) = (date(), body.len());
    Reply::Send(format!("HTTP/1.1 {status}\r\n{date}{headers}content-length: {length}\r\n\r\n{body}"))
}

/// An error in S3's format.
pub(crate) fn error(status: &str, code: &str) -> Reply {
    answer(status, "", &format!("<Error><Code>{code}</Code><Message>Told so.</Message></Error>"))
}

/// The headers that every answer has: the time, and the identifier of the request.
pub(crate) fn date() -> String {
    date_at(Timestamp::now())
}

/// The same headers, of a server with another clock.
pub(crate) fn date_at(time: Timestamp) -> String {
    format!("date: {}\r\nx-amz-request-id: 17A\r\n", http_date(time))
}

pub(crate) fn http_date(time: Timestamp) -> String {
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap()
}
