use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, RetryConfig};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tenure_store::{Guarantees, Key, Reach, StoreClock};

use super::credentials::{Credentials, Keys};
use super::profile::Profile;
use super::provider::Provider;
use super::{HEADERS, S3, S3Dialect};
use crate::inner::{InnerStore, Parts};
use crate::name::{self, Names};
use crate::open::{Endpoint, Environment, OpenError, network};
use crate::wire::{Connector, NetworkSettings, Proxy};

/// Location of a bucket, and the way to reach it. Settings that are not given here come from the environment.
///
/// Its `Display` is the equivalent URL, without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder opens nothing until open() is called"]
pub struct S3Builder {
    bucket: String,
    prefix: String,
    endpoint: Option<Endpoint>,
    region: Option<String>,
    path_style: Option<bool>,
    bare_etags: bool,
    profile: Option<String>,
    instance: bool,
    http: bool,
    server_clock: bool,
    ca: Option<PathBuf>,
    proxy: Option<Proxy>,
    keys: Option<Keys>,
    write_interval: Option<Duration>,
    /// The first error. [`check`](Self::check) returns it, so that the other methods can be chained.
    first_error: Option<OpenError>,
}

impl S3Builder {
    pub(super) fn new(bucket: &str) -> Self {
        let builder = Self {
            bucket: bucket.to_owned(),
            prefix: String::new(),
            endpoint: None,
            region: None,
            path_style: None,
            bare_etags: false,
            profile: None,
            instance: false,
            http: false,
            server_clock: false,
            ca: None,
            proxy: None,
            keys: None,
            write_interval: None,
            first_error: None,
        };
        builder.require(is_bucket(bucket), || {
            format!(
                "{bucket:?} is not the name of a bucket: it has 3 to 63 small letters, digits, dots and dashes"
            )
        })
    }

    /// Keeps all objects below this prefix, such as `prod/locks`. The prefix belongs to this store alone: a store whose
    /// prefix lies below that of another shares objects with it.
    pub fn prefix(mut self, prefix: &str) -> Self {
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
        })
    }

    /// Connects to this server instead of AWS: `https://s3.example.org`. An unencrypted endpoint is accepted only on
    /// this machine, unless it is [accepted](Self::accept_http) explicitly.
    pub fn endpoint(mut self, url: &str) -> Self {
        match Endpoint::parse(url) {
            Ok(endpoint) => self.endpoint = Some(endpoint),
            Err(error) => self.first_error = self.first_error.or(Some(error)),
        }
        self
    }

    /// Sets the region of the bucket: `eu-west-1`.
    pub fn region(mut self, region: &str) -> Self {
        self.region = Some(region.to_owned());
        let plain = region.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        self.require(plain && !region.is_empty(), || {
            format!("{region:?} is not the name of a region: write it like eu-west-1")
        })
    }

    /// True names the bucket in the path of each request, false in front of the host. Default: in the path for servers
    /// other than AWS, and for buckets with a dot in their name.
    pub fn path_style(mut self, path_style: bool) -> Self {
        self.path_style = Some(path_style);
        self
    }

    /// Sends ETags back without their quotes: some servers (older Ceph, DigitalOcean) match them only in this form.
    pub fn bare_etags(mut self) -> Self {
        self.bare_etags = true;
        self
    }

    /// The same bucket with the other form of ETags, and true if that form is without quotes.
    pub fn with_other_etags(mut self) -> (Self, bool) {
        self.bare_etags = !self.bare_etags;
        let bare = self.bare_etags;
        (self, bare)
    }

    /// Uses the key of this profile in the files of AWS's own tools.
    pub fn profile(mut self, name: &str) -> Self {
        self.profile = Some(name.to_owned());
        let plain = !name.is_empty() && !name.contains(['[', ']', '\n', '\r']);
        self.require(plain, || format!("{name:?} is not the name of a profile"))
    }

    /// Requests credentials from the machine's metadata address. By default Tenure never contacts it.
    pub fn instance_credentials(mut self) -> Self {
        self.instance = true;
        self
    }

    /// Accepts an unencrypted endpoint that is not on this machine: anyone on the network path can read and change the
    /// requests and answers.
    pub fn accept_http(mut self) -> Self {
        self.http = true;
        self
    }

    /// Accepts the server's wall clock as a judge: the age of a record is the `Date` of the answer that shows it, minus
    /// its `Last-Modified`. A contender that has just started then need not wait for a ttl before it takes over from a
    /// holder that died long ago. The risk: a clock that is set forward, by hand, by NTP or because another server
    /// answers, ends the leases of live holders. Two may then hold one lease until the first notices, and only the
    /// fence protects.
    pub fn accept_server_clock(mut self) -> Self {
        self.server_clock = true;
        self
    }

    /// Trusts the certificates in this PEM file, in addition to those that the machine trusts: for a server whose
    /// certificate is signed by a private authority. The path is absolute. Default: the file in `AWS_CA_BUNDLE`.
    pub fn ca(mut self, path: &str) -> Self {
        self.ca = Some(path.into());
        self.require(Path::new(path).is_absolute() && !path.contains('\0'), || {
            format!(
                "{path:?} is not the absolute path of a certificate file: write it like ca=/etc/ssl/my-ca.pem"
            )
        })
    }

    /// Sends all requests through this proxy: `http://proxy.example.org:3128`. The URL has no password: a proxy that
    /// requires one is named in the environment. Default: the proxy in `HTTPS_PROXY` and similar variables, and none
    /// for an endpoint on this machine.
    pub fn proxy(mut self, url: &str) -> Self {
        match Proxy::parse(url) {
            Ok(proxy) if proxy.has_password() => self.require(false, || {
                "neither the URL of a store nor that of its proxy carries a password: put it into HTTPS_PROXY or \
                 HTTP_PROXY"
                    .to_owned()
            }),
            Ok(proxy) => {
                self.proxy = Some(proxy);
                self
            }
            Err(error) => self.require(false, || format!("proxy= {error}")),
        }
    }

    /// Signs requests with this access key.
    pub fn keys(mut self, id: &str, secret: &str) -> Self {
        self.keys = Some(Keys { id: id.to_owned(), secret: secret.to_owned(), token: None });
        self
    }

    /// Sets the shortest interval between two writes of one object, for a caller that knows the server better than the
    /// table of providers does.
    pub fn write_interval(mut self, interval: Duration) -> Self {
        self.write_interval = Some(interval);
        self
    }

    /// Fails if a setting so far cannot be right.
    pub fn check(&self) -> Result<(), OpenError> {
        if let Some(first_error) = &self.first_error {
            return Err(first_error.clone());
        }
        match &self.endpoint {
            Some(endpoint) => self.check_endpoint(endpoint),
            None => Ok(()),
        }
    }

    /// Opens the store. Sends nothing yet.
    pub fn open(&self) -> Result<S3, OpenError> {
        self.open_in(&Environment::of_process())
    }

    /// Like [`open`](Self::open), with other variables than those of this process.
    pub fn open_in(&self, environment: &Environment) -> Result<S3, OpenError> {
        let (resolved, profile) = self.resolve(environment)?;
        let credentials = match &self.keys {
            Some(keys) => Credentials::Keys(keys.clone()),
            None => Credentials::find(profile.as_ref(), self.profile.is_some(), self.instance, environment)?,
        };
        let (endpoint, provider) = (resolved.endpoint.as_ref(), resolved.provider());
        if let Some(refused) = provider.refused {
            return Err(OpenError::unsupported(format!("{refused}: use another store")));
        }
        let region = resolved.region.clone().expect("it was found");
        let path_style = resolved.path_style.unwrap_or(endpoint.is_some() || self.bucket.contains('.'));
        let plain = endpoint.is_some_and(|endpoint| !endpoint.is_encrypted());
        let unencrypted = plain && matches!(credentials, Credentials::Keys(_)) && self.proxy.is_none();
        let (proxies, proxy) = network::proxies(self.proxy.as_ref(), endpoint, AWS, environment)?;
        let bundle = environment.get("AWS_CA_BUNDLE");
        let bundle = bundle.or_else(|| profile.as_ref()?.get("ca_bundle")).map(Path::new);
        let network = NetworkSettings {
            unencrypted,
            roots: network::roots(self.ca.as_deref(), bundle, unencrypted)?,
            proxies,
            names: &HEADERS,
            header: provider.header(),
        };
        let connector = Connector::new(network);
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(&self.bucket)
            .with_region(region)
            .with_virtual_hosted_style_request(!path_style)
            // One object per request, which every server supports.
            .with_disable_bulk_delete(true)
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_http_connector(connector.clone());
        builder = builder.with_client_options(ClientOptions::new().with_allow_http(plain));
        if let Some(endpoint) = endpoint {
            let address = if path_style { endpoint.to_string() } else { endpoint.of_bucket(&self.bucket)? };
            builder = builder.with_endpoint(address);
        }
        let client = credentials
            .apply(builder)
            .build()
            .map_err(|error| OpenError::denied(format!("the S3 client could not be created: {error}")))?;
        Ok(S3(Arc::new(InnerStore::new(Parts {
            client,
            dialect: S3Dialect {
                bucket: self.bucket.clone(),
                offered_by: provider.name,
                bare_etags: self.bare_etags,
            },
            connector,
            names: Names::below(&self.prefix),
            guarantees: resolved.guarantees(),
            url: resolved.name(),
            // A proxy from the environment may have its own cache, just as a chosen one.
            place: Self { proxy: proxy.or(self.proxy.clone()), ..resolved }.to_string(),
        }))))
    }

    /// Name of the store. Opens nothing, so it needs no credentials.
    pub fn store_name(&self) -> Result<String, OpenError> {
        self.resolve(&Environment::of_process()).map(|(resolved, _)| resolved.name())
    }

    /// Guarantees of the store. Opens nothing, so it needs no credentials.
    pub fn guarantees(&self) -> Guarantees {
        let mut guarantees = Guarantees::default();
        guarantees.atomic_create = true;
        guarantees.atomic_replace = true;
        guarantees.linearizable_reads = true;
        guarantees.keeps_acknowledged = true;
        // ETags are hashes of the content.
        guarantees.unique_versions = false;
        guarantees.reach = Reach::Network;
        // The `Date` of an answer comes from the wall clock of the server that answers.
        guarantees.clock = if self.server_clock { StoreClock::Ages } else { StoreClock::Floors };
        guarantees.watch = false;
        guarantees.write_interval = self.write_interval.unwrap_or(self.provider().write_interval);
        guarantees.value_max = S3::VALUE_MAX;
        guarantees
    }

    /// This store with the settings of the environment added, and the profile that was consulted. Credentials are not part of it: it is the same store for every caller.
    fn resolve(&self, environment: &Environment) -> Result<(Self, Option<Profile>), OpenError> {
        self.check()?;
        let profile = Profile::find(self.profile.as_deref(), environment)?;
        let of_profile = |setting| profile.as_ref().and_then(|profile| profile.get(setting));
        let mut resolved = Self { profile: None, instance: false, keys: None, ..self.clone() };
        if resolved.endpoint.is_none() {
            let url = environment.first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
            if let Some(url) = url.or_else(|| of_profile("endpoint_url")) {
                resolved = resolved.endpoint(url);
            }
        }
        if resolved.region.is_none() {
            let region = environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
            let region = region.or_else(|| of_profile("region"));
            // Other servers have no regions, but a signature needs one.
            let region = region.or(resolved.endpoint.is_some().then_some("us-east-1"));
            let Some(region) = region else {
                return Err(OpenError::invalid(format!(
                    "the region of the bucket {:?} is not known: write region=eu-west-1 in the URL, or set AWS_REGION",
                    self.bucket
                )));
            };
            resolved = resolved.region(region);
        }
        resolved.check()?;
        Ok((resolved, profile))
    }

    /// Name of the store: the same for every caller, whatever route they use and whatever they accept about its clock.
    fn name(&self) -> String {
        Self { server_clock: false, ca: None, proxy: None, ..self.clone() }.to_string()
    }

    fn provider(&self) -> &'static Provider {
        Provider::at(self.endpoint.as_ref().map(Endpoint::host))
    }

    fn check_endpoint(&self, endpoint: &Endpoint) -> Result<(), OpenError> {
        if let Some(proxy) = self.proxy.as_ref().filter(|_| !endpoint.is_encrypted() && !self.http)
            && !proxy.is_loopback()
        {
            return Err(OpenError::invalid(format!(
                "{endpoint} is not encrypted, and the proxy {proxy} is not on this machine, so anyone on the network \
                 path can read and change the requests: use https, or accept it with accept=http in the URL"
            )));
        }
        if !endpoint.is_encrypted() && !endpoint.is_loopback() && !self.http {
            return Err(OpenError::invalid(format!(
                "{endpoint} is not encrypted and not on this machine, so anyone on the network path can read and \
                 change the requests: use https, or accept it with accept=http in the URL"
            )));
        }
        if self.path_style == Some(false) {
            endpoint.of_bucket(&self.bucket)?;
        }
        Ok(())
    }

    fn require(mut self, right: bool, sentence: impl FnOnce() -> String) -> Self {
        if !right && self.first_error.is_none() {
            self.first_error = Some(OpenError::invalid(sentence()));
        }
        self
    }
}

impl fmt::Display for S3Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", utf8_percent_encode(&self.prefix, &ESCAPED))?;
        }
        let flag = |on: bool, value: &str| on.then(|| value.to_owned());
        let options = [
            ("endpoint", self.endpoint.as_ref().map(Endpoint::to_string)),
            ("region", self.region.clone()),
            ("path-style", self.path_style.map(|path_style| path_style.to_string())),
            ("etags", flag(self.bare_etags, "bare")),
            ("profile", self.profile.clone()),
            ("credentials", flag(self.instance, "instance")),
            ("ca", self.ca.as_ref().map(|path| path.display().to_string())),
            ("proxy", self.proxy.as_ref().map(Proxy::to_string)),
            ("accept", flag(self.http, "http")),
            ("accept", flag(self.server_clock, "server-clock")),
        ];
        let mut separator = '?';
        for (name, value) in options {
            if let Some(value) = value {
                write!(f, "{separator}{name}={}", utf8_percent_encode(&value, &ESCAPED))?;
                separator = '&';
            }
        }
        Ok(())
    }
}

fn is_bucket(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.bytes().all(|byte| plain(byte) || b".-".contains(&byte))
        && name.bytes().next().is_some_and(plain)
        && name.bytes().last().is_some_and(plain)
        && !name.contains("..")
}

/// An address of AWS.
const AWS: &str = "https://s3.amazonaws.com";

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
