//! What really happens on the wire, whatever the client library makes of it.

mod answer;
mod call;
mod connection_error;
mod connector;
mod proxies;
mod proxy;
mod requests;
mod roots;

use std::net::IpAddr;

pub(crate) use answer::{Answer, Text};
pub(crate) use call::{Call, Seen};
pub(crate) use connector::{Connector, Network};
pub(crate) use proxies::Proxies;
pub(crate) use proxy::Proxy;
pub use requests::Requests;
pub(crate) use roots::Roots;

/// Whether what is sent to this host stays on this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse();
    host == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback())
}
