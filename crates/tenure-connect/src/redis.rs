use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tenure::Error;
use tenure_redis::{Redis, RedisBuilder};
use tenure_store::{Guarantees, Store, StoreError};

use crate::UrlError;
use crate::decode::decode;

/// A Redis or Valkey server, and the way to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedisPlace(Box<RedisBuilder>);

impl RedisPlace {
    /// Parses the part after the scheme. Errors never repeat it: it may contain a password.
    pub(crate) fn parse(scheme: &str, rest: &str) -> Result<Self, UrlError> {
        let Some(rest) = rest.strip_prefix("//") else {
            return Err(UrlError::new(format!("{scheme}: lacks two slashes: write it like {EXAMPLE}")));
        };
        if rest.contains('#') {
            return Err(UrlError::new(
                "the URL of a store cannot have a part after '#': write %23 where it belongs to the prefix",
            ));
        }
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, place),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(UrlError::new(format!(
                "the URL of a store carries no password: put it into REDISCLI_AUTH, or into a file that password-file= \
                 names, and write the URL like {EXAMPLE}"
            )));
        }
        let (is_encrypted, kind) = match scheme.strip_prefix("rediss") {
            Some(kind) => (true, kind),
            None => (false, scheme.strip_prefix("redis").unwrap_or_default()),
        };
        let (addresses, path) = place.split_once('/').unwrap_or((place, ""));
        let builder = match kind {
            "+unix" => Redis::at_socket(&decode(place)?),
            "+sentinel" => Redis::by_sentinel(addresses, &decode(path)?),
            _ if addresses.is_empty() => {
                return Err(UrlError::new(format!("{scheme}:// names no server: write it like {EXAMPLE}")));
            }
            _ => with_database(Redis::builder(addresses), path)?,
        };
        let mut builder = if is_encrypted { builder.tls() } else { builder };
        if let Some(user) = user {
            builder = builder.user(&decode(user)?);
        }
        let mut options = RedisOptions::default();
        for option in crate::options::options(query) {
            let (name, value) = option.split_once('=').unwrap_or((&option, ""));
            builder = options.set(builder, name, &decode(value)?)?;
        }
        builder = options.finish(builder)?;
        builder.check().map_err(|error| UrlError::new(error.to_string()))?;
        Ok(Self(Box::new(builder)))
    }

    pub(crate) fn open(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(self.0.open().map_err(StoreError::from)?))
    }

    pub(crate) async fn risks(&self) -> Result<Vec<String>, Error> {
        Ok(self.0.open().map_err(StoreError::from)?.risks().await?)
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.0.store_name() == name
    }

    pub(crate) fn identity(&self) -> String {
        self.0.store_name()
    }

    pub(crate) fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }
}

/// The path of the URL is the number of a database, as in the URLs of other clients.
fn with_database(builder: RedisBuilder, path: &str) -> Result<RedisBuilder, UrlError> {
    match path {
        "" => Ok(builder),
        number => Ok(builder.database(database(number)?)),
    }
}

fn database(number: &str) -> Result<u32, UrlError> {
    number.parse().map_err(|_| UrlError::new(format!("a database has a number: write it like {EXAMPLE}/0")))
}

/// Options that were set so far.
#[derive(Default)]
struct RedisOptions {
    seen: Vec<String>,
    replicas: Option<u32>,
    on_disk: bool,
}

impl RedisOptions {
    fn set(&mut self, builder: RedisBuilder, name: &str, value: &str) -> Result<RedisBuilder, UrlError> {
        // Each risk is accepted by its own name.
        if name != "accept" && self.seen.iter().any(|seen| seen == name) {
            return Err(UrlError::new(format!("a Redis store has one {name}, and this URL says it twice")));
        }
        self.seen.push(name.to_owned());
        match (name, value) {
            ("db", number) => Ok(builder.database(database(number)?)),
            ("prefix", prefix) => Ok(builder.prefix(prefix)),
            ("quarantine", span) => Ok(builder.quarantine(span_of(span)?)),
            ("wait", number) => {
                self.replicas =
                    Some(number.parse().map_err(|_| UrlError::new("wait is a number of replicas"))?);
                Ok(builder)
            }
            ("wait-disk", "true") => {
                self.on_disk = true;
                Ok(builder)
            }
            ("wait-disk", _) => {
                Err(UrlError::new("wait-disk can only be true, for replicas that must have a write on disk"))
            }
            ("ca", path) => Ok(builder.ca(path)),
            ("password-file", path) => Ok(builder.password_file(path)),
            ("accept", "restart") => Ok(builder.accept_restart()),
            ("accept", "failover") => Ok(builder.accept_failover()),
            ("accept", "eviction") => Ok(builder.accept_eviction()),
            ("accept", "unknown-settings") => Ok(builder.accept_unknown_settings()),
            ("accept", _) => Err(UrlError::new(
                "accept can be restart, for leases that a restart of the server may lose; failover, for replicas, \
                 sentinels and clusters; eviction, for a server that evicts keys; or unknown-settings, for a server that \
                 does not show its settings",
            )),
            (name, _) => Err(UrlError::new(format!(
                "a Redis store has no option {name:?}: it has db, prefix, quarantine, wait, wait-disk, ca, password-file \
                 and accept, as in {EXAMPLE}?prefix=prod:"
            ))),
        }
    }

    fn finish(&self, builder: RedisBuilder) -> Result<RedisBuilder, UrlError> {
        match (self.replicas, self.on_disk) {
            (Some(replicas), on_disk) => Ok(builder.wait_for_replicas(replicas, on_disk)),
            (None, true) => Err(UrlError::new("wait-disk needs wait, the number of replicas")),
            (None, false) => Ok(builder),
        }
    }
}

/// A number of seconds or milliseconds, as in `10s` or `1500ms`.
fn span_of(text: &str) -> Result<Duration, UrlError> {
    let (number, unit): (&str, fn(u64) -> Duration) = match (text.strip_suffix("ms"), text.strip_suffix('s'))
    {
        (Some(number), _) => (number, Duration::from_millis),
        (None, Some(number)) => (number, Duration::from_secs),
        (None, None) => ("", Duration::from_secs),
    };
    let number = number.parse().map_err(|_| UrlError::new("quarantine is a time such as 10s or 1500ms"))?;
    Ok(unit(number))
}

impl fmt::Display for RedisPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

const EXAMPLE: &str = "redis://127.0.0.1:6379";
