//! The outside world for tests: real servers on free ports, a proxy that injects the faults of networks, file systems
//! of every kind, and a view of other processes.
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
//! `crates/tenure-testkit/servers/install` installs the servers; `./test` calls it. A test whose server is not
//! installed says so and is skipped. If `CI` is `true`, it fails instead.
//!
//! A failed setup is a failed test, so most of this crate panics, with a sentence and the output of the server.
#![allow(clippy::disallowed_methods, reason = "real servers and real networks count in real time")]

mod authority;
mod cgroup;
mod comparison;
mod daemon;
mod forward;
mod helpers;
mod home;
mod http;
mod mounted;
mod nats;
mod pace;
mod port;
mod postgres;
mod process;
mod process_table;
mod program;
mod proxy;
mod ran;
mod redis;
mod samples;
mod server;
mod shared_key;
mod sign;
mod snapshot;
mod system_user;
mod translator;
mod wait;

pub use authority::{Authority, Certificate};
pub use cgroup::{cgroup_in, cgroup_root, own_cgroup};
pub use comparison::{ComparedLock, Comparison, Effort, LockKind, OpenedLock, SlowLink};
pub use forward::ForwardProxy;
pub use helpers::{block_on, key, quota, race, shell, skipped};
pub use mounted::{FileSystem, Mounted, tests_in};
pub use nats::NatsServer;
pub use pace::Pace;
pub use postgres::{PgBouncer, PostgresKind, PostgresServer, PostgresSetup};
pub use process_table::{
    children_of, command_line, exit_code, is_alive, is_running, parent_of, process_numbers, session_of,
    stat_fields, state_of,
};
pub use proxy::{Counts, ErrorAnswer, Exchange, Fault, FaultyProxy, InstalledRule, Rule};
pub use redis::{RedisCluster, RedisKind, RedisSentinels, RedisServer, RedisSetup};
pub use samples::{Samples, print_ratio};
pub use server::{Dialect, Kind, Server, Session, Setup, StartError};
pub use snapshot::Snapshot;
pub use wait::{sleep_ms, wait_for, wait_until};
