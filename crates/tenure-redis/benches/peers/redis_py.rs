use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Script, Value};
use tenure_store::BoxFuture;
use tenure_testkit::ComparedLock;

/// The lock of redis-py 8, done again: its commands, its scripts and its poll, without the cost of Python.
pub(crate) struct RedisPyLock {
    connection: MultiplexedConnection,
    name: String,
    ttl: Duration,
    /// The value of the key. Only its owner knows it, and no resource can order two of them.
    secret: String,
    granted: u64,
}

impl RedisPyLock {
    pub(crate) fn new(connection: MultiplexedConnection, name: String, ttl: Duration) -> Self {
        Self { connection, name, ttl, secret: String::new(), granted: 0 }
    }
}

impl ComparedLock for RedisPyLock {
    fn acquire(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.granted += 1;
            self.secret = format!("{}-{:p}-{}", std::process::id(), self, self.granted);
            let mut set = redis::cmd("SET");
            set.arg(&self.name).arg(&self.secret).arg("NX").arg("PX").arg(self.ttl.as_millis() as u64);
            while set.query_async::<Value>(&mut self.connection).await.unwrap() != Value::Okay {
                tokio::time::sleep(SLEEP).await;
            }
        })
    }

    fn renew(&mut self) -> BoxFuture<'_, Option<bool>> {
        Box::pin(async {
            let script = Script::new(REACQUIRE);
            let mut call = script.key(&self.name);
            call.arg(&self.secret).arg(self.ttl.as_millis() as u64);
            Some(call.invoke_async::<bool>(&mut self.connection).await.unwrap())
        })
    }

    fn release(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let script = Script::new(RELEASE);
            let mut call = script.key(&self.name);
            assert!(call.arg(&self.secret).invoke_async::<bool>(&mut self.connection).await.unwrap());
        })
    }
}

/// The default pause between two attempts of a blocking acquire.
const SLEEP: Duration = Duration::from_millis(100);

const REACQUIRE: &str = "
    local token = redis.call('get', KEYS[1])
    if not token or token ~= ARGV[1] then
        return 0
    end
    redis.call('pexpire', KEYS[1], ARGV[2])
    return 1
";

const RELEASE: &str = "
    local token = redis.call('get', KEYS[1])
    if not token or token ~= ARGV[1] then
        return 0
    end
    redis.call('del', KEYS[1])
    return 1
";
