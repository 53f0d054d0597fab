use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tenure_store::{Guarantees, Key, Reach, StoreClock};

use super::{Endpoint, OpenError};
use crate::inner::{OBJECT_MAX, VALUE_MAX};
use crate::name::{self, Names};
use crate::wire::Proxy;

/// The settings that a builder of every dialect has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) prefix: String,
    pub(crate) endpoint: Option<Endpoint>,
    /// True if credentials come from the machine's metadata address.
    pub(crate) instance: bool,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) write_interval: Option<Duration>,
    /// True if a key is the name of its object.
    exact_names: bool,
    http: bool,
    server_clock: bool,
    /// The first error. [`check`](Self::check) returns it, so that the methods of a builder can be chained.
    first_error: Option<OpenError>,
}

impl Settings {
    pub(crate) fn set_prefix(&mut self, prefix: &str) {
        prefix.clone_into(&mut self.prefix);
        if prefix.len() > Key::MAX_BYTES {
            return self.require(false, || {
                format!("a prefix has at most {} bytes, and this one has {}", Key::MAX_BYTES, prefix.len())
            });
        }
        if Key::from_stored(prefix).is_ok_and(|key| key.is_reserved()) {
            return self
                .require(false, || format!("{prefix:?} is not a prefix: Tenure keeps its own keys there"));
        }
        let is_prefix = prefix.is_empty() || Key::from_stored(prefix).is_ok() && name::is_plain(prefix);
        self.require(is_prefix, || {
            format!("{prefix:?} is not a prefix: write it like prod/locks, without . and .. and backslashes")
        });
    }

    pub(crate) fn set_exact_names(&mut self) {
        self.exact_names = true;
    }

    /// The object that the prefix names, which then is no prefix any more.
    pub(crate) fn take_object(&mut self) -> Result<Key, OpenError> {
        self.check()?;
        let name = std::mem::take(&mut self.prefix);
        self.exact_names = true;
        Key::parse(&name).map_err(|error| OpenError::invalid(format!("the URL names no object: {error}")))
    }

    pub(crate) fn names(&self) -> Names {
        Names::below(&self.prefix).exact(self.exact_names)
    }

    pub(crate) fn set_endpoint(&mut self, url: &str) {
        match Endpoint::parse(url) {
            Ok(endpoint) => self.endpoint = Some(endpoint),
            Err(error) => self.fail(error),
        }
    }

    pub(crate) fn set_ca(&mut self, path: &str) {
        self.ca = Some(path.into());
        self.require(Path::new(path).is_absolute() && !path.contains('\0'), || {
            format!(
                "{path:?} is not the absolute path of a certificate file: write it like ca=/etc/ssl/my-ca.pem"
            )
        });
    }

    pub(crate) fn set_proxy(&mut self, url: &str) {
        match Proxy::parse(url) {
            Ok(proxy) if proxy.has_password() => self.require(false, || {
                "neither the URL of a store nor that of its proxy carries a password: put it into HTTPS_PROXY or \
                 HTTP_PROXY"
                    .to_owned()
            }),
            Ok(proxy) => self.proxy = Some(proxy),
            Err(error) => self.require(false, || format!("proxy= {error}")),
        }
    }

    pub(crate) fn accept_http(&mut self) {
        self.http = true;
    }

    pub(crate) fn accept_server_clock(&mut self) {
        self.server_clock = true;
    }

    /// Records an error, unless there was one before.
    pub(crate) fn fail(&mut self, error: OpenError) {
        self.first_error.get_or_insert(error);
    }

    /// Records an error with this message, unless the setting is right.
    pub(crate) fn require(&mut self, right: bool, sentence: impl FnOnce() -> String) {
        if !right {
            self.fail(OpenError::invalid(sentence()));
        }
    }

    /// Fails if a setting so far cannot be right.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if let Some(first_error) = &self.first_error {
            return Err(first_error.clone());
        }
        let Some(endpoint) = self.endpoint.as_ref().filter(|endpoint| !endpoint.is_encrypted()) else {
            return Ok(());
        };
        if self.http {
            return Ok(());
        }
        if let Some(proxy) = self.proxy.as_ref().filter(|proxy| !proxy.is_loopback()) {
            return Err(OpenError::invalid(format!(
                "{endpoint} is not encrypted, and the proxy {proxy} is not on this machine, so anyone on the network \
                 path can read and change the requests: use https, or accept it with accept=http in the URL"
            )));
        }
        if !endpoint.is_loopback() {
            return Err(OpenError::invalid(format!(
                "{endpoint} is not encrypted and not on this machine, so anyone on the network path can read and \
                 change the requests: use https, or accept it with accept=http in the URL"
            )));
        }
        Ok(())
    }

    /// True if the endpoint is not encrypted.
    pub(crate) fn is_plain(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| !endpoint.is_encrypted())
    }

    /// The settings that name the store: the same for every caller, whatever route they use, whatever credentials they
    /// have and whatever they accept about its clock.
    pub(crate) fn naming(&self) -> Self {
        Self { server_clock: false, ca: None, proxy: None, instance: false, ..self.clone() }
    }

    /// Guarantees of a store with conditional writes. `write_interval` is the provider's.
    pub(crate) fn guarantees(&self, unique_versions: bool, write_interval: Duration) -> Guarantees {
        let mut guarantees = Guarantees::default();
        guarantees.atomic_create = true;
        guarantees.atomic_replace = true;
        guarantees.linearizable_reads = true;
        guarantees.keeps_acknowledged = true;
        guarantees.unique_versions = unique_versions;
        guarantees.reach = Reach::Network;
        // The `Date` of an answer comes from the wall clock of the server that answers.
        guarantees.clock = if self.server_clock { StoreClock::Ages } else { StoreClock::Floors };
        guarantees.clock_tick = Duration::from_secs(1);
        guarantees.watch = false;
        guarantees.write_interval = self.write_interval.unwrap_or(write_interval);
        guarantees.value_max = if self.exact_names { OBJECT_MAX } else { VALUE_MAX };
        guarantees
    }

    /// Writes the URL of a store, without any secret. `own` are the options that only this dialect has.
    pub(crate) fn write_url(
        &self,
        f: &mut fmt::Formatter<'_>,
        scheme: &str,
        container: &str,
        own: &[(&str, Option<String>)],
    ) -> fmt::Result {
        write!(f, "{scheme}://{container}")?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", utf8_percent_encode(&self.prefix, &ESCAPED))?;
        }
        let flag = |on: bool, value: &str| on.then(|| value.to_owned());
        let before = [("endpoint", self.endpoint.as_ref().map(Endpoint::to_string))];
        let after = [
            ("credentials", flag(self.instance, "instance")),
            ("ca", self.ca.as_ref().map(|path| path.display().to_string())),
            ("proxy", self.proxy.as_ref().map(Proxy::to_string)),
            ("accept", flag(self.http, "http")),
            ("accept", flag(self.server_clock, "server-clock")),
        ];
        let mut separator = '?';
        for (name, value) in before.iter().chain(own).chain(&after) {
            if let Some(value) = value {
                write!(f, "{separator}{name}={}", utf8_percent_encode(value, &ESCAPED))?;
                separator = '&';
            }
        }
        Ok(())
    }
}

/// Adds the methods for the shared settings to a builder with a field `settings`.
macro_rules! shared_settings {
    ($builder:ident) => {
        impl $builder {
            /// Keeps all objects below this prefix, such as `prod/locks`. The prefix belongs to this store alone: a
            /// store whose prefix lies below that of another shares objects with it.
            pub fn prefix(mut self, prefix: &str) -> Self {
                self.settings.set_prefix(prefix);
                self
            }

            /// Uses each key as the exact name of its object, below the prefix, without suffix and escapes, and accepts
            /// values of up to 64 MiB. For objects that users name themselves, such as fenced values; leases and their
            /// objects use the other names.
            pub fn exact_names(mut self) -> Self {
                self.settings.set_exact_names();
                self
            }

            /// The same bucket with [exact names](Self::exact_names) and no prefix, and the key of the object that the
            /// prefix names. For a URL such as `s3://bucket/reports/today.csv`.
            pub fn object(mut self) -> Result<(Self, tenure_store::Key), $crate::OpenError> {
                let key = self.settings.take_object()?;
                Ok((self, key))
            }

            /// Requests credentials from the machine's metadata address. By default Tenure never contacts it.
            pub fn instance_credentials(mut self) -> Self {
                self.settings.instance = true;
                self
            }

            /// Accepts an unencrypted endpoint that is not on this machine: anyone on the network path can read and
            /// change the requests and answers.
            pub fn accept_http(mut self) -> Self {
                self.settings.accept_http();
                self
            }

            /// Accepts the server's wall clock as a judge: the age of a record is the `Date` of the answer that shows
            /// it, minus its `Last-Modified`. A contender that has just started then need not wait for a ttl before it
            /// takes over from a holder that died long ago. The risk: a clock that is set forward, by hand, by NTP or
            /// because another server answers, ends the leases of live holders. Two may then hold one lease until the
            /// first notices, and only the fence protects.
            pub fn accept_server_clock(mut self) -> Self {
                self.settings.accept_server_clock();
                self
            }

            /// Sends all requests through this proxy: `http://proxy.example.org:3128`. The URL has no password: a proxy
            /// that requires one is named in the environment. Default: the proxy in `HTTPS_PROXY` and similar
            /// variables, and none for an endpoint on this machine.
            pub fn proxy(mut self, url: &str) -> Self {
                self.settings.set_proxy(url);
                self
            }

            /// Sets the shortest interval between two writes of one object, for a caller that knows the server better
            /// than Tenure does.
            pub fn write_interval(mut self, interval: std::time::Duration) -> Self {
                self.settings.write_interval = Some(interval);
                self
            }
        }
    };
}

pub(crate) use shared_settings;

/// Characters that must be escaped in the path or an option of a URL.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'+')
    .remove(b',')
    .remove(b':')
    .remove(b'@');
