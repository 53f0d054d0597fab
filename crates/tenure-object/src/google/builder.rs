use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{ClientOptions, RetryConfig};
use tenure_store::Guarantees;

use super::credentials::{GoogleCredentials, Token};
use super::{Google, GoogleDialect, HEADERS};
use crate::inner::{InnerStore, Parts};
use crate::open::{Endpoint, Environment, OpenError, Settings, network, shared_settings};
use crate::wire::{Connector, NetworkSettings, Proxy};

/// Location of a bucket of Google Cloud Storage, and the way to reach it. Settings that are not given here come from
/// the environment.
///
/// Its `Display` is the equivalent URL, without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder opens nothing until open() is called"]
pub struct GoogleBuilder {
    bucket: String,
    settings: Settings,
    token: Option<Token>,
}

shared_settings!(GoogleBuilder);

impl GoogleBuilder {
    pub(super) fn new(bucket: &str) -> Self {
        let mut builder = Self { bucket: bucket.to_owned(), settings: Settings::default(), token: None };
        builder.settings.require(is_bucket(bucket), || {
            format!(
                "{bucket:?} is not the name of a bucket: it has 3 to 63 lowercase letters, digits, dashes and underscores, \
                 or several such parts with dots between them"
            )
        });
        builder
    }

    /// Connects to this server instead of `https://storage.googleapis.com`: a regional or private endpoint of Google,
    /// or a server with the same XML API. An unencrypted endpoint is accepted only on this machine, unless it is
    /// [accepted](Self::accept_http) explicitly. It must not name the bucket, which Tenure adds itself.
    pub fn endpoint(mut self, url: &str) -> Self {
        self.settings.set_endpoint(url);
        self
    }

    /// Trusts the certificates in this PEM file, in addition to those that the machine trusts: for a server whose
    /// certificate is signed by a private authority. The path is absolute. Default: the file in
    /// `CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE`.
    pub fn ca(mut self, path: &str) -> Self {
        self.settings.set_ca(path);
        self
    }

    /// Sends this access token with every request. It is never replaced.
    pub fn token(mut self, token: &str) -> Self {
        match Token::parse(token, "the access token") {
            Ok(token) => self.token = Some(token),
            Err(error) => self.settings.fail(error),
        }
        self
    }

    /// Fails if a setting so far cannot be right.
    pub fn check(&self) -> Result<(), OpenError> {
        self.settings.check()?;
        let named = self
            .settings
            .endpoint
            .as_ref()
            .and_then(|named| Some((named, named.without_bucket(&self.bucket)?)));
        match named {
            Some((endpoint, server)) => Err(OpenError::invalid(format!(
                "endpoint={endpoint} names the bucket {:?}, which Tenure adds itself, so the requests would address other \
                 objects: write endpoint={server} in the URL",
                self.bucket
            ))),
            None => Ok(()),
        }
    }

    /// Opens the store. Sends nothing yet.
    pub fn open(&self) -> Result<Google, OpenError> {
        self.open_in(&Environment::of_process())
    }

    /// Like [`open`](Self::open), with these variables instead of those of this process.
    pub fn open_in(&self, environment: &Environment) -> Result<Google, OpenError> {
        self.check()?;
        let credentials = match &self.token {
            Some(token) => GoogleCredentials::Token(token.clone()),
            None => GoogleCredentials::find(self.settings.instance, environment)?,
        };
        let (chosen, endpoint) = (self.settings.proxy.as_ref(), self.settings.endpoint.as_ref());
        let unencrypted = self.settings.is_plain() && !credentials.need_tls() && chosen.is_none();
        let (proxies, proxy) = network::proxies(chosen, endpoint, GOOGLE, environment)?;
        let bundle = environment.get(CA_VARIABLE).map(Path::new);
        let network = NetworkSettings {
            unencrypted,
            roots: network::roots(self.settings.ca.as_deref(), bundle, unencrypted)?,
            ca_variable: Some(CA_VARIABLE),
            proxies,
            names: &HEADERS,
            header: None,
        };
        let connector = Connector::new(network);
        let builder = GoogleCloudStorageBuilder::new()
            .with_bucket_name(&self.bucket)
            // Always set: a service account key could name another server.
            .with_base_url(&endpoint.map_or_else(|| GOOGLE.to_owned(), Endpoint::to_string))
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_client_options(ClientOptions::new().with_allow_http(self.settings.is_plain()))
            .with_http_connector(connector.clone());
        let (builder, kept) = credentials.apply(builder, &connector)?;
        let client = builder
            .build()
            .map_err(|error| OpenError::denied(format!("the Google client could not be created: {error}")))?;
        Ok(Google(Arc::new(InnerStore::new(Parts {
            client,
            dialect: GoogleDialect { bucket: self.bucket.clone(), is_google: self.is_google() },
            credentials: kept.map(|kept| kept as _),
            connector,
            names: self.settings.names(),
            guarantees: self.guarantees(),
            url: self.name(),
            place: self.through(proxy).to_string(),
        }))))
    }

    /// Name of the store. Opens nothing, so it needs no credentials.
    pub fn store_name(&self) -> Result<String, OpenError> {
        self.check().map(|()| self.name())
    }

    /// The same store: the environment adds nothing that changes which objects it addresses.
    pub fn resolved(&self) -> Result<Self, OpenError> {
        self.check().map(|()| self.clone())
    }

    /// Guarantees of the store. Opens nothing, so it needs no credentials.
    pub fn guarantees(&self) -> Guarantees {
        // Every write makes a new generation, also one of equal bytes.
        self.settings.guarantees(true, WRITE_INTERVAL)
    }

    fn is_google(&self) -> bool {
        self.settings.endpoint.as_ref().is_none_or(|endpoint| endpoint.host().ends_with(".googleapis.com"))
    }

    fn name(&self) -> String {
        Self { settings: self.settings.naming(), ..self.clone() }.to_string()
    }

    /// The same store behind this proxy. One from the environment may have its own cache, just as a chosen one.
    fn through(&self, proxy: Option<Proxy>) -> Self {
        let mut through = self.clone();
        through.settings.proxy = proxy.or(through.settings.proxy);
        through
    }
}

impl fmt::Display for GoogleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.write_url(f, "gs", &self.bucket, &[])
    }
}

/// A name with dots may be longer than a part of it.
fn is_bucket(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        (1..=63).contains(&part.len()) && part.bytes().all(|byte| plain(byte) || b"-_".contains(&byte))
    };
    (3..=222).contains(&name.len())
        && name.split('.').all(is_part)
        && name.bytes().next().is_some_and(plain)
        && name.bytes().last().is_some_and(plain)
}

/// The address of Google Cloud Storage.
const GOOGLE: &str = "https://storage.googleapis.com";

/// The variable of `gcloud` for a file of certificates.
const CA_VARIABLE: &str = "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE";

/// The published limit is one write per second and object; the server answers more with 429.
const WRITE_INTERVAL: Duration = Duration::from_millis(1100);
