//! Settings of a store, before anything is sent.

mod address;
mod builder;
mod settings;
mod url;

pub(crate) use address::Address;
pub use builder::RedisBuilder;
pub(crate) use builder::StoreName;
pub(crate) use settings::{Accepted, ReplicaConfirmation, Settings};
pub use tenure_store::OpenError;
