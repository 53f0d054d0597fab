//! Settings that every dialect shares: variables, endpoints, and the route to the server.

mod endpoint;
mod environment;
mod error;
pub(crate) mod network;
mod settings;

pub(crate) use endpoint::Endpoint;
pub use environment::Environment;
pub(crate) use environment::must_be_address;
pub use error::OpenError;
pub(crate) use settings::{Settings, shared_settings};
