//! What is different about one server.

use crate::authority::Certificate;

/// How a server of a test's own differs from the usual one.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) certificate: Option<Certificate>,
}

impl Setup {
    /// In nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable in its environment.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Serves encrypted, with this certificate. MinIO can.
    pub fn encrypted(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }
}
