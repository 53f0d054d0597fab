use std::fmt;

use reqwest::Url;

use super::is_loopback;

/// A proxy for requests: `http://proxy.example.org:3128`. No output shows its password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy(Url);

impl Proxy {
    /// The error is a sentence without its subject, and never repeats the text.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&with_scheme).map_err(|_| WRONG)?;
        match url.scheme() {
            "http" | "https" => {}
            "socks4" | "socks4a" | "socks5" | "socks5h" => return Err(SOCKS),
            _ => return Err(WRONG),
        }
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if url.host_str().is_none() || !plain {
            return Err(WRONG);
        }
        Ok(Self(url))
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }

    pub(crate) fn has_password(&self) -> bool {
        !self.0.username().is_empty() || self.0.password().is_some()
    }

    /// Message for a proxy that requires authentication.
    pub(crate) fn wants_password(&self) -> String {
        let what = if self.has_password() {
            "does not take the name and password that the environment gives it"
        } else {
            "wants a name and a password"
        };
        format!(
            "the proxy {self} {what}: put them into HTTPS_PROXY or HTTP_PROXY, as http://name:password@host:port"
        )
    }

    /// True if requests stay on this machine up to the proxy.
    pub(crate) fn is_loopback(&self) -> bool {
        self.0.host_str().is_some_and(is_loopback)
    }
}

/// Omits the password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host) = (self.0.scheme(), self.0.host_str().unwrap_or_default());
        match self.0.port() {
            Some(port) => write!(f, "{scheme}://{host}:{port}"),
            None => write!(f, "{scheme}://{host}"),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

const WRONG: &str = "is not the address of a proxy: write it like http://proxy.example.org:3128";

const SOCKS: &str = "names a proxy that speaks SOCKS, and only proxies for HTTP are supported: name one like \
                     http://proxy.example.org:3128, or name the store's host in NO_PROXY";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_shown_without_its_password() {
        for (text, shown, password) in [
            ("proxy.example.org:3128", "http://proxy.example.org:3128", false),
            ("https://proxy.example.org/", "https://proxy.example.org", false),
            ("http://me:hush@[::1]:3128", "http://[::1]:3128", true),
            ("me@proxy:1", "http://proxy:1", true),
        ] {
            let proxy = Proxy::parse(text).unwrap();
            assert_eq!((proxy.to_string().as_str(), proxy.has_password()), (shown, password));
            assert!(!format!("{proxy:?}").contains("hush"));
        }
    }

    #[test]
    fn an_invalid_proxy_is_reported_and_not_repeated() {
        for wrong in
            ["", "http://", "ftp://x", "http://x/path", "http://x?q", "http://x#f", "a b", "http://x:hush"]
        {
            assert_eq!(Proxy::parse(wrong), Err(WRONG), "{wrong}");
        }
        assert_eq!(Proxy::parse("socks5://x:1080"), Err(SOCKS));
    }
}
