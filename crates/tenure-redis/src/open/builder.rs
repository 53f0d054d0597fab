use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_store::{Guarantees, Reason};

use super::settings::{ReplicaConfirmation, Settings};
use super::{Address, OpenError};
use crate::Redis;
use crate::promises;

/// Location of a server, and the way to reach it.
///
/// Its `Display` is the equivalent URL, without the password.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder opens nothing until open() is called"]
pub struct RedisBuilder {
    settings: Settings,
    /// The first error. [`check`](Self::check) returns it, so that the methods can be chained.
    first_error: Option<OpenError>,
}

impl RedisBuilder {
    /// The server at `host` or `host:port`; several, with commas, as entries to a cluster.
    pub(crate) fn new(addresses: &str) -> Self {
        Self::at(addresses, USUAL_PORT)
    }

    /// The primary server that these sentinels watch under this name.
    pub(crate) fn by_sentinel(addresses: &str, master: &str) -> Self {
        let mut builder = Self::at(addresses, USUAL_SENTINEL_PORT);
        builder.settings.master = Some(master.to_owned());
        let plain = !master.is_empty() && !master.contains(char::is_control);
        builder.require(plain, || {
            "name the master that the sentinels watch: redis+sentinel://host/mymaster".to_owned()
        })
    }

    /// The server at this socket.
    pub(crate) fn at_socket(path: &str) -> Self {
        let builder =
            Self { settings: Settings::at(vec![Address::Unix(PathBuf::from(path))]), first_error: None };
        builder.require(Path::new(path).is_absolute() && !path.contains('\0'), || {
            format!(
                "{path:?} is not the absolute path of a socket: write it like redis+unix:///run/redis.sock"
            )
        })
    }

    fn at(addresses: &str, usual_port: u16) -> Self {
        let mut parsed = Vec::new();
        let mut first_error = None;
        for address in addresses.split(',') {
            match Address::parse(address, usual_port) {
                Ok(address) => parsed.push(address),
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        Self { settings: Settings::at(parsed), first_error }
    }

    /// Encrypts the connection.
    pub fn tls(mut self) -> Self {
        self.settings.tls = true;
        self
    }

    /// Trusts the certificates in this PEM file, in addition to those that the machine trusts. The path is absolute.
    pub fn ca(mut self, path: &str) -> Self {
        self.settings.ca = Some(path.into());
        self.require(is_path(path), || {
            format!(
                "{path:?} is not the absolute path of a certificate file: write it like ca=/etc/ssl/my-ca.pem"
            )
        })
    }

    /// Authenticates as this user. Default: the server's default user.
    pub fn user(mut self, name: &str) -> Self {
        self.settings.user = Some(name.to_owned());
        self.require(!name.is_empty(), || "the name of the user is empty".to_owned())
    }

    /// Authenticates with this password. Default: the content of the [file](Self::password_file), or the variable
    /// `REDISCLI_AUTH`, which the server's own tools use too.
    pub fn password(mut self, password: &str) -> Self {
        self.settings.password = Some(password.to_owned());
        self
    }

    /// Reads the password from this file when a connection is opened. A line break at its end does not count.
    pub fn password_file(mut self, path: &str) -> Self {
        self.settings.password_file = Some(path.into());
        self.require(is_path(path), || {
            format!(
                "{path:?} is not the absolute path of a file: write it like password-file=/run/secrets/redis"
            )
        })
    }

    /// Selects this database. Default: 0.
    pub fn database(mut self, number: u32) -> Self {
        self.settings.database = number;
        self
    }

    /// Begins the names of all Redis keys with this prefix. Default: `tenure:`.
    pub fn prefix(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.settings.prefix);
        let plain =
            prefix.len() <= PREFIX_MAX && !prefix.contains(|c: char| c.is_control() || "{}".contains(c));
        self.require(plain, || {
            format!("{prefix:?} is not a prefix: it has at most {PREFIX_MAX} bytes, and no braces: write it like prod:")
        })
    }

    /// Sets the longest ttl of a holder on this server: the quarantine after a restart of the server is as long, plus
    /// the allowed drift of clocks. Default and maximum: 60 seconds. Every participant must use the same value.
    pub fn quarantine(mut self, longest_ttl: Duration) -> Self {
        self.settings.quarantine = longest_ttl;
        let range = Settings::SHORTEST_QUARANTINE..=Settings::LONGEST_QUARANTINE;
        let whole = longest_ttl.subsec_nanos().is_multiple_of(1_000_000);
        self.require(range.contains(&longest_ttl) && whole, || {
            "quarantine is between 100ms and 60s: leases with a longer ttl need accept=restart".to_owned()
        })
    }

    /// Waits after each write until this many replicas have received it, and if `on_disk`, have it on disk. A write
    /// that too few confirm has an unknown outcome. It narrows the window in which a failover loses writes, and does not
    /// close it.
    pub fn wait_for_replicas(mut self, replicas: u32, on_disk: bool) -> Self {
        self.settings.confirmation = Some(ReplicaConfirmation { replicas, on_disk });
        self.require((1..=16).contains(&replicas), || "wait is a number of replicas from 1 to 16".to_owned())
    }

    /// Accepts that a restart of the server may lose leases: there is no quarantine, and no longest ttl. Two may hold
    /// one lease after such a restart, and only the fence protects.
    pub fn accept_restart(mut self) -> Self {
        self.settings.accepted.restart = true;
        self
    }

    /// Accepts that a failover may lose leases: replicas, sentinels and clusters are allowed. A failover may lose the
    /// latest writes unseen, two may then hold one lease, and only the fence protects. There is no quarantine.
    pub fn accept_failover(mut self) -> Self {
        self.settings.accepted.failover = true;
        self
    }

    /// Accepts a server that evicts keys when its memory is full: it may evict the record of a held lease.
    pub fn accept_eviction(mut self) -> Self {
        self.settings.accepted.eviction = true;
        self
    }

    /// Accepts a server whose settings the user may not read: whether it evicts records, has replicas, or has restarted
    /// is unknown then.
    pub fn accept_unknown_settings(mut self) -> Self {
        self.settings.accepted.unknown_settings = true;
        self
    }

    /// Fails if a setting so far cannot be right.
    pub fn check(&self) -> Result<(), OpenError> {
        if let Some(error) = &self.first_error {
            return Err(error.clone());
        }
        let Settings { master, accepted, confirmation, database, addresses, .. } = &self.settings;
        if master.is_some() && !accepted.failover {
            return Err(OpenError::new(
                Reason::Unsupported,
                "a failover by sentinels may lose the latest writes unseen, and with them leases: accept that with \
                 accept=failover in the URL, and use the fence",
            ));
        }
        if addresses.len() > 1 && master.is_none() && !accepted.failover {
            return Err(OpenError::new(
                Reason::Unsupported,
                "several addresses are entries to a cluster, where a failover may lose the latest writes unseen, and \
                 with them leases: accept that with accept=failover in the URL, and use the fence",
            ));
        }
        if confirmation.is_some() && !accepted.failover {
            return Err(OpenError::invalid("wait needs replicas, which need accept=failover in the URL"));
        }
        if *database > 0 && addresses.len() > 1 && master.is_none() {
            return Err(OpenError::invalid("a cluster has only database 0: take db out of the URL"));
        }
        Ok(())
    }

    /// Opens the store. Sends nothing yet: the first call connects.
    pub fn open(&self) -> Result<Redis, OpenError> {
        self.check()?;
        Redis::new(self.settings.clone())
    }

    /// Name of the store. Opens nothing, so it needs no credentials.
    pub fn store_name(&self) -> String {
        StoreName(&self.settings).to_string()
    }

    /// Guarantees of the store. Opens nothing, so it needs no credentials.
    pub fn guarantees(&self) -> Guarantees {
        promises::of(&self.settings)
    }

    fn require(mut self, right: bool, sentence: impl FnOnce() -> String) -> Self {
        if !right {
            self.first_error.get_or_insert(OpenError::invalid(sentence()));
        }
        self
    }
}

impl fmt::Display for RedisBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.write_url(f, false)
    }
}

/// The name of a store with these settings.
pub(crate) struct StoreName<'a>(pub(crate) &'a Settings);

impl fmt::Display for StoreName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_url(f, true)
    }
}

fn is_path(path: &str) -> bool {
    Path::new(path).is_absolute() && !path.contains('\0')
}

const USUAL_PORT: u16 = 6379;
const USUAL_SENTINEL_PORT: u16 = 26379;

/// Room for a prefix: the name of a Redis key may be much longer, but an operator reads it.
const PREFIX_MAX: usize = 200;
