use std::sync::Arc;

use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use object_store::client::{HttpClient, HttpConnector, HttpRequest, HttpRequestBody};
use object_store::gcp::GcpCredential;
use object_store::{ClientOptions, CredentialProvider};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::key_file;
use crate::credentials::{FetchConnector, FetchError};
use crate::wire::is_loopback;

/// Workload identity federation: exchanges a token of the platform that this program runs on for one of Google.
///
/// The client library does not support it.
#[derive(Debug)]
pub(super) struct Federation {
    client: HttpClient,
    settings: FederationSettings,
}

/// The settings in a file of the type `external_account`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FederationSettings {
    audience: String,
    subject_token_type: String,
    token_url: String,
    /// The service account whose rights the program gets; `None` if the platform's identity itself has them.
    impersonation_url: Option<String>,
    subject: SubjectToken,
    /// The field with the token, if the platform sends it in JSON.
    field: Option<String>,
}

/// The place where the platform offers its token.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SubjectToken {
    File(String),
    Url(String, Vec<(String, String)>),
}

impl FederationSettings {
    /// Parses such a file. The error is a sentence, and `name` is its subject.
    pub(super) fn parse(document: &Value, name: &str) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let required = |field: &str| text(&document[field]).ok_or_else(|| format!("{name} has no {field}"));
        let source = &document["credential_source"];
        let subject = match (text(&source["file"]), text(&source["url"])) {
            (Some(path), _) => SubjectToken::File(path),
            (None, Some(url)) => {
                let headers = source["headers"].as_object().into_iter().flatten();
                let headers = headers.filter_map(|(name, value)| Some((name.clone(), text(value)?)));
                SubjectToken::Url(url, headers.collect())
            }
            (None, None) => {
                return Err(format!(
                    "{name} has a credential_source that Tenure does not support: it needs a file or a url"
                ));
            }
        };
        let settings = Self {
            audience: required("audience")?,
            subject_token_type: required("subject_token_type")?,
            token_url: required("token_url")?,
            impersonation_url: text(&document["service_account_impersonation_url"]),
            subject,
            field: (source["format"]["type"] == "json")
                .then(|| text(&source["format"]["subject_token_field_name"]))
                .flatten(),
        };
        // The platform's own service may be at any address. Its token must not be sent unencrypted.
        let is_right = match &settings.subject {
            SubjectToken::Url(url, _) => is_address(url),
            SubjectToken::File(_) => true,
        };
        let exchanges = [Some(&settings.token_url), settings.impersonation_url.as_ref()];
        if is_right && exchanges.iter().flatten().all(|url| is_address(url) && is_private(url)) {
            return Ok(settings);
        }
        Err(format!("{name} has an address that is not valid, or does not begin with https://"))
    }
}

impl Federation {
    pub(super) fn new(
        connector: &FetchConnector,
        settings: FederationSettings,
    ) -> object_store::Result<Self> {
        // Encrypted addresses are required above, except for the platform's own service.
        let client = connector.connect(&ClientOptions::new().with_allow_http(true))?;
        Ok(Self { client, settings })
    }

    async fn subject_token(&self) -> object_store::Result<String> {
        let answer = match &self.settings.subject {
            SubjectToken::File(path) => {
                key_file::read(path, &format!("the file {path}")).map_err(FetchError::denied)?
            }
            SubjectToken::Url(url, headers) => {
                let request = Request::get(url);
                let request =
                    headers.iter().fold(request, |request, (name, value)| request.header(name, value));
                self.ask(request.body(HttpRequestBody::empty())).await?
            }
        };
        let token = match &self.settings.field {
            Some(field) => field_of(&answer, field),
            None => Some(answer.trim().to_owned()).filter(|token| !token.is_empty()),
        };
        token.ok_or_else(|| failed("the platform's answer contains no token"))
    }

    /// A token of Google for the platform's identity.
    async fn federated_token(&self) -> object_store::Result<String> {
        let subject = self.subject_token().await?;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("scope", SCOPE),
            ("audience", &self.settings.audience),
            ("subject_token_type", &self.settings.subject_token_type),
            ("subject_token", &subject),
        ];
        let form =
            form.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        let request = Request::post(&self.settings.token_url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.join("&").into());
        let answer = self.ask(request).await?;
        field_of(&answer, "access_token").ok_or_else(|| failed("the exchange returned no token"))
    }

    /// The body of a successful answer. The connector has recorded every other one.
    async fn ask(&self, request: Result<HttpRequest, http::Error>) -> object_store::Result<String> {
        let answer = self.client.execute(request.map_err(failed)?).await.map_err(failed)?;
        if !answer.status().is_success() {
            return Err(failed("the request was refused"));
        }
        let body = answer.into_body().bytes().await.map_err(failed)?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

#[async_trait::async_trait]
impl CredentialProvider for Federation {
    type Credential = GcpCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<GcpCredential>> {
        let federated = self.federated_token().await?;
        let Some(url) = &self.settings.impersonation_url else {
            return Ok(Arc::new(GcpCredential { bearer: federated }));
        };
        let request = Request::post(url)
            .header(AUTHORIZATION, format!("Bearer {federated}"))
            .header(CONTENT_TYPE, "application/json")
            .body(json!({ "scope": [SCOPE], "lifetime": "3600s" }).to_string().into());
        let answer = self.ask(request).await?;
        match field_of(&answer, "accessToken") {
            Some(bearer) => Ok(Arc::new(GcpCredential { bearer })),
            None => Err(failed("the service account returned no token")),
        }
    }
}

fn field_of(answer: &str, field: &str) -> Option<String> {
    let document: Value = serde_json::from_str(answer).ok()?;
    document[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// True for an address that the client accepts. It has two parsers, and panics if they disagree.
fn is_address(url: &str) -> bool {
    url.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.authority().is_some())
        && reqwest::Url::parse(url).is_ok()
}

/// True if no system on the way can read a request to this address.
fn is_private(url: &str) -> bool {
    let host = url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
    url.starts_with("https://") || host.is_some_and(|host| is_loopback(&host))
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
    object_store::Error::Generic { store: "federation", source: error.into() }
}

/// The one that Google's own tools use. The roles of the identity limit it.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(change: impl FnOnce(&mut Value)) -> Result<FederationSettings, String> {
        let mut document = json!({
            "type": "external_account",
            "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": "https://sts.googleapis.com/v1/token",
            "credential_source": { "file": "/var/run/token" },
        });
        change(&mut document);
        FederationSettings::parse(&document, "the file")
    }

    #[test]
    fn a_token_comes_from_a_file_or_an_address() {
        let plain = parse(|_| {}).unwrap();
        assert_eq!((plain.subject, plain.field), (SubjectToken::File("/var/run/token".into()), None));
        let by_url = parse(|document| {
            document["credential_source"] = json!({
                "url": "http://127.0.0.1:1/token?audience=x",
                "headers": { "Authorization": "Bearer hush" },
                "format": { "type": "json", "subject_token_field_name": "value" },
            });
        })
        .unwrap();
        assert_eq!(by_url.field.as_deref(), Some("value"));
        assert!(matches!(by_url.subject, SubjectToken::Url(_, headers) if headers.len() == 1));
    }

    #[test]
    fn incomplete_settings_and_unencrypted_addresses_are_refused() {
        let refused = |field: &str, value: Value, part: &str| {
            let error = parse(|document| document[field] = value).unwrap_err();
            assert!(error.starts_with("the file has ") && error.contains(part), "{error}");
        };
        refused("audience", Value::Null, "no audience");
        refused("token_url", json!(""), "no token_url");
        refused("token_url", json!("http://sts.example.org/token"), "https://");
        refused("token_url", json!("https://"), "not valid");
        refused("service_account_impersonation_url", json!("http://x.org/"), "https://");
        refused("credential_source", json!({ "environment_id": "aws1" }), "needs a file or a url");
        refused("credential_source", json!({ "executable": { "command": "x" } }), "needs a file or a url");
        refused("credential_source", json!({ "url": "nowhere" }), "not valid");
    }
}
