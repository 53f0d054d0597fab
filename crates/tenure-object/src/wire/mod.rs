//! Records the real events on the wire, independent of the client library's reports.

mod call;
mod connection_error;
mod connector;
mod header_names;
mod proxies;
mod proxy;
mod requests;
mod roots;
mod seen_time;
mod server_answer;

use std::net::IpAddr;

pub(crate) use call::{Call, CallState};
pub(crate) use connector::{Connector, NetworkSettings};
pub(crate) use header_names::HeaderNames;
pub(crate) use proxies::Proxies;
pub(crate) use proxy::Proxy;
pub use requests::Requests;
pub(crate) use roots::Roots;
pub(crate) use server_answer::{AnswerText, ServerAnswer};

/// True if requests to this host stay on this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse();
    host == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback())
}
