//! Setup of one server with the protocol of Redis.

use crate::authority::Certificate;

/// Differences of one server from its built-in settings, which save a snapshot now and then and at an orderly stop.
#[derive(Debug, Clone, Default)]
pub struct RedisSetup {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) password: Option<String>,
    pub(crate) users: Option<String>,
    pub(crate) certificate: Option<Certificate>,
    pub(crate) disk: Option<u64>,
    pub(crate) sentinel: bool,
    pub(crate) cluster: bool,
}

impl RedisSetup {
    /// No differences.
    pub fn new() -> Self {
        Self::default()
    }

    /// A line of its configuration file, such as `appendonly` and `yes`. An empty value is written as `""`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Keeps every acknowledged write through a crash: `appendonly yes`, `appendfsync always`.
    #[must_use]
    pub fn durable(self) -> Self {
        self.setting("appendonly", "yes").setting("appendfsync", "always")
    }

    /// Demands this password (`requirepass`).
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Its users: the lines of an ACL file, such as `user worker on >secret ~tenure:* +@all`. Without a line for it, the
    /// user `default` is off.
    #[must_use]
    pub fn users(mut self, lines: &str) -> Self {
        self.users = Some(lines.to_owned());
        self
    }

    /// Serves over TLS only, with this certificate. Only Redis supports it.
    #[must_use]
    pub fn encrypted(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Keeps its data on a disk of this many megabytes, such as 16. Only root can have it; otherwise the
    /// test is skipped.
    #[must_use]
    pub fn disk(mut self, megabytes: u64) -> Self {
        self.disk = Some(megabytes << 20);
        self
    }
}
