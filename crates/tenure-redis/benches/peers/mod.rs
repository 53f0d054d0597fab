//! Locks that users of Redis pick instead of Tenure, and Tenure's lease in the same form.

mod redis_py;
mod redlock;
mod tenure_lease;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, Script};
use redis_py::RedisPyLock;
use redlock::RedlockLock;
use tenure_lease::TenureLease;
use tenure_store::BoxFuture;
use tenure_testkit::{ComparedLock, Comparison, LockKind, OpenedLock};

pub(crate) const PEERS: Comparison = Comparison {
    kinds: &[
        LockKind { name: TENURE, has_ttl: true },
        LockKind { name: REDIS_PY, has_ttl: true },
        LockKind { name: REDLOCK, has_ttl: true },
    ],
    open,
    write,
};

fn open<'a>(url: &'a str, kind: &'a str, name: &'a str, ttl: Duration) -> OpenedLock<'a> {
    Box::pin(async move {
        // Each kind has its own keys.
        let lock: Box<dyn ComparedLock> = match kind {
            TENURE => Box::new(TenureLease::open(url, name, ttl).await),
            REDIS_PY => Box::new(RedisPyLock::new(connect(url).await, format!("redis-py:{name}"), ttl)),
            REDLOCK => Box::new(RedlockLock::new(url, format!("redlock:{name}"), ttl)),
            _ => panic!("{kind}"),
        };
        lock
    })
}

/// Writes a hash that keeps the largest token it has seen, as the resource of a user would.
fn write<'a>(url: &'a str, name: &'a str, token: Option<u64>) -> BoxFuture<'a, bool> {
    Box::pin(async move {
        let script = Script::new(
            "local seen = tonumber(redis.call('HGET', KEYS[1], 'token') or '0')
             if ARGV[1] ~= '' and tonumber(ARGV[1]) < seen then return 0 end
             redis.call('HSET', KEYS[1], 'token', ARGV[1] ~= '' and ARGV[1] or seen)
             return 1",
        );
        // The locks without a token write to a resource of their own.
        let key = format!("resource:{}:{name}", token.is_some());
        let token = token.map_or_else(String::new, |token| token.to_string());
        let mut connection = connect(url).await;
        script.key(key).arg(token).invoke_async::<bool>(&mut connection).await.unwrap()
    })
}

/// A connection of the bare client, of the same kind as those of the store.
pub(crate) async fn connect(url: &str) -> MultiplexedConnection {
    Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap()
}

pub(crate) use tenure_lease::store;

const TENURE: &str = "Tenure";
const REDIS_PY: &str = "redis-py's lock";
const REDLOCK: &str = "Redlock (rslock 0.10)";
