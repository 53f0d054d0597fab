//! Setup of one PostgreSQL server.

use super::PostgresKind;
use crate::authority::Certificate;

/// Differences of one PostgreSQL server from the default, which trusts every client on loopback.
#[derive(Debug, Clone, Default)]
pub struct PostgresSetup {
    pub(crate) kind: PostgresKind,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) password: Option<String>,
    pub(crate) certificate: Option<Certificate>,
    pub(crate) disk: Option<u64>,
}

impl PostgresSetup {
    /// No differences.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs this build. The default is Debian's.
    #[must_use]
    pub fn kind(mut self, kind: PostgresKind) -> Self {
        self.kind = kind;
        self
    }

    /// A line of its `postgresql.conf`, such as `fsync` and `off`. `ALTER SYSTEM` can change it later.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Demands a password over TCP, by SCRAM. This one is the superuser's.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Serves over TLS with this certificate, and refuses unencrypted connections over TCP.
    #[must_use]
    pub fn encrypted(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Keeps its data on a disk of this many megabytes, at least 64. Only root can have it; otherwise the
    /// test is skipped.
    #[must_use]
    pub fn disk(mut self, megabytes: u64) -> Self {
        self.disk = Some(megabytes << 20);
        self
    }
}
