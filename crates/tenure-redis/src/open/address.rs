use std::fmt;
use std::path::PathBuf;

use super::OpenError;

/// Address of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// A host name or an IP address, without brackets, and a port.
    Tcp(String, u16),
    /// A socket on this machine.
    Unix(PathBuf),
}

impl Address {
    /// Parses `host`, `host:port`, `[::1]` or `[::1]:port`.
    pub(crate) fn parse(text: &str, usual_port: u16) -> Result<Self, OpenError> {
        let wrong = || {
            OpenError::invalid(format!(
                "{text:?} is not the address of a server: write it like redis.example.org:{usual_port}"
            ))
        };
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| wrong())?;
                (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(wrong)?) })
            }
            None => match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?,
            None => usual_port,
        };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            return Err(wrong());
        }
        Ok(Self::Tcp(host.to_ascii_lowercase(), port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_in_one_way() {
        for (text, canonical) in [
            ("Redis.Example.org", "redis.example.org:6379"),
            ("127.0.0.1:7000", "127.0.0.1:7000"),
            ("[::1]", "[::1]:6379"),
            ("[::1]:7000", "[::1]:7000"),
        ] {
            assert_eq!(Address::parse(text, 6379).unwrap().to_string(), canonical);
        }
        for wrong in
            ["", ":6379", "host:", "host:0", "host:70000", "ho st", "[::1", "[::1]7", "[host]:1", "a/b"]
        {
            assert!(Address::parse(wrong, 6379).is_err(), "{wrong}");
        }
    }
}
