//! Settings for the route to the server, from the URL and the environment.

use std::path::Path;

use super::{Endpoint, Environment, OpenError};
use crate::wire::{Proxies, Proxy, Roots};

/// The authorities that are trusted besides those of the machine: the chosen ones, or `usual`, the ones that the
/// provider's own tools would use. If no request is encrypted, only a chosen file is read.
pub(crate) fn roots(
    chosen: Option<&Path>,
    usual: Option<&Path>,
    unencrypted: bool,
) -> Result<Roots, OpenError> {
    match chosen.or(usual.filter(|_| !unencrypted)) {
        Some(path) => Roots::read(path).map_err(OpenError::unreachable),
        None => Ok(Roots::default()),
    }
}

/// The proxies for requests, and the one in front of the server: at `endpoint`, or at the provider's `usual` address. A
/// proxy that cannot be used is an error before anything is sent.
pub(crate) fn proxies(
    chosen: Option<&Proxy>,
    endpoint: Option<&Endpoint>,
    usual: &str,
    environment: &Environment,
) -> Result<(Proxies, Option<Proxy>), OpenError> {
    let proxies = match chosen {
        Some(proxy) => Proxies::chosen(proxy.clone(), endpoint.is_some_and(Endpoint::is_loopback)),
        None => Proxies::of_environment(|name| environment.get(name)),
    };
    let address = endpoint.map_or_else(|| usual.to_owned(), Endpoint::to_string);
    let proxy = match address.parse() {
        Ok(address) => proxies.of(&address).map_err(OpenError::unreachable)?,
        Err(_) => None,
    };
    Ok((proxies, proxy))
}
