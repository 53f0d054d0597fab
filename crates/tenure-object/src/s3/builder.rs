use std::fmt;
use std::path::Path;
use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, RetryConfig};
use tenure_store::Guarantees;

use super::credentials::{Keys, S3Credentials};
use super::profile::Profile;
use super::provider::Provider;
use super::{HEADERS, S3, S3Dialect};
use crate::inner::{InnerStore, Parts};
use crate::open::{Endpoint, Environment, OpenError, Settings, network, shared_settings};
use crate::wire::{Connector, NetworkSettings, Proxy};

/// Location of a bucket, and the way to reach it. Settings that are not given here come from the environment.
///
/// Its `Display` is the equivalent URL, without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder opens nothing until open() is called"]
pub struct S3Builder {
    bucket: String,
    settings: Settings,
    region: Option<String>,
    path_style: Option<bool>,
    bare_etags: bool,
    profile: Option<String>,
    keys: Option<Keys>,
}

shared_settings!(S3Builder);

impl S3Builder {
    pub(super) fn new(bucket: &str) -> Self {
        let builder = Self {
            bucket: bucket.to_owned(),
            settings: Settings::default(),
            region: None,
            path_style: None,
            bare_etags: false,
            profile: None,
            keys: None,
        };
        builder.require(is_bucket(bucket), || {
            format!(
                "{bucket:?} is not the name of a bucket: it has 3 to 63 lowercase letters, digits, dots and dashes"
            )
        })
        .require(!bucket.ends_with("--x-s3"), || {
            format!(
                "{bucket} is a directory bucket of S3 Express One Zone, which needs a protocol that Tenure does not \
                 speak (CreateSession): use a general purpose bucket"
            )
        })
    }

    /// Connects to this server instead of AWS: `https://s3.example.org`. An unencrypted endpoint is accepted only on
    /// this machine, unless it is [accepted](Self::accept_http) explicitly.
    ///
    /// The endpoint must not name the bucket, which Tenure adds itself. If the server's own name begins with that of the
    /// bucket, set [`path_style(true)`](Self::path_style).
    pub fn endpoint(mut self, url: &str) -> Self {
        self.settings.set_endpoint(url);
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

    /// Trusts the certificates in this PEM file, in addition to those that the machine trusts: for a server whose
    /// certificate is signed by a private authority. The path is absolute. Default: the file in `AWS_CA_BUNDLE`.
    pub fn ca(mut self, path: &str) -> Self {
        self.settings.set_ca(path);
        self
    }

    /// Signs requests with this access key.
    pub fn keys(mut self, id: &str, secret: &str) -> Self {
        let keys = Keys { id: id.to_owned(), secret: secret.to_owned(), token: None };
        if let Err(error) = keys.check(["the name of the access key", "the secret of the access key", ""]) {
            self.settings.fail(error);
        }
        self.keys = Some(keys);
        self
    }

    /// Fails if a setting so far cannot be right.
    pub fn check(&self) -> Result<(), OpenError> {
        self.settings.check()?;
        let Some(endpoint) = &self.settings.endpoint else { return Ok(()) };
        if self.path_style == Some(false) {
            endpoint.of_bucket(&self.bucket)?;
        }
        if self.path_style != Some(true) {
            self.check_bucket_in_endpoint(endpoint, "endpoint")?;
        }
        Ok(())
    }

    /// Opens the store. Sends nothing yet.
    pub fn open(&self) -> Result<S3, OpenError> {
        self.open_in(&Environment::of_process())
    }

    /// Like [`open`](Self::open), with these variables instead of those of this process.
    pub fn open_in(&self, environment: &Environment) -> Result<S3, OpenError> {
        let (resolved, profile) = self.resolve(environment)?;
        let (endpoint, provider) = (resolved.settings.endpoint.as_ref(), resolved.provider());
        if let Some(refused) = provider.refused {
            return Err(OpenError::unsupported(refused.replace("BUCKET", &self.bucket)));
        }
        let credentials = match &self.keys {
            Some(keys) => S3Credentials::Keys(keys.clone()),
            None => S3Credentials::find(
                profile.as_ref(),
                self.profile.is_some(),
                self.settings.instance,
                environment,
            )?,
        };
        let region = resolved.region.clone().expect("it was found");
        let path_style = resolved.path_style.unwrap_or(endpoint.is_some() || self.bucket.contains('.'));
        let plain = resolved.settings.is_plain();
        let chosen = self.settings.proxy.as_ref();
        let unencrypted = plain && matches!(credentials, S3Credentials::Keys(_)) && chosen.is_none();
        let (proxies, proxy) = network::proxies(chosen, endpoint, AWS, environment)?;
        let bundle = environment.get(CA_VARIABLE);
        let bundle = bundle.or_else(|| profile.as_ref()?.get("ca_bundle")).map(Path::new);
        let network = NetworkSettings {
            unencrypted,
            roots: network::roots(self.settings.ca.as_deref(), bundle, unencrypted)?,
            ca_variable: Some(CA_VARIABLE),
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
        let (builder, kept) = credentials.apply(builder, &connector);
        let client = builder
            .build()
            .map_err(|error| OpenError::denied(format!("the S3 client could not be created: {error}")))?;
        Ok(S3(Arc::new(InnerStore::new(Parts {
            client,
            dialect: S3Dialect {
                bucket: self.bucket.clone(),
                offered_by: provider.name,
                bare_etags: self.bare_etags,
            },
            credentials: kept.map(|kept| kept as _),
            connector,
            names: self.settings.names(),
            guarantees: resolved.guarantees(),
            url: resolved.name(),
            place: resolved.through(proxy).to_string(),
        }))))
    }

    /// Name of the store. Opens nothing, so it needs no credentials.
    pub fn store_name(&self) -> Result<String, OpenError> {
        self.resolve(&Environment::of_process()).map(|(resolved, _)| resolved.name())
    }

    /// The same store with the endpoint and the region that the environment adds, so that every process which opens it
    /// addresses the same objects, whatever its environment.
    pub fn resolved(&self) -> Result<Self, OpenError> {
        let (Self { settings, region, .. }, _) = self.resolve(&Environment::of_process())?;
        let mut resolved = Self { region, ..self.clone() };
        resolved.settings.endpoint = settings.endpoint;
        Ok(resolved)
    }

    /// Guarantees of the store. Opens nothing, so it needs no credentials.
    pub fn guarantees(&self) -> Guarantees {
        // ETags are hashes of the content.
        self.settings.guarantees(false, self.provider().write_interval)
    }

    /// This store with the settings of the environment added, and the profile that was consulted. Credentials are not part of it: it is the same store for every caller.
    fn resolve(&self, environment: &Environment) -> Result<(Self, Option<Profile>), OpenError> {
        self.check()?;
        let profile = Profile::find(self.profile.as_deref(), environment)?;
        let of_profile = |setting| profile.as_ref().and_then(|profile| profile.get(setting));
        let mut resolved = Self { profile: None, keys: None, ..self.clone() };
        resolved.settings.instance = false;
        if resolved.settings.endpoint.is_none() {
            let named = environment.first_named(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]);
            if let Some((name, url)) = named.or_else(|| Some(("endpoint_url", of_profile("endpoint_url")?))) {
                resolved = resolved.endpoint(url);
                // Not even with path-style=true: another user of the same URL may have the right endpoint.
                if let Some(endpoint) = &resolved.settings.endpoint {
                    self.check_bucket_in_endpoint(endpoint, name)?;
                }
            }
        }
        if resolved.region.is_none() {
            let region = environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
            let region = region.or_else(|| of_profile("region"));
            // Other servers have no regions, but a signature needs one.
            let region = region.or(resolved.settings.endpoint.is_some().then_some("us-east-1"));
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

    /// Name of the store: the same for every caller.
    fn name(&self) -> String {
        Self { settings: self.settings.naming(), ..self.clone() }.to_string()
    }

    /// The same store behind this proxy. A proxy from the environment may have its own cache, just as a chosen one.
    fn through(mut self, proxy: Option<Proxy>) -> Self {
        self.settings.proxy = proxy.or(self.settings.proxy);
        self
    }

    fn provider(&self) -> &'static Provider {
        Provider::at(self.settings.endpoint.as_ref().map(Endpoint::host))
    }

    /// Refuses an endpoint that names the bucket: the requests would name it twice, and address other objects than those
    /// of a user whose endpoint does not.
    fn check_bucket_in_endpoint(&self, endpoint: &Endpoint, source: &str) -> Result<(), OpenError> {
        let Some(server) = endpoint.without_bucket(&self.bucket) else { return Ok(()) };
        let style = if server.host() == endpoint.host() { "" } else { "&path-style=false" };
        Err(OpenError::invalid(format!(
            "{source}={endpoint} names the bucket {:?}, which Tenure adds itself, so the requests would address other \
             objects: write endpoint={server}{style} in the URL, or endpoint={endpoint}&path-style=true if the server \
             itself has that name",
            self.bucket
        )))
    }

    fn require(mut self, right: bool, sentence: impl FnOnce() -> String) -> Self {
        self.settings.require(right, sentence);
        self
    }
}

impl fmt::Display for S3Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = [
            ("region", self.region.clone()),
            ("path-style", self.path_style.map(|path_style| path_style.to_string())),
            ("etags", self.bare_etags.then(|| "bare".to_owned())),
            ("profile", self.profile.clone()),
        ];
        self.settings.write_url(f, "s3", &self.bucket, &own)
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

/// The variable of AWS's own tools for a file of certificates.
const CA_VARIABLE: &str = "AWS_CA_BUNDLE";
