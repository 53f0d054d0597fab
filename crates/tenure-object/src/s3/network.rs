//! Settings for the route to the server, from the URL and the environment.

use std::path::Path;

use super::endpoint::Endpoint;
use super::environment::Environment;
use super::error::OpenError;
use super::profile::Profile;
use crate::wire::{Proxies, Proxy, Roots};

/// The authorities that are trusted besides those of the machine: the chosen ones, or those that AWS's own tools would
/// use. If no request is encrypted, the environment and the profile are ignored.
pub(super) fn roots(
    chosen: Option<&Path>,
    unencrypted: bool,
    profile: Option<&Profile>,
    environment: &Environment,
) -> Result<Roots, OpenError> {
    let bundle = environment.get("AWS_CA_BUNDLE");
    let told = bundle.or_else(|| profile.and_then(|profile| profile.get("ca_bundle"))).map(Path::new);
    match chosen.or(told.filter(|_| !unencrypted)) {
        Some(path) => Roots::read(path).map_err(OpenError::unreachable),
        None => Ok(Roots::default()),
    }
}

/// The proxies for requests, and the one in front of the server. A proxy that cannot be used is an error before
/// anything is sent.
pub(super) fn proxies(
    chosen: Option<&Proxy>,
    endpoint: Option<&Endpoint>,
    environment: &Environment,
) -> Result<(Proxies, Option<Proxy>), OpenError> {
    let proxies = match chosen {
        Some(proxy) => Proxies::chosen(proxy.clone(), endpoint.is_some_and(Endpoint::is_loopback)),
        None => Proxies::of_environment(|name| environment.get(name)),
    };
    let address = endpoint.map_or_else(|| AWS.to_owned(), Endpoint::to_string);
    let proxy = match address.parse() {
        Ok(address) => proxies.of(&address).map_err(OpenError::unreachable)?,
        Err(_) => None,
    };
    Ok((proxies, proxy))
}

/// An address of AWS.
const AWS: &str = "https://s3.amazonaws.com";
