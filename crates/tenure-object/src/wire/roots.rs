use std::path::Path;

use reqwest::Certificate;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Certificates of authorities that are trusted in addition to those of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots(Vec<Certificate>);

impl Roots {
    /// Reads the certificates in this PEM file. The error is a sentence.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = std::fs::read(path)
            .map_err(|error| format!("the certificates in {shown} cannot be read: {error}"))?;
        let wrong = |what: &str| {
            format!(
                "{shown} {what}: it takes the certificate of the authority that signed the server's, in PEM, which \
                 begins with -----BEGIN CERTIFICATE-----"
            )
        };
        let mut checked = RootCertStore::empty();
        let mut roots = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|_| wrong("is damaged"))?;
            let root = Certificate::from_der(&certificate).map_err(|_| wrong("is damaged"))?;
            checked.add(certificate).map_err(|_| wrong("contains data that is not a certificate"))?;
            roots.push(root);
        }
        if roots.is_empty() {
            return Err(wrong("has no certificate in it"));
        }
        Ok(Self(roots))
    }

    pub(crate) fn certificates(&self) -> impl Iterator<Item = Certificate> {
        self.0.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_file_without_certificates_says_what_is_needed() {
        let directory = std::env::temp_dir().join(format!("tenure-object-roots-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let read = |text: Option<&str>| {
            let path = directory.join("ca.pem");
            let _ = std::fs::remove_file(&path);
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            Roots::read(&path).unwrap_err()
        };
        assert!(read(None).contains("ca.pem cannot be read: No such file"));
        for (text, part) in [
            ("", "has no certificate in it"),
            ("hello", "has no certificate in it"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "has no certificate in it"),
            ("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n", "is damaged"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "is damaged"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "that is not a certificate"),
        ] {
            let sentence = read(Some(text));
            assert!(
                sentence.contains(part) && sentence.contains("BEGIN CERTIFICATE"),
                "{text:?}: {sentence}"
            );
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
