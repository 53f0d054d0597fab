use std::fmt;
use std::path::Path;
use std::sync::Arc;

use object_store::StaticCredentialProvider;
use object_store::gcp::{
    GcpCredential, GcpCredentialProvider, GcpSigningCredential, GoogleCloudStorageBuilder,
};

use super::federation::Federation;
use super::key_file::{self, KeyKind};
use super::metadata::{self, MetadataServer};
use crate::credentials::{FLAW, FetchConnector, FetchError, FetchRules, KeptCredentials, fetch, fits_header};
use crate::open::{Environment, OpenError};
use crate::wire::Connector;

/// A provider of tokens that are made or fetched.
type KeptTokens = Arc<KeptCredentials<GcpCredential>>;

/// Source of the credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GoogleCredentials {
    /// A known token.
    Token(Token),
    /// Made or fetched, and again before they expire.
    Fetched(TokenSource),
}

/// An access token.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

/// Source of tokens.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum TokenSource {
    /// The path of a file in Google's JSON format, and its name in messages. It is read for each token: an operator may
    /// replace the key.
    File(String, String),
    /// The text of such a file.
    Key(String),
    /// The metadata server at this host.
    Metadata(String),
}

impl Token {
    /// Fails if a request cannot carry the token. `name` is the name of the token, for the message.
    pub(super) fn parse(text: &str, name: &str) -> Result<Self, OpenError> {
        if fits_header(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(OpenError::denied(format!("{name} {FLAW}: set it without")))
    }
}

impl GoogleCredentials {
    /// Finds credentials. Contacts the metadata server only if `instance` says so.
    pub(super) fn find(instance: bool, environment: &Environment) -> Result<Self, OpenError> {
        if instance {
            return metadata_host(environment).map(TokenSource::Metadata).map(Self::Fetched);
        }
        for name in TOKEN_VARIABLES {
            if let Some(token) = environment.get(name) {
                return Token::parse(token, name).map(Self::Token);
            }
        }
        for name in FILE_VARIABLES {
            if let Some(path) = environment.get(name) {
                let subject = format!("the file {path} ({name})");
                return Ok(Self::Fetched(TokenSource::File(path.to_owned(), subject)));
            }
        }
        if let Some(key) = environment.get(KEY_VARIABLE) {
            return Ok(Self::Fetched(TokenSource::Key(key.to_owned())));
        }
        if let Some(path) = login_file(environment).filter(|path| Path::new(path).exists()) {
            let subject = format!("the file {path}");
            return Ok(Self::Fetched(TokenSource::File(path, subject)));
        }
        Err(OpenError::denied(
            "there are no credentials: name the file of a service account key in GOOGLE_APPLICATION_CREDENTIALS, or run \
             gcloud auth application-default login, or take those of the machine with credentials=instance in the URL",
        ))
    }

    /// True if tokens may come from a server with a certificate.
    pub(super) fn need_tls(&self) -> bool {
        match self {
            Self::Token(_) | Self::Fetched(TokenSource::Metadata(_)) => false,
            Self::Fetched(TokenSource::File(..) | TokenSource::Key(_)) => true,
        }
    }

    /// Adds the credentials to the client, so that it never searches for others. Returns the provider of those that
    /// are fetched.
    pub(super) fn apply(
        self,
        builder: GoogleCloudStorageBuilder,
        connector: &Connector,
    ) -> Result<(GoogleCloudStorageBuilder, Option<KeptTokens>), OpenError> {
        // For links with a signature, which Tenure never makes. Without this, the client would prepare to ask the
        // metadata server.
        let nothing = GcpSigningCredential { email: String::new(), private_key: None };
        let builder = builder.with_signing_credentials(Arc::new(StaticCredentialProvider::new(nothing)));
        match self {
            Self::Token(Token(bearer)) => {
                let token = StaticCredentialProvider::new(GcpCredential { bearer });
                Ok((builder.with_credentials(Arc::new(token)), None))
            }
            Self::Fetched(source) => {
                // A wrong file is an error now, and not at the first request.
                let unused = FetchConnector::new(connector.clone(), FetchRules::default());
                source.provider(builder.clone(), &unused).map_err(OpenError::denied)?;
                let kept = Arc::new(source.kept(builder.clone(), connector.clone()));
                Ok((builder.with_credentials(kept.clone()), Some(kept)))
            }
        }
    }
}

impl TokenSource {
    /// A provider that makes or fetches tokens, and keeps them. `builder` has all other settings.
    fn kept(
        self,
        builder: GoogleCloudStorageBuilder,
        connector: Connector,
    ) -> KeptCredentials<GcpCredential> {
        let fetch_once = move || {
            let (source, builder, connector) = (self.clone(), builder.clone(), connector.clone());
            Box::pin(async move {
                let connector = FetchConnector::new(connector, FetchRules::default());
                let provider = source.provider(builder, &connector).map_err(FetchError::denied)?;
                fetch(connector, |_| Ok(provider), fits_requests).await
            }) as _
        };
        KeptCredentials::new(Box::new(fetch_once))
    }

    /// A provider of the client, whose cache is empty. The error is a sentence.
    fn provider(
        &self,
        builder: GoogleCloudStorageBuilder,
        connector: &FetchConnector,
    ) -> Result<GcpCredentialProvider, String> {
        let not_created =
            |error: object_store::Error| format!("the client for it could not be created: {error}");
        let (text, path, name) = match self {
            Self::Metadata(host) => {
                return Ok(Arc::new(MetadataServer::new(connector, host).map_err(not_created)?));
            }
            Self::Key(text) => (text.clone(), None, KEY_VARIABLE),
            Self::File(path, name) => (key_file::read(path, name)?, Some(path), name.as_str()),
        };
        let builder = builder.with_http_connector(connector.clone());
        let client = match (key_file::kind_of(&text, name)?, path) {
            (KeyKind::ServiceAccount, _) => builder
                .with_service_account_key(text)
                .build()
                .map_err(|_| format!("{name} has a private_key that is not an RSA key in PEM format"))?,
            (KeyKind::User, Some(path)) => {
                builder.with_application_credentials(path).build().map_err(not_created)?
            }
            (KeyKind::Federation(settings), _) => {
                return Ok(Arc::new(Federation::new(connector, settings).map_err(not_created)?));
            }
            (KeyKind::User, None) => {
                return Err(format!(
                    "{name} contains the login of a user: name its file in GOOGLE_APPLICATION_CREDENTIALS"
                ));
            }
        };
        Ok(client.credentials().clone())
    }
}

fn fits_requests(credential: &GcpCredential) -> bool {
    fits_header(&credential.bearer)
}

/// The host of the metadata server.
fn metadata_host(environment: &Environment) -> Result<String, OpenError> {
    let Some(host) = environment.get(METADATA_VARIABLE) else { return Ok(metadata::ADDRESS.to_owned()) };
    let url = format!("http://{host}/");
    let parsed = url.parse::<http::Uri>().is_ok_and(|uri| uri.path() == "/" && uri.query().is_none());
    if parsed && !host.contains('@') && reqwest::Url::parse(&url).is_ok() {
        return Ok(host.to_owned());
    }
    Err(OpenError::invalid(format!(
        "{METADATA_VARIABLE} is not a host, with a port where it has one: correct it"
    )))
}

/// The file that `gcloud auth application-default login` writes.
fn login_file(environment: &Environment) -> Option<String> {
    let directory = match environment.get("CLOUDSDK_CONFIG") {
        Some(directory) => directory.to_owned(),
        None => format!("{}/.config/gcloud", environment.get("HOME")?),
    };
    Some(format!("{directory}/application_default_credentials.json"))
}

/// Those of Terraform and of gcloud.
const TOKEN_VARIABLES: [&str; 2] = ["GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"];

/// The one of Google's own tools, and those of the client library.
const FILE_VARIABLES: [&str; 3] =
    ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH"];

const KEY_VARIABLE: &str = "GOOGLE_SERVICE_ACCOUNT_KEY";

const METADATA_VARIABLE: &str = "GCE_METADATA_HOST";

/// Shows no secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Shows no key.
impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, _) => f.debug_tuple("File").field(path).finish(),
            Self::Key(_) => f.write_str("Key"),
            Self::Metadata(host) => f.debug_tuple("Metadata").field(host).finish(),
        }
    }
}
