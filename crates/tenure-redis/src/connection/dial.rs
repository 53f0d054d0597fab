use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tenure_store::Reason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::first_success::first_success;
use crate::open::{Address, OpenError, Settings};
use crate::words;

/// A byte stream to a server.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// Opens byte streams to servers.
pub(crate) struct Dialer {
    tls: Option<TlsConnector>,
}

impl Dialer {
    /// Reads the certificates that the settings name. Connects to nothing.
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        if !settings.tls {
            return Ok(Self { tls: None });
        }
        let mut roots = RootCertStore::empty();
        // A machine without certificates is an error only if the server's certificate is then not trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = &settings.ca {
            let wrong = |what: &str| {
                let sentence = format!(
                    "{} {what}: it takes the certificate of the authority that signed the server's, in PEM",
                    path.display()
                );
                OpenError::new(Reason::Unreachable, sentence)
            };
            let certificates =
                CertificateDer::pem_file_iter(path).map_err(|_| wrong("cannot be read as certificates"))?;
            let mut found = false;
            for certificate in certificates {
                let certificate = certificate.map_err(|_| wrong("is damaged"))?;
                roots.add(certificate).map_err(|_| wrong("contains data that is not a certificate"))?;
                found = true;
            }
            if !found {
                return Err(wrong("has no certificate in it"));
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| OpenError::invalid(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { tls: Some(TlsConnector::from(Arc::new(config))) })
    }

    /// Connects to the server. Nothing of Redis is sent.
    pub(crate) async fn dial(&self, address: &Address) -> Result<Box<dyn Wire>, OpenError> {
        let failed = |error: io::Error| {
            OpenError::new(Reason::Unreachable, format!("cannot connect to {address}: {error}"))
        };
        match address {
            Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await.map_err(failed)?)),
            Address::Tcp(host, port) => {
                let stream = connect(host, *port).await.map_err(failed)?;
                let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
                let name = ServerName::try_from(host.clone()).map_err(|_| {
                    OpenError::invalid(format!("{host:?} cannot be the name in a certificate"))
                })?;
                Ok(Box::new(
                    tls.connect(name, stream).await.map_err(|error| words::of_no_tls(&error, address))?,
                ))
            }
        }
    }
}

/// Connects to one of the addresses of a host. One that drops packets leaves time for the next one.
async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses = lookup_host((host, port)).await?;
    let connected = first_success(addresses.map(TcpStream::connect)).await;
    let nothing = || Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    let stream = connected.unwrap_or_else(nothing)?;
    stream.set_nodelay(true)?;
    notice_silence(&stream)?;
    Ok(stream)
}

/// Lets the kernel break the connection when the other end is gone without a word: a subscription sends nothing by itself,
/// and would wait for hints for ever. Calls have limits of their own.
fn notice_silence(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    // The kernel sends no probes while data is not acknowledged.
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MAX.as_millis() as u32)?;
    Ok(())
}

/// Silence after which the kernel sends a probe.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// Time between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Probes without an answer after which the connection is broken.
const KEEPALIVE_PROBES: u32 = 3;

/// Longest wait for the acknowledgement of data by the other kernel.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_notices_a_connection_that_was_cut_silently() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = connect("127.0.0.1", listener.local_addr().unwrap().port()).await.unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), KEEPALIVE_IDLE);
        assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), KEEPALIVE_PROBES);
    }
}
