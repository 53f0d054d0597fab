use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::builder::Secret;
use super::tls::{self, TlsFiles, TlsMode, TlsRoots};
use super::{Host, OpenError, password_file};
use crate::connection::in_thread;

/// The servers of a store, and everything that a connection to one of them needs.
pub(crate) struct Target {
    routes: Vec<Route>,
    source: PasswordSource,
    user: String,
    database: String,
    /// The route to try first.
    first: AtomicUsize,
}

/// The way to one server.
pub(crate) struct Route {
    pub(crate) host: Host,
    config: Config,
    pub(crate) tls: MakeRustlsConnect,
    /// Longest time from the first packet until the server has reported its settings.
    pub(crate) limit: Duration,
}

/// The place of the password.
#[derive(Debug)]
pub(crate) enum PasswordSource {
    Known(Secret),
    File(PathBuf),
    Nothing,
}

/// The parts of a target that the builder found.
pub(super) struct TargetParts<'a> {
    pub(super) hosts: &'a [Host],
    pub(super) user: &'a str,
    pub(super) database: &'a str,
    pub(super) parameters: &'a BTreeMap<&'static str, String>,
    pub(super) source: PasswordSource,
    pub(super) roots: TlsRoots,
    pub(super) client: Option<(PathBuf, PathBuf)>,
}

impl Target {
    pub(super) fn new(parts: TargetParts<'_>) -> Result<Self, OpenError> {
        let routes: Result<_, _> = parts.hosts.iter().map(|host| Route::new(host, &parts)).collect();
        Ok(Self {
            routes: routes?,
            source: parts.source,
            user: parts.user.to_owned(),
            database: parts.database.to_owned(),
            first: AtomicUsize::new(0),
        })
    }

    /// The routes, in the order in which they are to be tried: the last good one first.
    pub(crate) fn routes(&self) -> impl ExactSizeIterator<Item = (usize, &Route)> {
        let (first, length) = (self.first.load(Ordering::Relaxed), self.routes.len());
        (0..length).map(move |step| (first + step) % length).map(|at| (at, &self.routes[at]))
    }

    /// Names the route that the next connection tries first.
    pub(crate) fn start_at(&self, route: usize) {
        self.first.store(route % self.routes.len(), Ordering::Relaxed);
    }

    /// The settings of a connection over this route, without a password.
    pub(crate) fn config(&self, route: &Route) -> Config {
        route.config.clone()
    }

    /// The password for this host. The password file is read again each time, because passwords change. It is read by a
    /// thread of its own: a home directory on a network may be silent, and the keeper must not wait for it.
    pub(crate) async fn password(&self, host: &Host) -> Result<Option<String>, OpenError> {
        let path = match &self.source {
            PasswordSource::Known(Secret(password)) => return Ok(Some(password.clone())),
            PasswordSource::File(path) => path.clone(),
            PasswordSource::Nothing => return Ok(None),
        };
        let (host, database, user) = (host.clone(), self.database.clone(), self.user.clone());
        let read = in_thread("tenure-pgpass", move || password_file::read(&path, &host, &database, &user));
        read.await.unwrap_or_else(|| Err(OpenError::denied("no thread could read the password file")))
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }
}

impl Route {
    fn new(host: &Host, parts: &TargetParts<'_>) -> Result<Self, OpenError> {
        let parameter = |name: &str| parts.parameters.get(name).map(String::as_str);
        let is_direct = parameter("sslnegotiation") == Some("direct") && !host.is_socket();
        let client = parts.client.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
        let (mode, files) = match parameter("sslmode") {
            // A socket is not a network.
            _ if host.is_socket() => (TlsMode::Disable, TlsFiles { roots: &TlsRoots::Unnamed, client: None }),
            mode => {
                let usual = || {
                    let is_checked = !host.is_local() || parts.roots == TlsRoots::System;
                    Ok(if is_checked { TlsMode::VerifyFull } else { TlsMode::Prefer })
                };
                (mode.map_or_else(usual, TlsMode::parse)?, TlsFiles { roots: &parts.roots, client })
            }
        };
        if is_direct && mode.encryption() != SslMode::Require {
            return Err(OpenError::invalid("sslnegotiation=direct needs sslmode=require or stricter"));
        }
        let tls = tls::config(mode, files)?;
        let mut config = Config::new();
        config.host(&host.name).port(host.port).user(parts.user).dbname(parts.database);
        config.ssl_mode(mode.encryption());
        if is_direct {
            config.ssl_negotiation(SslNegotiation::Direct);
        }
        config.channel_binding(match parameter("channel_binding") {
            Some("disable") => ChannelBinding::Disable,
            Some("require") => ChannelBinding::Require,
            _ => ChannelBinding::Prefer,
        });
        config.application_name(parameter("application_name").unwrap_or("tenure"));
        if let Some(options) = parameter("options") {
            config.options(options);
        }
        let seconds = parameter("connect_timeout").and_then(|seconds| seconds.parse().ok());
        // Zero means no limit to PostgreSQL's own tools. Here all calls share the attempt, so it must end.
        let limit = seconds.filter(|&seconds| seconds > 0).map_or(CONNECT_TIMEOUT, Duration::from_secs);
        if !host.is_socket() && host.name.parse::<std::net::IpAddr>().is_err() {
            // A name may have several addresses: one that swallows packets leaves time for the next one.
            config.connect_timeout(limit / 2);
        }
        // A dead server is noticed also while nothing is sent.
        config.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL).keepalives_retries(3);
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
        Ok(Self { host: host.clone(), config, tls: MakeRustlsConnect::new(tls), limit })
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.routes.iter().map(|route| route.host.to_string()).collect();
        f.debug_struct("Target").field("hosts", &hosts).finish_non_exhaustive()
    }
}

/// Longest wait for a connection to one server, with TLS and the password, if the parameter `connect_timeout` names no
/// other.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Longest time for which data may remain without acknowledgement.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
