use std::fmt;
use std::sync::Arc;

use tenure::Error;
use tenure_postgres::{OpenError, Postgres, PostgresBuilder};
use tenure_store::{Guarantees, Store, StoreError};

use crate::UrlError;
use crate::decode::decode;

/// A database, and the way to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostgresPlace(Box<PostgresBuilder>);

impl PostgresPlace {
    /// Parses the part after the scheme. Errors never repeat it: it may contain a password.
    pub(crate) fn parse(rest: &str) -> Result<Self, UrlError> {
        let Some(rest) = rest.strip_prefix("//") else {
            return Err(UrlError::new(format!("postgres: lacks two slashes: write it like {EXAMPLE}")));
        };
        if rest.contains('#') {
            return Err(UrlError::new(
                "the URL of a store cannot have a part after '#': write %23 for itself",
            ));
        }
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        let (authority, database) = match place.split_once('/') {
            Some((authority, database)) => (authority, database),
            None => (place, ""),
        };
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, authority),
        };
        let mut builder = Postgres::builder();
        if let Some(user) = user {
            if user.contains(':') {
                return Err(no_password());
            }
            builder = builder.user(&decode(user)?);
        }
        if !database.is_empty() {
            builder = builder.database(&decode(database)?);
        }
        let mut options = match hosts.strip_prefix(':') {
            // The port of the usual host.
            Some(port) => PostgresOptions { ports: Some(port.to_owned()), ..PostgresOptions::default() },
            None => PostgresOptions { hosts: hosts_of(hosts)?, ..PostgresOptions::default() },
        };
        for option in crate::options::options(query) {
            let (name, value) = option.split_once('=').unwrap_or((&option, ""));
            builder = options.set(builder, name, &decode(value)?)?;
        }
        let builder = options.finish(builder)?;
        builder.check().map_err(|error| UrlError::new(error.to_string()))?;
        Ok(Self(Box::new(builder)))
    }

    pub(crate) fn open(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(self.store()?))
    }

    pub(crate) fn store(&self) -> Result<Postgres, Error> {
        Ok(self.0.open().map_err(refused)?)
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.0.store_name().is_ok_and(|called| called == name)
    }

    pub(crate) fn identity(&self) -> Option<String> {
        self.0.store_name().ok()
    }

    pub(crate) fn resolved(&self) -> Option<Self> {
        self.0.resolved().ok().map(|builder| Self(Box::new(builder)))
    }

    pub(crate) fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    /// The statements that create the tables, for an administrator.
    pub(crate) fn creation_statements(&self) -> String {
        self.0.creation_statements()
    }

    /// The statements that install the fences, for an administrator.
    pub(crate) fn fence_statements(&self) -> Result<String, StoreError> {
        self.0.fence_statements().map_err(refused)
    }
}

fn refused(error: OpenError) -> StoreError {
    error.into()
}

/// Options of a URL that belong together, whatever their order.
#[derive(Default)]
struct PostgresOptions {
    hosts: Vec<(String, Option<u16>)>,
    named: Option<String>,
    ports: Option<String>,
    seen: Vec<String>,
}

impl PostgresOptions {
    fn set(
        &mut self,
        builder: PostgresBuilder,
        name: &str,
        value: &str,
    ) -> Result<PostgresBuilder, UrlError> {
        // Each risk is accepted by its own name.
        if self.seen.iter().any(|seen| seen == name) && name != "accept" {
            return Err(UrlError::new(format!("a database has one {name}, and this URL says it twice")));
        }
        self.seen.push(name.to_owned());
        Ok(match (name, value) {
            ("host", names) => {
                self.named = Some(names.to_owned());
                builder
            }
            ("port", ports) => {
                self.ports = Some(ports.to_owned());
                builder
            }
            ("user", user) => builder.user(user),
            ("dbname", database) => builder.database(database),
            ("schema", schema) => builder.schema(schema),
            ("table", table) => builder.table(table),
            ("service", service) => builder.service(service),
            ("password" | "sslpassword", _) => return Err(no_password()),
            ("accept", "server-clock") => builder.accept_server_clock(),
            ("accept", "fsync-off") => builder.accept_fsync_off(),
            ("accept", _) => {
                return Err(UrlError::new(
                    "accept can be server-clock, for ages by the server's wall clock, or fsync-off, for a server that \
                     may lose acknowledged writes",
                ));
            }
            (name, value) => builder.parameter(name, value),
        })
    }

    /// Adds the hosts and their ports.
    fn finish(self, mut builder: PostgresBuilder) -> Result<PostgresBuilder, UrlError> {
        let ports: Vec<_> = self.ports.as_deref().map(|ports| ports.split(',').collect()).unwrap_or_default();
        let mut hosts = self.hosts;
        if let Some(named) = &self.named {
            if !hosts.is_empty() {
                return Err(UrlError::new(
                    "the URL names its host twice: before the database, and with host=",
                ));
            }
            hosts = named.split(',').map(|name| (name.to_owned(), None)).collect();
        }
        if ports.len() > 1 && ports.len() != hosts.len() {
            return Err(UrlError::new("port= names one port for all hosts, or one for each"));
        }
        for (at, (name, own)) in hosts.iter().enumerate() {
            let listed = ports.get(at).or(ports.first()).filter(|port| !port.is_empty());
            let port = match (own, listed) {
                (Some(own), _) => Some(*own),
                (None, listed) => listed.map(|port| parse_port(port)).transpose()?,
            };
            builder = builder.host_at(name, port);
        }
        match (hosts.is_empty(), ports.first()) {
            (true, Some(port)) => Ok(builder.port(parse_port(port)?)),
            _ => Ok(builder),
        }
    }
}

/// The hosts of a URL, each with its port: `a:5432,b,[::1]:5433`.
fn hosts_of(text: &str) -> Result<Vec<(String, Option<u16>)>, UrlError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let hosts = text.split(',').map(|host| {
        let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((name, port)) => (name, port.strip_prefix(':')),
            None => match host.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (host, None),
            },
        };
        let port = port.filter(|port| !port.is_empty()).map(parse_port).transpose()?;
        Ok((decode(name)?, port))
    });
    hosts.collect()
}

fn parse_port(text: &str) -> Result<u16, UrlError> {
    let port = text.parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| UrlError::new(format!("a port is a number from 1 to 65535: write it like {EXAMPLE}")))
}

fn no_password() -> UrlError {
    UrlError::new(format!(
        "the URL of a store carries no password: put it into PGPASSWORD, into the file ~/.pgpass, or into a service \
         file, and write it like {EXAMPLE}"
    ))
}

impl fmt::Display for PostgresPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const EXAMPLE: &str = "postgres://role@db.example.org/app";
