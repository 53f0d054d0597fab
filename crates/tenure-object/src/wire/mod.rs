//! What really happens on the wire, whatever the client library makes of it.

mod call;
mod connection_error;
mod connector;
mod proxies;
mod proxy;
mod requests;
mod roots;
mod server_answer;

use std::net::IpAddr;

pub(crate) use call::{Call, CallState};
pub(crate) use connector::{Connector, NetworkSettings};
pub(crate) use proxies::Proxies;
pub(crate) use proxy::Proxy;
pub use requests::Requests;
pub(crate) use roots::Roots;
pub(crate) use server_answer::{AnswerText, ServerAnswer};

/// Whether what is sent to this host stays on this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse();
    host == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback())
}
