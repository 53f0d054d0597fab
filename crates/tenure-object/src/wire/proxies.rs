use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use hyper_util::client::proxy::matcher::Matcher;

use super::{Proxy, is_loopback};

/// Chooses the proxy for each request.
#[derive(Clone, Default)]
pub(crate) struct Proxies {
    /// The proxy that was chosen for this store.
    chosen: Option<Proxy>,
    /// True if the chosen proxy is also for requests to this machine.
    chosen_for_loopback: bool,
    /// The values in the environment for each scheme, with the names of their variables.
    http: Option<(&'static str, String)>,
    https: Option<(&'static str, String)>,
    /// Hosts that do not use the proxies of the environment.
    direct: Option<Arc<Matcher>>,
}

impl Proxies {
    /// Reads the usual variables: `lookup` returns their values.
    pub(crate) fn of_environment<'a>(lookup: impl Fn(&str) -> Option<&'a str>) -> Self {
        let first =
            |names: &[&'static str]| names.iter().find_map(|name| Some((*name, lookup(name)?.to_owned())));
        // In a CGI script, a client of the web server sets this variable with a header.
        let http: &[_] = match lookup("REQUEST_METHOD") {
            Some(_) => &["http_proxy", "all_proxy", "ALL_PROXY"],
            None => &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
        };
        let direct = first(&["no_proxy", "NO_PROXY"]).map(|(_, hosts)| {
            // The matcher needs some proxy to express the exceptions.
            Arc::new(Matcher::builder().all("http://proxy").no(hosts).build())
        });
        Self {
            http: first(http),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            direct,
            ..Self::default()
        }
    }

    /// Uses this proxy, and none of the environment's.
    pub(crate) fn chosen(proxy: Proxy, for_loopback: bool) -> Self {
        Self { chosen: Some(proxy), chosen_for_loopback: for_loopback, ..Self::default() }
    }

    /// The proxy for requests to this address, if there is one. The error is a sentence.
    ///
    /// The metadata address of a machine or a container (169.254.169.254 and similar) is never reached through a proxy:
    /// it would return the credentials of the proxy's machine. Neither is this machine, unless the caller chose so: a
    /// proxy elsewhere cannot reach it.
    pub(crate) fn of(&self, address: &http::Uri) -> Result<Option<Proxy>, String> {
        let Some(host) = address.host() else { return Ok(None) };
        if is_metadata(host) {
            return Ok(None);
        }
        if let Some(proxy) = &self.chosen {
            let meant = !is_loopback(host) || self.chosen_for_loopback;
            return Ok(meant.then(|| proxy.clone()));
        }
        let is_direct = || self.direct.as_ref().is_some_and(|proxied| proxied.intercept(address).is_none());
        if is_loopback(host) || is_direct() {
            return Ok(None);
        }
        let told = if address.scheme_str() == Some("https") { &self.https } else { &self.http };
        match told {
            Some((name, text)) => Proxy::parse(text).map(Some).map_err(|wrong| format!("{name} {wrong}")),
            None => Ok(None),
        }
    }
}

/// Shows no values: they may contain passwords.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [&self.http, &self.https].map(|told| told.as_ref().map(|(name, _)| name));
        f.debug_struct("Proxies").field("chosen", &self.chosen).field("named", &named).finish_non_exhaustive()
    }
}

/// The addresses at which platforms give their programs an identity. Amazon's IPv6 address for it is in a separate
/// range, and Google's has a name.
fn is_metadata(host: &str) -> bool {
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(address)) => Ipv4Addr::is_link_local(&address),
        Ok(IpAddr::V6(address)) => {
            Ipv6Addr::is_unicast_link_local(&address) || address.segments()[..2] == [0xfd00, 0x0ec2]
        }
        Err(_) => host == "metadata.google.internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(proxies: &Proxies, address: &'static str) -> String {
        match proxies.of(&http::Uri::from_static(address)) {
            Ok(Some(proxy)) => proxy.to_string(),
            Ok(None) => "none".to_owned(),
            Err(sentence) => sentence,
        }
    }

    fn of(variables: &[(&str, &'static str)]) -> Proxies {
        Proxies::of_environment(|name| {
            variables
                .iter()
                .find(|(set, _)| *set == name)
                .map(|(_, value)| *value)
                .filter(|value| !value.is_empty())
        })
    }

    #[test]
    fn the_usual_variables_choose_the_proxy_by_scheme_and_host() {
        let proxies = of(&[
            ("HTTPS_PROXY", "http://me:hush@secure:1"),
            ("https_proxy", ""),
            ("http_proxy", "plain:2"),
            ("HTTP_PROXY", "other:2"),
            ("NO_PROXY", "internal.example.org, 10.0.0.0/8"),
        ]);
        assert_eq!(shown(&proxies, "https://s3.example.org"), "http://secure:1");
        assert_eq!(shown(&proxies, "http://s3.example.org"), "http://plain:2");
        for direct in
            ["https://internal.example.org", "https://b.internal.example.org:9000", "http://10.1.2.3"]
        {
            assert_eq!(shown(&proxies, direct), "none", "{direct}");
        }
        assert!(!format!("{proxies:?}").contains("hush"));
        let all = of(&[("ALL_PROXY", "all:3"), ("HTTPS_PROXY", "https://secure")]);
        assert_eq!(shown(&all, "https://x"), "https://secure");
        assert_eq!(shown(&all, "http://x"), "http://all:3");
        assert_eq!(shown(&of(&[("HTTPS_PROXY", "x"), ("no_proxy", "*")]), "https://y"), "none");
        assert_eq!(shown(&of(&[]), "https://y"), "none");
    }

    #[test]
    fn this_machine_and_its_metadata_are_not_reached_through_a_proxy_that_the_environment_names() {
        let everything = of(&[("ALL_PROXY", "proxy:1")]);
        for direct in [
            "http://localhost:9000",
            "https://127.0.0.1:9000",
            "http://[::1]:9000",
            "http://169.254.169.254",
            "http://169.254.170.2",
            "http://metadata.google.internal",
            "http://[fd00:ec2::254]",
        ] {
            assert_eq!(shown(&everything, direct), "none", "{direct}");
        }
        let chosen = |for_loopback| Proxies::chosen(Proxy::parse("proxy:1").unwrap(), for_loopback);
        assert_eq!(shown(&chosen(true), "http://127.0.0.1:9000"), "http://proxy:1");
        assert_eq!(shown(&chosen(false), "http://127.0.0.1:9000"), "none");
        assert_eq!(shown(&chosen(true), "http://169.254.169.254"), "none");
    }

    #[test]
    fn an_invalid_variable_is_named_when_used_and_its_value_not_repeated() {
        let wrong = of(&[("HTTPS_PROXY", "ftp://hush"), ("ALL_PROXY", "socks5://x")]);
        let sentence = shown(&wrong, "https://s3.example.org");
        assert!(sentence.starts_with("HTTPS_PROXY is not the address of a proxy"), "{sentence}");
        assert!(!sentence.contains("hush"));
        assert!(
            shown(&wrong, "http://s3.example.org").starts_with("ALL_PROXY names a proxy that speaks SOCKS")
        );
        assert_eq!(shown(&wrong, "https://localhost"), "none");
    }

    /// The header `Proxy` of a request becomes HTTP_PROXY in the environment of a CGI script.
    #[test]
    fn a_cgi_script_ignores_a_proxy_that_a_client_may_have_named() {
        let script = of(&[("HTTP_PROXY", "evil:1"), ("REQUEST_METHOD", "GET")]);
        assert_eq!(shown(&script, "http://s3.example.org"), "none");
    }
}
