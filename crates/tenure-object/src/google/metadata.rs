use std::sync::Arc;

use http::Request;
use object_store::client::{HttpClient, HttpConnector, HttpRequestBody};
use object_store::gcp::GcpCredential;
use object_store::{ClientOptions, CredentialProvider};
use serde_json::Value;

use crate::credentials::FetchConnector;

/// The metadata server of a machine at Google, which hands out tokens of the machine's service account.
///
/// The provider of the client library is not used: it prefers a file in the home directory, and reaches the server by
/// a name, which a proxy could answer.
#[derive(Debug)]
pub(super) struct MetadataServer {
    client: HttpClient,
    host: String,
}

impl MetadataServer {
    pub(super) fn new(connector: &FetchConnector, host: &str) -> object_store::Result<Self> {
        let client = connector.connect(&ClientOptions::new().with_allow_http(true))?;
        Ok(Self { client, host: host.to_owned() })
    }
}

#[async_trait::async_trait]
impl CredentialProvider for MetadataServer {
    type Credential = GcpCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<GcpCredential>> {
        let failed = |source| object_store::Error::Generic { store: "metadata", source };
        let request = Request::get(format!("http://{}{TOKEN}", self.host))
            // The server ignores requests without it, so that no web page can cause one.
            .header("metadata-flavor", "Google")
            .body(HttpRequestBody::empty())
            .map_err(|error| failed(error.into()))?;
        let answer = self.client.execute(request).await.map_err(|error| failed(error.into()))?;
        let body = answer.into_body().bytes().await.map_err(|error| failed(error.into()))?;
        let token = serde_json::from_slice(&body).ok().and_then(|fields: Value| {
            Some(fields.get("access_token")?.as_str().filter(|token| !token.is_empty())?.to_owned())
        });
        match token {
            Some(bearer) => Ok(Arc::new(GcpCredential { bearer })),
            None => Err(failed("there is no token".into())),
        }
    }
}

/// The path of the token.
const TOKEN: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// The address of every metadata server. No request to it uses a proxy.
pub(super) const ADDRESS: &str = "169.254.169.254";
