//! The way to a server: the URL, the environment, and the files of PostgreSQL's own tools.

mod builder;
mod environment;
mod host;
mod password_file;
mod service_file;
mod tables;
mod target;
mod tls;

pub use builder::PostgresBuilder;
pub use environment::Environment;
pub(crate) use host::Host;
pub(crate) use tables::{Tables, check_name};
pub(crate) use target::{Route, Target};
pub use tenure_store::OpenError;
