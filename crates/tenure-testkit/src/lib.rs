//! What tests need of the outside world: real servers on free ports, a proxy that does to requests what networks do, file
//! systems of every kind, and a view of other processes.
//!
//! ```no_run
//! use tenure_testkit::{Kind, Server};
//!
//! let Some(server) = Server::shared(Kind::Minio) else { return };
//! server.create_bucket("leases");
//! let url = format!("s3://leases/locks?endpoint={}", server.endpoint());
//! # drop(url);
//! ```
//!
//! Servers are installed by `crates/tenure-testkit/servers/install`, which `./test` calls. A test whose server is not
//! there says so and is skipped; on a machine that is meant to check everything it fails.
//!
//! What cannot be set up has failed the test, so most of this crate panics, with a sentence and what the server said.
#![allow(clippy::disallowed_methods, reason = "real servers and real networks count in real time")]

mod authority;
mod cgroup;
mod forward;
mod helpers;
mod home;
mod http;
mod mounted;
mod port;
mod process;
mod process_table;
mod proxy;
mod samples;
mod server;
mod sign;
mod wait;

pub use authority::{Authority, Certificate};
pub use cgroup::{cgroup_in, cgroup_root, own_cgroup};
pub use forward::ForwardProxy;
pub use helpers::{block_on, key, quota, race, shell, skipped};
pub use mounted::{FileSystem, Mounted, tests_in};
pub use process_table::{
    children_of, command_line, exit_code, is_alive, is_running, parent_of, process_numbers, session_of,
    stat_fields, state_of,
};
pub use proxy::{Counts, ErrorAnswer, Exchange, Fault, FaultyProxy, InstalledRule, Rule};
pub use samples::{Samples, print_ratio};
pub use server::{Kind, Server, Session, Setup, StartError};
pub use wait::{sleep_ms, wait_for, wait_until};
