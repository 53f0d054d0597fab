//! A primary server, its replica, and the sentinels that watch them.

use std::net::SocketAddr;

use super::{RedisKind, RedisServer, RedisSetup};
use crate::server::StartError;
use crate::wait_until;

/// A primary server, an asynchronous replica, and three sentinels that make the replica the primary server when two of
/// them have not heard of the other one for a second.
#[derive(Debug)]
pub struct RedisSentinels {
    servers: [RedisServer; 2],
    sentinels: Vec<RedisServer>,
}

impl RedisSentinels {
    /// The name of the servers, by which clients ask a sentinel for the primary one.
    pub const NAME: &str = "tenure";

    /// Starts all of them; `None`, after a call of [`skipped`](crate::skipped), if the program is not installed.
    #[track_caller]
    pub fn start_or_skip(kind: RedisKind) -> Option<Self> {
        let primary = RedisServer::start_or_skip(kind, RedisSetup::new())?;
        let replica = primary.replica();
        let monitor = format!("monitor {} 127.0.0.1 {} 2", Self::NAME, primary.address().port());
        let setup = RedisSetup { sentinel: true, ..RedisSetup::new() }
            .setting("sentinel", &monitor)
            .setting("sentinel", &format!("down-after-milliseconds {} 1000", Self::NAME))
            .setting("sentinel", &format!("failover-timeout {} 5000", Self::NAME));
        let sentinels = (0..SENTINELS).map(|_| RedisServer::start(kind, setup.clone())).collect();
        let sentinels: Vec<_> = StartError::or_skip(sentinels)?;
        let all = Self { servers: [primary, replica], sentinels };
        let others = format!("num-other-sentinels\n{}\n", SENTINELS - 1);
        wait_until("the sentinels know everything", || {
            let known = |sentinel: &RedisServer| sentinel.command(&["SENTINEL", "MASTER", Self::NAME]);
            let mut known = all.sentinels.iter().map(known);
            known.all(|known| known.contains(&others) && known.contains("num-slaves\n1\n"))
        });
        Some(all)
    }

    /// The two servers: at first, the first one is the primary.
    pub fn servers(&self) -> &[RedisServer; 2] {
        &self.servers
    }

    /// The three sentinels.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// The address of the primary server, as the first sentinel knows it.
    #[track_caller]
    pub fn primary(&self) -> SocketAddr {
        let answer = self.sentinels[0].command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::NAME]);
        answer.replace('\n', ":").parse().unwrap_or_else(|_| panic!("this is no address: {answer:?}"))
    }
}

const SENTINELS: usize = 3;
