//! One plain HTTP request.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

/// Sends a request, and returns the status of the answer.
pub(crate) fn status(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<u16> {
    ask(address, (method, path), &[], body).map(|(status, _)| status)
}

/// Sends a request, and returns the status and the text of the complete answer.
pub(crate) fn ask(
    address: SocketAddr,
    what: (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<(u16, String)> {
    exchange(connect(address)?, address, what, headers, body)
}

/// Sends a request over TLS without verifying the certificate, and returns the status.
pub(crate) fn encrypted_status(address: SocketAddr, method: &str, path: &str) -> io::Result<u16> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.dangerous();
    let config =
        config.with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))).with_no_client_auth();
    let name = ServerName::from(address.ip());
    let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let stream = StreamOwned::new(tls, connect(address)?);
    exchange(stream, address, (method, path), &[], "").map(|(status, _)| status)
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn exchange(
    mut stream: impl Read + Write,
    address: SocketAddr,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<(u16, String)> {
    let more = headers.iter().fold(String::new(), |all, (name, value)| all + &format!("{name}: {value}\r\n"));
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut answer = Vec::new();
    // Some servers reset the connection instead of closing it. The status has arrived by then.
    let ended = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.strip_prefix("HTTP/1.1 ").or_else(|| answer.strip_prefix("HTTP/1.0 "));
    let status = status.and_then(|rest| rest.get(..3)?.parse().ok());
    match status {
        Some(status) => Ok((status, answer)),
        None => Err(ended.err().unwrap_or_else(|| io::Error::other(format!("no HTTP answer: {answer:?}")))),
    }
}

/// Accepts every certificate: the request asks whether a server serves, not whether it is the right one.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Longest time for one request. A server that has just started may need seconds for its first answer.
const PATIENCE: Duration = Duration::from_secs(20);
