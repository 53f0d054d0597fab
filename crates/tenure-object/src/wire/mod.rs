//! What really happens on the wire, whatever the client library makes of it.

mod answer;
mod call;
mod connector;
mod requests;

pub(crate) use answer::{Answer, Text};
pub(crate) use call::{Call, Seen};
pub(crate) use connector::Connector;
pub use requests::Requests;
