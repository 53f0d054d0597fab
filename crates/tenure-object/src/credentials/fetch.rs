use std::sync::Arc;
use std::time::Duration;

use object_store::CredentialProvider;

use super::{FLAW, FetchConnector, FetchError};

/// Credentials, as a service returned them.
#[derive(Debug)]
pub(crate) struct Fetched<C> {
    pub(crate) credential: Arc<C>,
    /// Time until they expire, counted from before the request; `None` if the service does not say.
    pub(crate) lifetime: Option<Duration>,
}

impl<C> Clone for Fetched<C> {
    fn clone(&self) -> Self {
        Self { credential: Arc::clone(&self.credential), lifetime: self.lifetime }
    }
}

/// Fetches credentials with a provider of the client. `build` creates the provider, so that its cache is empty.
pub(crate) async fn fetch<C>(
    connector: FetchConnector,
    build: impl FnOnce(FetchConnector) -> object_store::Result<Arc<dyn CredentialProvider<Credential = C>>>,
    fits_requests: fn(&C) -> bool,
) -> Result<Fetched<C>, FetchError> {
    let provider = build(connector.clone()).map_err(|error| FetchError::denied(error.to_string()))?;
    let credential = provider.get_credential().await;
    let credential = credential
        .map_err(|error| FetchError::within(&error).cloned().unwrap_or_else(|| connector.error(&error)))?;
    if !fits_requests(&credential) {
        return Err(connector.unusable(&format!("what it sent {FLAW}")));
    }
    Ok(Fetched { credential, lifetime: connector.lifetime() })
}
