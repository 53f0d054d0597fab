//! A Tenure store on a Redis or Valkey server, and a fence for the keys of programs there.
//!
//! ```no_run
//! use tenure_redis::Redis;
//!
//! let store = Redis::builder("127.0.0.1:6379").open()?;
//! # Ok::<(), tenure_redis::OpenError>(())
//! ```
//!
//! [`RedisFence`] is a fence for the keys of a program on such a server: a write under a stale token is refused by the server,
//! whatever store the lease is in.
//!
//! Guarantees, requirements and tested servers: `docs/stores/redis.md`.
//!
//! # Design
//!
//! Each record is a hash without expiry, and each operation is one script, so that it is atomic on the server. The client
//! underneath, [`redis`], only moves bytes: this crate opens the connections, sends every command once, and decides what an
//! answer means (`classify`).
//!
//! A restart of a Redis server may lose or roll back records. It breaks every connection, so the run id that the handshake
//! reads holds for all calls of the connection. Each version names the run in which it was seen: no write is ever based on
//! a read from before a restart. And for a while after a restart the store grants nothing: the module `quarantine` has the
//! rules.

mod boot_time;
mod classify;
mod cluster;
mod connection;
mod fence;
mod names;
mod open;
mod promises;
mod quarantine;
mod scripts;
mod store;
mod unconfirmed;
mod watch;
mod words;

pub use fence::{PartlyWritten, RedisFence};
pub use open::{OpenError, RedisBuilder};
/// The client whose commands a [`RedisFence`] takes.
pub use redis;
pub use store::Redis;

/// 128 bits of the kernel's randomness: also two clones of one virtual machine never draw the same.
pub(crate) fn stamp() -> String {
    let mut bytes = [0; 16];
    let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(drawn, Ok(bytes.len()), "the kernel gives randomness");
    format!("{:032x}", u128::from_ne_bytes(bytes))
}

/// Compiles the Rust code of the page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/stores/redis.md")]
struct Page;
