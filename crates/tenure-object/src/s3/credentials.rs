use std::fmt;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};

use super::profile::Profile;
use crate::credentials::{
    CONTROL, FLAW, FetchConnector, FetchError, FetchRules, KeptCredentials, fetch, fits_header, has_control,
    read_token,
};
use crate::open::{Environment, OpenError, must_be_address};
use crate::wire::Connector;

/// An access key, which signs requests.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
}

impl Keys {
    /// Fails if the key cannot sign a request. `names` are those of its three parts, for the message.
    pub(super) fn check(&self, names: [&str; 3]) -> Result<(), OpenError> {
        let [id, secret, token] = names;
        // The secret is never sent.
        if has_control(&self.secret) {
            return Err(OpenError::denied(format!("{secret} {CONTROL}: set it without")));
        }
        let sent = [(id, Some(&self.id)), (token, self.token.as_ref())];
        match sent.into_iter().find(|(_, part)| part.is_some_and(|part| !fits_header(part))) {
            Some((name, _)) => Err(OpenError::denied(format!("{name} {FLAW}: set it without"))),
            None => Ok(()),
        }
    }
}

/// Source of the credentials.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum S3Credentials {
    /// A known key.
    Keys(Keys),
    /// Fetched with these settings, and fetched again before they expire.
    Fetched(CredentialsService),
}

/// Settings for the service that hands out credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CredentialsService {
    settings: Vec<(AmazonS3ConfigKey, String)>,
    proof: Proof,
}

/// Proof of the program's identity, for the service.
#[derive(Clone, PartialEq, Eq)]
enum Proof {
    /// The address is sufficient.
    None,
    /// A token file that the client sends in the query.
    WebIdentity(String),
    /// A token file for the `Authorization` header.
    HeaderFile(String),
    /// The `Authorization` header.
    Header(String),
}

impl S3Credentials {
    /// Finds credentials in the same order as AWS's own tools. Contacts a metadata address only if a variable of the
    /// platform or `instance` says so.
    pub(super) fn find(
        profile: Option<&Profile>,
        profile_is_chosen: bool,
        instance: bool,
        environment: &Environment,
    ) -> Result<Self, OpenError> {
        if instance {
            let endpoint = environment.address("AWS_EC2_METADATA_SERVICE_ENDPOINT")?;
            let settings =
                endpoint.map(|url| (AmazonS3ConfigKey::MetadataEndpoint, url)).into_iter().collect();
            return Ok(Self::Fetched(CredentialsService { settings, proof: Proof::None }));
        }
        let of_profile = || profile.map(Profile::keys).transpose().map(Option::flatten);
        if profile_is_chosen && let Some(keys) = of_profile()? {
            return Ok(Self::Keys(keys));
        }
        if let Some(keys) = keys_of(environment)? {
            return Ok(Self::Keys(keys));
        }
        if let Some(service) = CredentialsService::of_platform(environment)? {
            return Ok(Self::Fetched(service));
        }
        if let Some(keys) = of_profile()? {
            return Ok(Self::Keys(keys));
        }
        Err(OpenError::denied(
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile that has a \
             key with AWS_PROFILE, or take those of the machine with credentials=instance in the URL. Anonymous \
             access cannot write",
        ))
    }

    /// Adds the credentials to the client. Returns the provider of those that are fetched.
    pub(super) fn apply(
        self,
        builder: AmazonS3Builder,
        connector: &Connector,
    ) -> (AmazonS3Builder, Option<Arc<KeptCredentials<AwsCredential>>>) {
        match self {
            Self::Keys(Keys { id, secret, token }) => {
                let builder = builder.with_access_key_id(id).with_secret_access_key(secret);
                let builder = match token {
                    Some(token) => builder.with_token(token),
                    None => builder,
                };
                (builder, None)
            }
            Self::Fetched(service) => {
                let kept = Arc::new(service.provider(builder.clone(), connector.clone()));
                (builder.with_credentials(kept.clone()), Some(kept))
            }
        }
    }
}

impl CredentialsService {
    /// The service that a platform offers in the environment of its programs.
    fn of_platform(environment: &Environment) -> Result<Option<Self>, OpenError> {
        use AmazonS3ConfigKey as Setting;
        let variable = |name: &str| environment.get(name).map(str::to_owned);
        if let (Some(file), Some(role)) = (variable("AWS_WEB_IDENTITY_TOKEN_FILE"), variable("AWS_ROLE_ARN"))
        {
            let mut settings = vec![(Setting::WebIdentityTokenFile, file.clone()), (Setting::RoleArn, role)];
            settings.extend(variable("AWS_ROLE_SESSION_NAME").map(|name| (Setting::RoleSessionName, name)));
            if let Some(url) = environment.address("AWS_ENDPOINT_URL_STS")? {
                // The client sends the token only over an encrypted connection.
                if !url.starts_with("https://") {
                    return Err(OpenError::invalid("AWS_ENDPOINT_URL_STS must begin with https://"));
                }
                settings.push((Setting::StsEndpoint, url));
            }
            return Ok(Some(Self { settings, proof: Proof::WebIdentity(file) }));
        }
        let settings = if let Some(path) = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            // The client writes it behind the address of the platform's own service.
            must_be_address("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", &format!("http://127.0.0.1:1/{path}"))?;
            if !path.starts_with('/') {
                return Err(OpenError::invalid(
                    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must begin with a slash",
                ));
            }
            vec![(Setting::ContainerCredentialsRelativeUri, path)]
        } else if let Some(url) = environment.address("AWS_CONTAINER_CREDENTIALS_FULL_URI")? {
            // The client reads a token from the file at each fetch, and panics over a line break in it. So it gets an
            // empty one, and `rules` sets the header.
            let no_token = (Setting::ContainerAuthorizationTokenFile, "/dev/null".to_owned());
            vec![(Setting::ContainerCredentialsFullUri, url), no_token]
        } else {
            return Ok(None);
        };
        let proof = match (variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), variable(CONTAINER_TOKEN)) {
            (Some(file), _) => Proof::HeaderFile(file),
            (None, Some(token)) if !fits_header(&token) => {
                return Err(OpenError::denied(format!("{CONTAINER_TOKEN} {FLAW}: set it without")));
            }
            (None, Some(token)) => Proof::Header(token),
            (None, None) => Proof::None,
        };
        Ok(Some(Self { settings, proof }))
    }

    /// A provider that fetches credentials with these settings. `builder` has all others.
    pub(super) fn provider(
        self,
        builder: AmazonS3Builder,
        connector: Connector,
    ) -> KeptCredentials<AwsCredential> {
        let settings = self.settings.iter().cloned();
        let builder = settings.fold(builder, |builder, (key, value)| builder.with_config(key, value));
        let fetch_once = move || {
            let (service, builder, connector) = (self.clone(), builder.clone(), connector.clone());
            Box::pin(async move {
                let connector = FetchConnector::new(connector, service.rules()?);
                let build = |connector| {
                    let client = builder.with_http_connector(connector).build()?;
                    Ok(client.credentials().clone())
                };
                fetch(connector, build, fits_requests).await
            }) as _
        };
        KeptCredentials::new(Box::new(fetch_once))
    }

    /// Reads the token file, which the platform replaces from time to time.
    fn rules(&self) -> Result<FetchRules, FetchError> {
        let mut rules = FetchRules { copied: &METADATA_WORDS, ..FetchRules::default() };
        let token = match &self.proof {
            Proof::None => return Ok(rules),
            Proof::WebIdentity(file) => {
                read_token(Path::new(file), "AWS_WEB_IDENTITY_TOKEN_FILE")?;
                rules.query_ends_with_token = true;
                return Ok(rules);
            }
            Proof::HeaderFile(file) => read_token(Path::new(file), "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")?,
            Proof::Header(token) => token.clone(),
        };
        let mut header = HeaderValue::try_from(token).expect("it was checked");
        header.set_sensitive(true);
        rules.authorization = Some(header);
        Ok(rules)
    }
}

fn fits_requests(credential: &AwsCredential) -> bool {
    fits_header(&credential.key_id)
        && credential.token.as_deref().is_none_or(fits_header)
        && !has_control(&credential.secret_key)
}

fn keys_of(environment: &Environment) -> Result<Option<Keys>, OpenError> {
    match (environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => {
            let token = environment.get("AWS_SESSION_TOKEN").map(str::to_owned);
            let keys = Keys { id: id.to_owned(), secret: secret.to_owned(), token };
            keys.check(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"])?;
            Ok(Some(keys))
        }
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(OpenError::denied("AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not: set both"))
        }
        (None, Some(_)) => {
            Err(OpenError::denied("AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not: set both"))
        }
    }
}

const CONTAINER_TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";

/// The two paths of the metadata address whose answers the client puts into a header and into a path.
const METADATA_WORDS: [&str; 2] = ["/latest/api/token", "/security-credentials/"];

/// Omits even the identifier: it identifies the account.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// Omits the tokens.
impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::WebIdentity(_) => "WebIdentity",
            Self::HeaderFile(_) => "HeaderFile",
            Self::Header(_) => "Header",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<S3Credentials, OpenError> {
        S3Credentials::find(None, false, false, &variables.iter().copied().collect())
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "hush")];

    #[test]
    fn keys_of_the_environment_come_first() {
        let mut variables = KEYS.to_vec();
        variables.push(("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"));
        let S3Credentials::Keys(keys) = find(&variables).unwrap() else { panic!("they are there") };
        assert_eq!((keys.id.as_str(), keys.secret.as_str(), keys.token), ("id", "hush", None));
    }

    #[test]
    fn credentials_of_a_platform_are_fetched_and_no_metadata_address_by_default() {
        let names = |found| match found {
            S3Credentials::Fetched(service) => service.settings.len(),
            S3Credentials::Keys(_) => panic!("no keys were given"),
        };
        let web = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "arn")];
        assert_eq!(names(find(&web).unwrap()), 2);
        assert_eq!(names(find(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x")]).unwrap()), 1);
        let instance = S3Credentials::find(None, false, true, &Environment::default());
        assert_eq!(names(instance.unwrap()), 0);
        let nothing = find(&[]).unwrap_err().to_string();
        assert!(nothing.starts_with("there are no credentials"), "{nothing}");
    }

    #[test]
    fn half_a_key_is_reported_without_the_secret() {
        for half in KEYS {
            let error = find(&[half]).unwrap_err();
            assert!(error.to_string().contains("set both"));
            assert!(!format!("{error:?}").contains("hush"));
        }
        assert!(!format!("{:?}", find(&KEYS).unwrap()).contains("hush"));
        let environment: Environment = KEYS.into_iter().collect();
        assert!(!format!("{environment:?}").contains("hush"));
    }
}
