use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Address;

/// All settings of a store.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The server; several for sentinels or as entries to a cluster.
    pub(crate) addresses: Vec<Address>,
    /// Name by which the sentinels at `addresses` watch the primary server.
    pub(crate) master: Option<String>,
    pub(crate) tls: bool,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) database: u32,
    pub(crate) prefix: String,
    pub(crate) quarantine: Duration,
    pub(crate) confirmation: Option<ReplicaConfirmation>,
    pub(crate) accepted: Accepted,
}

/// Risks that the caller accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// A restart may lose leases.
    pub(crate) restart: bool,
    /// A failover may lose leases.
    pub(crate) failover: bool,
    /// The server may evict records.
    pub(crate) eviction: bool,
    /// The settings of the server cannot be read.
    pub(crate) unknown_settings: bool,
}

/// Confirmation that a write waits for, beyond that of the primary server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaConfirmation {
    /// Replicas that must have the write.
    pub(crate) replicas: u32,
    /// True if they must have it on disk.
    pub(crate) on_disk: bool,
}

impl Settings {
    pub(crate) fn at(addresses: Vec<Address>) -> Self {
        Self {
            addresses,
            master: None,
            tls: false,
            ca: None,
            user: None,
            password: None,
            password_file: None,
            database: 0,
            prefix: PREFIX.to_owned(),
            quarantine: Self::LONGEST_QUARANTINE,
            confirmation: None,
            accepted: Accepted::default(),
        }
    }

    /// True if nothing is granted for some time after a restart of the server.
    pub(crate) fn has_quarantine(&self) -> bool {
        !self.accepted.restart && !self.accepted.failover
    }

    /// The longest ttl of a holder, if there is a quarantine, and the default.
    pub(crate) const LONGEST_QUARANTINE: Duration = Duration::from_secs(60);

    /// The shortest quarantine.
    pub(crate) const SHORTEST_QUARANTINE: Duration = Duration::from_millis(100);
}

/// Shows no password.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("addresses", &self.addresses)
            .field("prefix", &self.prefix)
            .field("accepted", &self.accepted)
            .finish_non_exhaustive()
    }
}

/// The default prefix.
pub(crate) const PREFIX: &str = "tenure:";
