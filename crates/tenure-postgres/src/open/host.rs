use std::fmt;
use std::net::IpAddr;

use super::OpenError;

/// A server: a name with a port, or a directory with a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl Host {
    pub(crate) const PORT: u16 = 5432;

    /// The hosts in these lists, as PostgreSQL's own tools read them: separated by commas, with one port for all or one
    /// for each.
    pub(crate) fn list(names: &str, ports: Option<&str>) -> Result<Vec<Self>, OpenError> {
        let names: Vec<_> = names.split(',').collect();
        let ports: Vec<_> = ports.map(|ports| ports.split(',').collect()).unwrap_or_default();
        if ports.len() > 1 && ports.len() != names.len() {
            return Err(OpenError::invalid(format!(
                "{} hosts have {} ports: name one port for all, or one for each",
                names.len(),
                ports.len()
            )));
        }
        let hosts = names.iter().enumerate().map(|(at, name)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or_default();
            let port = if port.is_empty() { Self::PORT } else { parse_port(port)? };
            if !is_name(name) {
                return Err(OpenError::invalid(format!(
                    "{name:?} is not a host: write its name, its address, or the directory of its socket"
                )));
            }
            Ok(Self { name: (*name).to_owned(), port })
        });
        hosts.collect()
    }

    /// True for a directory with a Unix socket.
    pub(crate) fn is_socket(&self) -> bool {
        is_socket(&self.name)
    }

    /// True if no network is between this machine and the server.
    pub(crate) fn is_local(&self) -> bool {
        self.is_socket()
            || self.name == "localhost"
            || self.name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { name, port } if self.is_socket() => write!(f, "{name}/.s.PGSQL.{port}"),
            Self { name, port } if name.contains(':') => write!(f, "[{name}]:{port}"),
            Self { name, port } => write!(f, "{name}:{port}"),
        }
    }
}

/// True for the directory of a Unix socket.
pub(crate) fn is_socket(name: &str) -> bool {
    name.starts_with('/')
}

/// True for a name that a URL and a connection can carry.
fn is_name(name: &str) -> bool {
    let plain = |next: char| next.is_ascii_alphanumeric() || "-._:%".contains(next);
    let socket = || !name.contains(['\0', ',']) && name.len() < SOCKET_MAX;
    if is_socket(name) { socket() } else { !name.is_empty() && name.chars().all(plain) }
}

pub(crate) fn parse_port(text: &str) -> Result<u16, OpenError> {
    text.parse().ok().filter(|port| *port != 0).ok_or_else(|| {
        OpenError::invalid(format!("{text:?} is not a port: write a number from 1 to 65535, such as 5432"))
    })
}

/// The path of a Unix socket has at most 107 bytes, with the name of the file in it.
const SOCKET_MAX: usize = 90;
