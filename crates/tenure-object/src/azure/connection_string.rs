use std::fmt;

use super::credentials::CONNECTION_STRING;
use crate::open::{Environment, OpenError};

/// The parts of `AZURE_STORAGE_CONNECTION_STRING`, as Azure's portal and its command show it:
/// `DefaultEndpointsProtocol=https;AccountName=…;AccountKey=…;EndpointSuffix=core.windows.net`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ConnectionString(Vec<(String, String)>);

impl ConnectionString {
    /// Reads the variable; `None` if it is not set.
    pub(super) fn find(environment: &Environment) -> Result<Option<Self>, OpenError> {
        environment.get(CONNECTION_STRING).map(Self::parse).transpose()
    }

    fn parse(text: &str) -> Result<Self, OpenError> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let parts = parts.map(|part| {
            let (name, value) = part.split_once('=')?;
            Some((name.to_ascii_lowercase(), value.to_owned()))
        });
        match parts.collect() {
            Some(parts) => Ok(Self(parts)),
            None => Err(OpenError::denied(format!(
                "{CONNECTION_STRING} has a part without '=': write it like AccountName=…;AccountKey=…"
            ))),
        }
    }

    pub(super) fn account(&self) -> Option<&str> {
        self.get("accountname")
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.get("accountkey")
    }

    pub(super) fn sas(&self) -> Option<&str> {
        self.get("sharedaccesssignature")
    }

    /// The endpoint, if it is not the usual one of the account.
    pub(super) fn endpoint(&self) -> Option<String> {
        if let Some(endpoint) = self.get("blobendpoint") {
            return Some(endpoint.to_owned());
        }
        let (account, suffix) = (self.account()?, self.get("endpointsuffix")?);
        let protocol = self.get("defaultendpointsprotocol").unwrap_or("https");
        Some(format!("{protocol}://{account}.blob.{suffix}"))
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

/// Shows only the names: the values are secrets.
impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_names_the_account_its_key_and_its_endpoint() {
        let usual = "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=aHVzaA==;EndpointSuffix=core.windows.net";
        let usual = ConnectionString::parse(usual).unwrap();
        assert_eq!((usual.account(), usual.key()), (Some("acme"), Some("aHVzaA==")));
        assert_eq!(usual.endpoint().as_deref(), Some("https://acme.blob.core.windows.net"));
        let local =
            ConnectionString::parse("BlobEndpoint=http://127.0.0.1:1/a; SharedAccessSignature=sig=x;")
                .unwrap();
        assert_eq!(local.endpoint().as_deref(), Some("http://127.0.0.1:1/a"));
        assert_eq!((local.account(), local.sas()), (None, Some("sig=x")));
        let error = ConnectionString::parse("hush").unwrap_err().to_string();
        assert!(error.contains("without '='") && !error.contains("hush"), "{error}");
        assert!(!format!("{usual:?}").contains("aHVzaA"));
    }
}
