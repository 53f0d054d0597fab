//! Settings that every dialect shares: variables, endpoints, and the route to the server.

mod endpoint;
mod environment;
pub(crate) mod network;
mod settings;

pub(crate) use endpoint::Endpoint;
pub use environment::Environment;
pub(crate) use environment::must_be_address;
pub(crate) use settings::{Settings, shared_settings};
pub use tenure_store::OpenError;
