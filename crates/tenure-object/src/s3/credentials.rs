use std::fmt;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

use super::profile::Profile;
use crate::open::{Environment, OpenError};

/// An access key, which signs requests.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
}

/// Source of the credentials.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A known key.
    Keys(Keys),
    /// Fetched with these settings, and fetched again before they expire.
    Fetched(Vec<(AmazonS3ConfigKey, String)>),
}

impl Credentials {
    /// Finds credentials in the same order as AWS's own tools. Contacts a metadata address only if a variable of the
    /// platform or `instance` says so.
    pub(super) fn find(
        profile: Option<&Profile>,
        profile_is_chosen: bool,
        instance: bool,
        environment: &Environment,
    ) -> Result<Self, OpenError> {
        if instance {
            let endpoint = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT");
            let endpoint = endpoint.map(|url| (AmazonS3ConfigKey::MetadataEndpoint, url.to_owned()));
            return Ok(Self::Fetched(endpoint.into_iter().collect()));
        }
        let of_profile = || profile.map(Profile::keys).transpose().map(Option::flatten);
        if profile_is_chosen && let Some(keys) = of_profile()? {
            return Ok(Self::Keys(keys));
        }
        if let Some(keys) = keys_of(environment)? {
            return Ok(Self::Keys(keys));
        }
        if let Some(fetched) = fetched_by(environment) {
            return Ok(fetched);
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

    pub(super) fn apply(self, mut builder: AmazonS3Builder) -> AmazonS3Builder {
        match self {
            Self::Keys(Keys { id, secret, token }) => {
                builder = builder.with_access_key_id(id).with_secret_access_key(secret);
                if let Some(token) = token {
                    builder = builder.with_token(token);
                }
                builder
            }
            Self::Fetched(settings) => {
                settings.into_iter().fold(builder, |builder, (key, value)| builder.with_config(key, value))
            }
        }
    }
}

fn keys_of(environment: &Environment) -> Result<Option<Keys>, OpenError> {
    match (environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")) {
        (Some(id), Some(secret)) => {
            let token = environment.get("AWS_SESSION_TOKEN").map(str::to_owned);
            Ok(Some(Keys { id: id.to_owned(), secret: secret.to_owned(), token }))
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

/// The credentials that a platform offers in the environment of its programs.
fn fetched_by(environment: &Environment) -> Option<Credentials> {
    use AmazonS3ConfigKey as Setting;
    let variable = |name: &str, setting: Setting| Some((setting, environment.get(name)?.to_owned()));
    let token_file = variable("AWS_WEB_IDENTITY_TOKEN_FILE", Setting::WebIdentityTokenFile);
    let role = variable("AWS_ROLE_ARN", Setting::RoleArn);
    if let (Some(token_file), Some(role)) = (token_file, role) {
        let session = variable("AWS_ROLE_SESSION_NAME", Setting::RoleSessionName);
        let server = variable("AWS_ENDPOINT_URL_STS", Setting::StsEndpoint);
        let needed = [token_file, role];
        return Some(Credentials::Fetched(needed.into_iter().chain(session).chain(server).collect()));
    }
    let relative =
        variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", Setting::ContainerCredentialsRelativeUri);
    if let Some(relative) = relative {
        return Some(Credentials::Fetched(vec![relative]));
    }
    let full = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI", Setting::ContainerCredentialsFullUri);
    let token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", Setting::ContainerAuthorizationTokenFile);
    Some(Credentials::Fetched(vec![full?, token?]))
}

/// Omits even the identifier: it identifies the account.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<Credentials, OpenError> {
        Credentials::find(None, false, false, &variables.iter().copied().collect())
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "hush")];

    #[test]
    fn keys_of_the_environment_come_first() {
        let mut variables = KEYS.to_vec();
        variables.push(("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"));
        let Credentials::Keys(keys) = find(&variables).unwrap() else { panic!("they are there") };
        assert_eq!((keys.id.as_str(), keys.secret.as_str(), keys.token), ("id", "hush", None));
    }

    #[test]
    fn credentials_of_a_platform_are_fetched_and_no_metadata_address_by_default() {
        let names = |found| match found {
            Credentials::Fetched(settings) => settings.len(),
            Credentials::Keys(_) => panic!("no keys were given"),
        };
        let web = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "arn")];
        assert_eq!(names(find(&web).unwrap()), 2);
        assert_eq!(names(find(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x")]).unwrap()), 1);
        let instance = Credentials::find(None, false, true, &Environment::default());
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
