use std::io;
use std::sync::Arc;

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
                stream.set_nodelay(true).map_err(failed)?;
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
    connected.unwrap_or_else(|| Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")))
}
