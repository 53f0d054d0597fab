//! Setup of one server.

use crate::authority::Certificate;

/// Differences of one server from the default.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) certificate: Option<Certificate>,
}

impl Setup {
    /// No differences.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable in its environment.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Serves over TLS, with this certificate. Only MinIO supports it.
    pub fn encrypted(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }
}
