use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::azure::MicrosoftAzureBuilder;
use object_store::{ClientOptions, RetryConfig};
use tenure_store::Guarantees;

use super::connection_string::ConnectionString;
use super::credentials::AzureCredentials;
use super::{Azure, AzureDialect, HEADERS};
use crate::inner::{InnerStore, Parts};
use crate::open::{Endpoint, Environment, OpenError, Settings, network, shared_settings};
use crate::wire::{Connector, NetworkSettings, Proxy};

/// Location of a container, and the way to reach it. Settings that are not given here come from the environment.
///
/// Its `Display` is the equivalent URL, without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder opens nothing until open() is called"]
pub struct AzureBuilder {
    container: String,
    settings: Settings,
    account: Option<String>,
    credentials: Option<AzureCredentials>,
}

shared_settings!(AzureBuilder);

impl AzureBuilder {
    pub(super) fn new(container: &str) -> Self {
        let builder = Self {
            container: container.to_owned(),
            settings: Settings::default(),
            account: None,
            credentials: None,
        };
        builder.require(is_container(container), || {
            format!(
                "{container:?} is not the name of a container: it has 3 to 63 lowercase letters, digits and single dashes, \
                 and begins and ends with a letter or digit"
            )
        })
    }

    /// Sets the storage account of the container. Default: the account in the endpoint, in
    /// `AZURE_STORAGE_CONNECTION_STRING`, or in `AZURE_STORAGE_ACCOUNT`.
    pub fn account(mut self, name: &str) -> Self {
        self.account = Some(name.to_owned());
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        self.require((3..=24).contains(&name.len()) && name.bytes().all(plain), || {
            format!(
                "{name:?} is not the name of a storage account: it has 3 to 24 lowercase letters and digits"
            )
        })
    }

    /// Connects to this server instead of `https://ACCOUNT.blob.core.windows.net`: an emulator, a sovereign cloud, or a
    /// custom domain. If the host is an IP address or `localhost`, the account is the first part of the path, and may be
    /// left out. An unencrypted endpoint is accepted only on this machine, unless it is [accepted](Self::accept_http)
    /// explicitly.
    pub fn endpoint(mut self, url: &str) -> Self {
        self.settings.set_endpoint(url);
        self
    }

    /// Trusts the certificates in this PEM file, in addition to those that the machine trusts: for a server whose
    /// certificate is signed by a private authority. The path is absolute.
    pub fn ca(mut self, path: &str) -> Self {
        self.settings.set_ca(path);
        self
    }

    /// Signs requests with this access key of the account, in base64.
    pub fn access_key(self, key: &str) -> Self {
        self.credentials(AzureCredentials::key(key, "the access key"))
    }

    /// Sends this SAS token with every request.
    pub fn sas_token(self, token: &str) -> Self {
        self.credentials(AzureCredentials::sas(token, "the SAS token"))
    }

    /// Fails if a setting so far cannot be right.
    pub fn check(&self) -> Result<(), OpenError> {
        self.settings.check()?;
        if self.settings.prefix.split('/').any(|segment| segment.ends_with('.')) {
            return Err(OpenError::invalid(format!(
                "{:?} is not a prefix on Azure, which ignores a dot at the end of a segment",
                self.settings.prefix
            )));
        }
        match &self.settings.endpoint {
            Some(endpoint) => self.check_endpoint(endpoint),
            None => Ok(()),
        }
    }

    /// Opens the store. Sends nothing yet.
    pub fn open(&self) -> Result<Azure, OpenError> {
        self.open_in(&Environment::of_process())
    }

    /// Like [`open`](Self::open), with these variables instead of those of this process.
    pub fn open_in(&self, environment: &Environment) -> Result<Azure, OpenError> {
        let (resolved, connection) = self.resolve(environment)?;
        let credentials = match &self.credentials {
            Some(credentials) => credentials.clone(),
            None => AzureCredentials::find(connection.as_ref(), self.settings.instance, environment)?,
        };
        let account = resolved.account.clone().expect("it was found");
        let usual = usual_endpoint(&account);
        let endpoint = resolved.settings.endpoint.as_ref();
        let plain = resolved.settings.is_plain();
        let chosen = self.settings.proxy.as_ref();
        let unencrypted = plain && !matches!(credentials, AzureCredentials::Fetched(_)) && chosen.is_none();
        let (proxies, proxy) = network::proxies(chosen, endpoint, &usual, environment)?;
        let connector = Connector::new(NetworkSettings {
            unencrypted,
            roots: network::roots(self.settings.ca.as_deref(), None, unencrypted)?,
            ca_variable: None,
            proxies,
            names: &HEADERS,
            header: None,
        });
        let address = endpoint.map_or(usual, Endpoint::to_string);
        let kind = credentials.kind();
        let builder = MicrosoftAzureBuilder::new()
            .with_container_name(&self.container)
            .with_account(account)
            .with_endpoint(address)
            .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
            .with_client_options(ClientOptions::new().with_allow_http(plain))
            .with_http_connector(connector.clone());
        // The client's own error may repeat a part of the key.
        let (builder, kept) = credentials.apply(builder, &connector);
        let client = builder.build().map_err(|_| {
            OpenError::denied("the Azure client could not be created: correct the credentials")
        })?;
        Ok(Azure(Arc::new(InnerStore::new(Parts {
            client,
            dialect: AzureDialect {
                container: self.container.clone(),
                is_public: endpoint.is_none_or(|endpoint| is_public(endpoint.host())),
                credentials: kind,
            },
            credentials: kept,
            connector,
            // `a.` and `a` are one directory on Azure.
            names: self.settings.names().escaping_final_dots(),
            guarantees: resolved.guarantees(),
            url: resolved.name(),
            place: resolved.through(proxy).to_string(),
        }))))
    }

    /// Name of the store. Opens nothing, so it needs no credentials.
    pub fn store_name(&self) -> Result<String, OpenError> {
        self.resolve(&Environment::of_process()).map(|(resolved, _)| resolved.name())
    }

    /// The same store with the account and the endpoint that the environment adds, so that every process which opens it
    /// addresses the same blobs, whatever its environment.
    pub fn resolved(&self) -> Result<Self, OpenError> {
        let (Self { settings, account, .. }, _) = self.resolve(&Environment::of_process())?;
        let mut resolved = Self { account, ..self.clone() };
        resolved.settings.endpoint = settings.endpoint;
        Ok(resolved)
    }

    /// Guarantees of the store. Opens nothing, so it needs no credentials.
    pub fn guarantees(&self) -> Guarantees {
        // ETags are made from the time of the write, and never return.
        self.settings.guarantees(true, WRITE_INTERVAL)
    }

    /// This store with the settings of the environment added, and the connection string that was consulted. Credentials
    /// are not part of it: it is the same store for every caller.
    fn resolve(&self, environment: &Environment) -> Result<(Self, Option<ConnectionString>), OpenError> {
        self.check()?;
        let connection = ConnectionString::find(environment)?;
        let usual_account = connection.as_ref().and_then(ConnectionString::account);
        let usual_account = usual_account
            .or_else(|| environment.first(&["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"]));
        let mut resolved = Self { credentials: None, ..self.clone() };
        resolved.settings.instance = false;
        if resolved.settings.endpoint.is_none() {
            let url = environment.first(&["AZURE_STORAGE_SERVICE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"]);
            let url = url.map(str::to_owned).or_else(|| connection.as_ref()?.endpoint());
            // The endpoint of the environment is that of its account, and the URL may name another one.
            let is_same = self.account.is_none() || self.account.as_deref() == usual_account;
            if let Some(url) = url.filter(|_| is_same) {
                resolved = resolved.endpoint(&url);
                resolved.check()?;
            }
        }
        if resolved.account.is_none() {
            let of_endpoint = resolved.settings.endpoint.as_ref().and_then(account_of);
            let account = of_endpoint.or(usual_account.map(str::to_owned));
            let Some(account) = account else {
                return Err(OpenError::invalid(format!(
                    "the storage account of the container {:?} is not known: write account=NAME in the URL, or set \
                     AZURE_STORAGE_ACCOUNT",
                    self.container
                )));
            };
            resolved = resolved.account(&account);
        }
        resolved.check()?;
        resolved.complete_endpoint();
        Ok((resolved, connection))
    }

    /// Gives the endpoint its only form, so that one store has one name.
    fn complete_endpoint(&mut self) {
        let (Some(endpoint), Some(account)) = (&mut self.settings.endpoint, &self.account) else { return };
        if endpoint.to_string() == usual_endpoint(account) {
            self.settings.endpoint = None;
        } else if endpoint.has_no_name() && endpoint.path().is_empty() {
            *endpoint = endpoint.clone().with_path(account);
        }
    }

    fn check_endpoint(&self, endpoint: &Endpoint) -> Result<(), OpenError> {
        let (host, path) = (endpoint.host(), endpoint.path().trim_matches('/'));
        let first = host.split('.').next().unwrap_or_default();
        if is_public(host) && !host.contains(".blob.") {
            return Err(OpenError::invalid(format!(
                "{endpoint} is not the endpoint of blobs: write it like https://{first}.blob.core.windows.net"
            )));
        }
        if is_public(host) && first.ends_with("-secondary") {
            return Err(OpenError::unsupported(format!(
                "{endpoint} is a copy that lags behind the account: use the endpoint without -secondary"
            )));
        }
        if let (Some(of_endpoint), Some(account)) = (account_of(endpoint), &self.account)
            && of_endpoint != *account
        {
            return Err(OpenError::invalid(format!(
                "{endpoint} is the endpoint of the account {of_endpoint:?}, and not of {account:?}: correct one of them"
            )));
        }
        let is_account = endpoint.has_no_name() && !path.contains('/');
        if !path.is_empty() && !is_account && path.split('/').next_back() == Some(self.container.as_str()) {
            return Err(OpenError::invalid(format!(
                "the path of {endpoint} ends in the name of the container, which the URL of the store already names: \
                 remove it from the endpoint"
            )));
        }
        Ok(())
    }

    fn credentials(mut self, credentials: Result<AzureCredentials, OpenError>) -> Self {
        match credentials {
            Ok(credentials) => self.credentials = Some(credentials),
            Err(error) => self.settings.fail(error),
        }
        self
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

    fn require(mut self, right: bool, sentence: impl FnOnce() -> String) -> Self {
        self.settings.require(right, sentence);
        self
    }
}

impl fmt::Display for AzureBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.write_url(f, "az", &self.container, &[("account", self.account.clone())])
    }
}

fn is_container(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (3..=63).contains(&name.len())
        && name.bytes().all(|byte| plain(byte) || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

fn usual_endpoint(account: &str) -> String {
    format!("https://{account}.blob.core.windows.net")
}

/// True for a host of Microsoft's clouds.
fn is_public(host: &str) -> bool {
    CLOUDS.iter().any(|cloud| host.strip_suffix(cloud).is_some_and(|rest| rest.ends_with('.')))
}

/// The account that an endpoint names: in its host at Microsoft, in its path on an address.
fn account_of(endpoint: &Endpoint) -> Option<String> {
    let host = endpoint.host();
    let path = endpoint.path().trim_matches('/');
    if is_public(host) {
        return host.split('.').next().map(str::to_owned);
    }
    (endpoint.has_no_name() && !path.is_empty() && !path.contains('/')).then(|| path.to_owned())
}

/// Ends of the hosts of the public cloud and of the sovereign clouds.
const CLOUDS: [&str; 4] =
    ["core.windows.net", "core.usgovcloudapi.net", "core.chinacloudapi.cn", "core.cloudapi.de"];

/// By its documentation, Azure serves 500 requests per second for one blob. This interval leaves room for contenders.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
