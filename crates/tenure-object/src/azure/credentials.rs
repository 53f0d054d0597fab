use std::fmt;
use std::path::Path;
use std::sync::Arc;

use object_store::azure::{AzureConfigKey, AzureCredential, MicrosoftAzureBuilder};

use super::connection_string::ConnectionString;
use crate::credentials::{
    CONTROL, FLAW, FetchConnector, FetchError, FetchRules, KeptCredentials, Replaceable, fetch, fits_header,
    has_control, read_token,
};
use crate::inner::RequestKind;
use crate::open::{Environment, OpenError};
use crate::wire::Connector;

/// Source of the credentials.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum AzureCredentials {
    /// An access key of the account, in base64.
    Key(String),
    /// A token with signed permissions, which becomes a part of each address.
    Sas(String),
    /// A token of Microsoft Entra, fetched with these settings and fetched again before it expires.
    Fetched(TokenService),
}

/// Settings for the service that hands out tokens.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TokenService {
    settings: Vec<(AzureConfigKey, String)>,
    /// The file with the proof of the program's identity, which the platform replaces from time to time.
    file: Option<String>,
}

/// Kind of the credentials, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CredentialKind {
    Key,
    Sas,
    Identity,
}

impl AzureCredentials {
    /// Finds credentials in the same order as Azure's own tools. Contacts a metadata address only if `instance` says so.
    pub(super) fn find(
        connection: Option<&ConnectionString>,
        instance: bool,
        environment: &Environment,
    ) -> Result<Self, OpenError> {
        if instance {
            return TokenService::of_machine(environment).map(Self::Fetched);
        }
        if let Some(key) = connection.and_then(ConnectionString::key) {
            return Self::key(key, CONNECTION_STRING);
        }
        if let Some(token) = connection.and_then(ConnectionString::sas) {
            return Self::sas(token, CONNECTION_STRING);
        }
        for name in ["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_ACCOUNT_KEY"] {
            if let Some(key) = environment.get(name) {
                return Self::key(key, name);
            }
        }
        for name in ["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"] {
            if let Some(token) = environment.get(name) {
                return Self::sas(token, name);
            }
        }
        TokenService::of_application(environment)?.map(Self::Fetched).ok_or_else(none)
    }

    /// An access key. `name` says where it comes from.
    pub(super) fn key(key: &str, name: &str) -> Result<Self, OpenError> {
        must_be_clean(key, name)?;
        let is_base64 = key.len().is_multiple_of(4)
            && key
                .trim_end_matches('=')
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
        if !is_base64 || key.is_empty() {
            return Err(OpenError::denied(format!(
                "{name} is not an access key, which is written in base64"
            )));
        }
        Ok(Self::Key(key.to_owned()))
    }

    /// A SAS token. `name` says where it comes from.
    pub(super) fn sas(token: &str, name: &str) -> Result<Self, OpenError> {
        must_be_clean(token, name)?;
        let token = token.trim_start_matches('?');
        let parts = || token.split('&').map(|part| part.split_once('=').unwrap_or((part, "")));
        if !parts().any(|(name, value)| name == "sig" && !value.is_empty()) {
            return Err(OpenError::denied(format!(
                "{name} is not a SAS token, which has the form sv=…&sp=…&se=…&sig=…"
            )));
        }
        Ok(Self::Sas(token.to_owned()))
    }

    pub(super) fn kind(&self) -> CredentialKind {
        match self {
            Self::Key(_) => CredentialKind::Key,
            Self::Sas(_) => CredentialKind::Sas,
            Self::Fetched(_) => CredentialKind::Identity,
        }
    }

    /// Adds the credentials to the client. Returns the provider of those that are fetched.
    pub(super) fn apply(
        self,
        builder: MicrosoftAzureBuilder,
        connector: &Connector,
    ) -> (MicrosoftAzureBuilder, Option<Arc<dyn Replaceable>>) {
        // The kind is always named: the client contacts a metadata address where it is not.
        let kind = AzureConfigKey::CredentialType;
        match self {
            Self::Key(key) => (builder.with_config(kind, "access_key").with_access_key(key), None),
            Self::Sas(token) => {
                let builder = builder.with_config(kind, "sas_token");
                (builder.with_config(AzureConfigKey::SasKey, token), None)
            }
            Self::Fetched(service) => {
                let kept = Arc::new(service.provider(builder.clone(), connector.clone()));
                (builder.with_credentials(kept.clone()), Some(kept))
            }
        }
    }
}

impl TokenService {
    /// The service for an application with a secret or with a token of its platform.
    fn of_application(environment: &Environment) -> Result<Option<Self>, OpenError> {
        let variable = |name: &str| environment.get(name).map(str::to_owned);
        let (secret, file) = (variable("AZURE_CLIENT_SECRET"), variable(TOKEN_FILE));
        let (kind, proof, file) = match (secret, file) {
            (Some(secret), _) => ("client_secret", (AzureConfigKey::ClientSecret, secret), None),
            (None, Some(file)) => {
                ("workload_identity", (AzureConfigKey::FederatedTokenFile, file.clone()), Some(file))
            }
            (None, None) => return Ok(None),
        };
        let (Some(client), Some(tenant)) = (variable("AZURE_CLIENT_ID"), variable("AZURE_TENANT_ID")) else {
            return Err(OpenError::denied(
                "AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE is set, and AZURE_CLIENT_ID or AZURE_TENANT_ID is \
                 not: set both",
            ));
        };
        // It becomes a part of the address.
        let is_plain = tenant.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
        if !is_plain {
            return Err(OpenError::invalid("AZURE_TENANT_ID is not the name of a tenant: correct it"));
        }
        let mut settings = vec![
            (AzureConfigKey::CredentialType, kind.to_owned()),
            (AzureConfigKey::ClientId, client),
            (AzureConfigKey::AuthorityId, tenant),
            proof,
        ];
        if let Some(host) = environment.address("AZURE_AUTHORITY_HOST")? {
            // The client appends a path with a slash.
            settings.push((AzureConfigKey::AuthorityHost, host.trim_end_matches('/').to_owned()));
        }
        Ok(Some(Self { settings, file }))
    }

    /// The service that gives an identity to a machine or an app of Azure.
    fn of_machine(environment: &Environment) -> Result<Self, OpenError> {
        let mut settings = vec![(AzureConfigKey::CredentialType, "managed_identity".to_owned())];
        // Apps have another address than machines, and must send a header, which the client reads by itself.
        if let Some(url) = environment.address("IDENTITY_ENDPOINT")? {
            settings.push((AzureConfigKey::MsiEndpoint, url));
        }
        if environment.get("IDENTITY_HEADER").is_some_and(|header| !fits_header(header)) {
            return Err(OpenError::denied(format!("IDENTITY_HEADER {FLAW}: set it without")));
        }
        // Chooses one of several identities.
        settings
            .extend(environment.get("AZURE_CLIENT_ID").map(|id| (AzureConfigKey::ClientId, id.to_owned())));
        Ok(Self { settings, file: None })
    }

    /// A provider that fetches tokens with these settings. `builder` has all others.
    fn provider(
        self,
        builder: MicrosoftAzureBuilder,
        connector: Connector,
    ) -> KeptCredentials<AzureCredential> {
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

    fn rules(&self) -> Result<FetchRules, FetchError> {
        let Some(file) = &self.file else { return Ok(FetchRules::default()) };
        read_token(Path::new(file), TOKEN_FILE)?;
        Ok(FetchRules { form_contains_token: true, ..FetchRules::default() })
    }
}

fn fits_requests(credential: &AzureCredential) -> bool {
    match credential {
        AzureCredential::BearerToken(token) => fits_header(token),
        AzureCredential::AccessKey(_) | AzureCredential::SASToken(_) => true,
    }
}

fn none() -> OpenError {
    OpenError::denied(
        "there are no credentials: set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or AZURE_CLIENT_ID, \
         AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or take the identity of the machine with credentials=instance in the \
         URL. Anonymous access cannot write",
    )
}

fn must_be_clean(text: &str, name: &str) -> Result<(), OpenError> {
    if has_control(text) {
        return Err(OpenError::denied(format!("{name} {CONTROL}: set it without")));
    }
    Ok(())
}

impl CredentialKind {
    /// Problem of credentials that the server does not accept, and the next step.
    pub(super) fn refused(self) -> &'static str {
        match self {
            Self::Key => {
                "the access key is not one of this account: correct AZURE_STORAGE_KEY or the account"
            }
            Self::Sas => "the SAS token is wrong or has expired: get a new one",
            Self::Identity => {
                "the identity's token is not accepted: check that AZURE_TENANT_ID is the tenant of the account"
            }
        }
    }

    /// Next step for credentials that lack the permission for this call.
    pub(super) fn lacks(self, asked: RequestKind, container: &str) -> String {
        let permission = match asked {
            RequestKind::Read | RequestKind::ReadAgain => "permission r (read)",
            RequestKind::Create | RequestKind::Replace => "permissions c (create) and w (write)",
            RequestKind::List => "permission l (list)",
        };
        match self {
            Self::Sas => format!("get a SAS token for the container {container:?} that has the {permission}"),
            Self::Key => "use a key of this account".to_owned(),
            Self::Identity => format!(
                "assign the identity the role Storage Blob Data Contributor on the container {container:?}"
            ),
        }
    }
}

/// Shows only the kind.
impl fmt::Debug for AzureCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

const TOKEN_FILE: &str = "AZURE_FEDERATED_TOKEN_FILE";

pub(super) const CONNECTION_STRING: &str = "AZURE_STORAGE_CONNECTION_STRING";

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<AzureCredentials, OpenError> {
        AzureCredentials::find(None, false, &variables.iter().copied().collect())
    }

    const KEY: (&str, &str) = ("AZURE_STORAGE_KEY", "aHVzaA==");
    const SAS: (&str, &str) = ("AZURE_STORAGE_SAS_TOKEN", "?sv=2024&sig=hush%3D");
    const ID: [(&str, &str); 2] = [("AZURE_CLIENT_ID", "app"), ("AZURE_TENANT_ID", "tenant")];

    #[test]
    fn a_key_comes_before_a_token_and_both_before_an_identity() {
        let secret = ("AZURE_CLIENT_SECRET", "hush");
        let all = [KEY, SAS, secret, ID[0], ID[1]];
        assert_eq!(find(&all).unwrap().kind(), CredentialKind::Key);
        assert_eq!(find(&all[1..]).unwrap(), AzureCredentials::Sas("sv=2024&sig=hush%3D".to_owned()));
        assert_eq!(find(&all[2..]).unwrap().kind(), CredentialKind::Identity);
        assert!(!format!("{:?}", find(&all[2..]).unwrap()).contains("hush"));
    }

    #[test]
    fn the_kind_of_an_identity_is_always_named_so_that_no_metadata_address_is_contacted_by_default() {
        let kind = |found| match found {
            AzureCredentials::Fetched(service) => service.settings[0].clone(),
            AzureCredentials::Key(_) | AzureCredentials::Sas(_) => panic!("no secret was given"),
        };
        let named = |name: &str| (AzureConfigKey::CredentialType, name.to_owned());
        let with = |more: (&'static str, &'static str)| find(&[ID[0], ID[1], more]).unwrap();
        assert_eq!(kind(with(("AZURE_CLIENT_SECRET", "hush"))), named("client_secret"));
        assert_eq!(kind(with(("AZURE_FEDERATED_TOKEN_FILE", "/t"))), named("workload_identity"));
        let machine = AzureCredentials::find(None, true, &[KEY].into_iter().collect());
        assert_eq!(kind(machine.unwrap()), named("managed_identity"));
        for nothing in [&[][..], &ID] {
            let error = find(nothing).unwrap_err().to_string();
            assert!(error.starts_with("there are no credentials"), "{error}");
        }
    }

    #[test]
    fn credentials_that_cannot_be_right_are_refused_without_repeating_them() {
        for (name, value, words) in [
            ("AZURE_STORAGE_KEY", "hush!", "is not an access key"),
            ("AZURE_STORAGE_KEY", "hush hush!==", "is not an access key"),
            ("AZURE_STORAGE_KEY", "aHVzaA==\n", "line break"),
            ("AZURE_STORAGE_SAS_TOKEN", "hush", "is not a SAS token"),
            ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=", "is not a SAS token"),
            ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=hush\r\nX: y", "line break"),
            ("AZURE_CLIENT_SECRET", "hush", "AZURE_TENANT_ID"),
        ] {
            let error = find(&[(name, value)]).unwrap_err();
            let sentence = error.to_string();
            assert!(sentence.contains(words) && sentence.contains(name), "{sentence}");
            assert!(!format!("{error:?}").contains("hush"), "{sentence}");
        }
    }
}
