use std::collections::BTreeMap;
use std::fmt;

use super::OpenError;

/// The variables that configure access to a provider: those that begin with `AWS_`, `AZURE_`, `GOOGLE_`, `CLOUDSDK_` or
/// `GCE_METADATA_`, those of Azure's identity service, those that name proxies, and `HOME`.
///
/// The caller passes them in, so that a program can use others than those of its process.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The variables of this process.
    pub(crate) fn of_process() -> Self {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| {
                PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || OTHERS.contains(&name.as_str())
            })
            .collect()
    }

    /// The first of these variables that is set and not empty: an empty variable is as if not set.
    pub(crate) fn first(&self, names: &[&str]) -> Option<&str> {
        self.first_named(names).map(|(_, value)| value)
    }

    /// Its value, and its name.
    pub(crate) fn first_named<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        let mut values = names.iter().filter_map(|name| Some((*name, self.0.get(*name)?.as_str())));
        values.find(|(_, value)| !value.is_empty())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.first(&[name])
    }

    /// The address of a service in this variable.
    pub(crate) fn address(&self, name: &str) -> Result<Option<String>, OpenError> {
        let Some(url) = self.get(name) else { return Ok(None) };
        must_be_address(name, url)?;
        Ok(Some(url.to_owned()))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Refuses an address that the client cannot parse with either of its two parsers: it would panic.
pub(crate) fn must_be_address(name: &str, url: &str) -> Result<(), OpenError> {
    let parsed =
        url.parse::<http::Uri>().is_ok_and(|uri| uri.authority().is_some() && uri.scheme().is_some());
    if parsed && reqwest::Url::parse(url).is_ok() {
        return Ok(());
    }
    Err(OpenError::invalid(format!("{name} is not the address of a server: correct it")))
}

/// Shows only the names: the values are secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Variables of the providers' own tools.
const PREFIXES: [&str; 5] = ["AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "GCE_METADATA_"];

/// `REQUEST_METHOD` is set for a CGI script, whose `HTTP_PROXY` is not trustworthy.
const OTHERS: [&str; 12] = [
    "HOME",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "REQUEST_METHOD",
];
