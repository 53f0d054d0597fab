//! TLS as the parameter `sslmode` describes it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;

use super::OpenError;

/// The parameter `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// No TLS.
    Disable,
    /// TLS if the server offers it, and no check of the server.
    Prefer,
    /// TLS, and no check of the server, unless a file with authorities is given.
    Require,
    /// TLS with a certificate of a trusted authority, for any name.
    VerifyCa,
    /// TLS with a certificate of a trusted authority, for the name of the host.
    VerifyFull,
}

impl TlsMode {
    pub(crate) fn parse(text: &str) -> Result<Self, OpenError> {
        Ok(match text {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(OpenError::invalid(format!(
                    "{text:?} is not an sslmode: use disable, prefer, require, verify-ca or verify-full"
                )));
            }
        })
    }

    /// The part of the mode that decides whether the connection is encrypted.
    pub(crate) fn encryption(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// The parameter `sslrootcert`: the authorities to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsRoots {
    /// It is not given, and the usual file does not exist.
    Unnamed,
    /// Those of the machine.
    System,
    /// Those in a file.
    File(PathBuf),
}

/// The files of a TLS connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsFiles<'a> {
    pub(crate) roots: &'a TlsRoots,
    /// The client's own certificate, and its key.
    pub(crate) client: Option<(&'a Path, &'a Path)>,
}

impl TlsFiles<'_> {
    /// Refuses authorities that a mode does not check, or that check too little in it. PostgreSQL's own tools refuse the same.
    fn check(self, mode: TlsMode) -> Result<(), OpenError> {
        match (mode, self.roots) {
            (TlsMode::VerifyFull, _) => Ok(()),
            // Every server with a public certificate would pass, or every server at all.
            (_, TlsRoots::System) => Err(OpenError::invalid(
                "sslrootcert=system needs sslmode=verify-full: a public authority certifies every server, so only the \
                 name tells them apart",
            )),
            (TlsMode::VerifyCa, TlsRoots::Unnamed) => Err(OpenError::invalid(
                "sslmode=verify-ca needs the file of a private authority: name it with sslrootcert in the URL, or use \
                 sslmode=verify-full",
            )),
            _ => Ok(()),
        }
    }
}

/// The TLS settings of a mode.
pub(crate) fn config(mode: TlsMode, files: TlsFiles<'_>) -> Result<ClientConfig, OpenError> {
    files.check(mode)?;
    let provider = Arc::new(ring::default_provider());
    let unchecked = match mode {
        TlsMode::Disable | TlsMode::Prefer => true,
        TlsMode::Require => *files.roots == TlsRoots::Unnamed,
        TlsMode::VerifyCa | TlsMode::VerifyFull => false,
    };
    let verifier: Arc<dyn ServerCertVerifier> = if unchecked {
        Arc::new(AnyServer(Arc::clone(&provider)))
    } else {
        let roots = Arc::new(roots(files.roots)?);
        let verifier =
            WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build().map_err(
                |error| OpenError::unreachable(format!("the trusted authorities cannot be used: {error}")),
            )?;
        if mode == TlsMode::VerifyFull { verifier } else { Arc::new(AnyName(verifier)) }
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OpenError::unreachable(format!("TLS cannot be used: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    // A connection without TLS needs no certificate.
    let mut config = match files.client.filter(|_| mode != TlsMode::Disable) {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let (chain, secret) = (certificates(certificate)?, private_key(key)?);
            builder.with_client_auth_cert(chain, secret).map_err(|error| {
                let (certificate, key) = (certificate.display(), key.display());
                OpenError::denied(format!(
                    "the certificate {certificate} and the key {key} do not fit together: {error}"
                ))
            })?
        }
    };
    // A server with direct TLS requires the name of its protocol; every other ignores it.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(config)
}

fn roots(from: &TlsRoots) -> Result<RootCertStore, OpenError> {
    let mut roots = RootCertStore::empty();
    match from {
        TlsRoots::File(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| {
                    OpenError::unreachable(format!("{} has a damaged certificate: {error}", path.display()))
                })?;
            }
        }
        TlsRoots::System | TlsRoots::Unnamed => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(OpenError::unreachable(
                    "this machine trusts no authority for certificates: name a file with sslrootcert in the URL",
                ));
            }
        }
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, OpenError> {
    let shown = path.display();
    let wrong = |what: String| OpenError::unreachable(format!("the certificates in {shown} {what}"));
    let text = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match chain {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        _ => Err(wrong("are damaged or missing: PEM begins with -----BEGIN CERTIFICATE-----".to_owned())),
    }
}

/// Reads a key. As with PostgreSQL's own tools, only its owner may have access to it; if that is root, its group may read it.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, OpenError> {
    let shown = path.display();
    let unreadable = |error: &dyn std::fmt::Display| {
        OpenError::denied(format!("the key in {shown} cannot be read: {error}"))
    };
    let about = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    let allowed = if about.uid() == 0 { 0o640 } else { 0o600 };
    if about.is_file() && about.mode() & 0o077 & !allowed != 0 {
        return Err(OpenError::denied(format!(
            "other users have access to the key in {shown}: run chmod 600 {shown}"
        )));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|error| unreadable(&error))
}

/// Accepts every certificate: the connection is encrypted, and the server is not checked.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
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
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Checks everything but the name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.0.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The verifier checks the name last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
