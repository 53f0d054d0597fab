//! Messages for connections that failed, with advice.

use std::error::Error;

use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, InvalidMessage};

use super::Proxy;

/// Describes the error on the way to this host, through this proxy. `ca_variable` is the environment variable of the
/// dialect that names a file of certificates.
pub(super) fn words(
    error: &(dyn Error + 'static),
    host: &str,
    proxy: Option<&Proxy>,
    ca_variable: Option<&str>,
) -> String {
    if let Some(trouble) = chain(error).find_map(|error| error.downcast_ref()) {
        return of_tls(trouble, host, ca_variable);
    }
    let innermost = chain(error).last().map(ToString::to_string).unwrap_or_default();
    // The type of this error is private to its crate.
    let tunnel = chain(error).map(ToString::to_string).find(|text| text.starts_with("tunnel error"));
    match (proxy, tunnel) {
        (Some(proxy), Some(text)) if text.contains("authorization") => proxy.wants_password(),
        (Some(proxy), Some(_)) if innermost.starts_with("tunnel error") => {
            format!(
                "the proxy {proxy} cannot connect to {host}: it may refuse that, or cannot reach it ({innermost})"
            )
        }
        (Some(proxy), _) => format!("the proxy {proxy} could not be reached: {innermost}"),
        _ if innermost.contains("invalid HTTP") => {
            format!(
                "the server at {host} does not speak HTTP: write https:// if it is encrypted ({innermost})"
            )
        }
        (None, _) => innermost,
    }
}

fn of_tls(error: &rustls::Error, host: &str, ca_variable: Option<&str>) -> String {
    use CertificateError as Wrong;
    match error {
        rustls::Error::InvalidCertificate(wrong) => match wrong {
            // The latter means another authority with the same name.
            Wrong::UnknownIssuer | Wrong::BadSignature => format!(
                "the certificate of {host} is not signed by an authority that this machine trusts: if its authority \
                 is your own, name that authority's certificate with ca=/path/to/ca.pem in the URL{}",
                ca_variable.map(|name| format!(", or in {name}")).unwrap_or_default()
            ),
            Wrong::NotValidForName => format!(
                "the certificate of {host} is for another name: write the endpoint with the name that it was made for"
            ),
            Wrong::NotValidForNameContext { presented, .. } => {
                let names: Vec<&str> = presented.iter().map(|name| name_of(name)).collect();
                format!(
                    "the certificate of {host} is for another name ({}): write the endpoint with that name",
                    if names.is_empty() { "it has none".to_owned() } else { names.join(", ") }
                )
            }
            Wrong::Expired => {
                format!("the certificate of {host} has expired: renew it, or set this machine's clock")
            }
            Wrong::ExpiredContext { not_after, .. } => format!(
                "the certificate of {host} ran out on {}: renew it, or set this machine's clock",
                date_of(*not_after)
            ),
            Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
                format!(
                    "the certificate of {host} is not valid yet: set this machine's clock, or the server's"
                )
            }
            Wrong::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => format!(
                "the certificate of {host} is that of an authority, not of a server: make one for the server that is \
                 signed by it, and name the authority's with ca=/path/to/ca.pem"
            ),
            other => format!("the certificate of {host} cannot be trusted: {other}"),
        },
        rustls::Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => {
            format!("the server at {host} does not speak TLS: write http:// if it is not encrypted")
        }
        other => format!("no encrypted connection to {host} could be made: {other}"),
    }
}

/// The name in a text such as `DnsName("localhost")`.
fn name_of(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}

fn date_of(time: UnixTime) -> String {
    let time = i64::try_from(time.as_secs()).ok().and_then(|second| Timestamp::from_second(second).ok());
    time.map(|time| time.strftime("%Y-%m-%d").to_string()).unwrap_or_default()
}

/// An error and its causes, down to the first one.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        // An io error does not return its inner error as its source.
        match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => (*error).source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_authority_is_named_in_the_url_or_in_the_variable_of_the_dialect_if_it_has_one() {
        let error = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let said = words(&error, "host", None, Some("SOME_CA_FILE"));
        assert!(said.ends_with("with ca=/path/to/ca.pem in the URL, or in SOME_CA_FILE"), "{said}");
        let said = words(&error, "host", None, None);
        assert!(said.ends_with("with ca=/path/to/ca.pem in the URL"), "{said}");
    }
}
