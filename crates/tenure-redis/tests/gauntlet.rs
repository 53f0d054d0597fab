//! Leases on Redis and Valkey under faults of the network and of the server: it is killed, restarts with and without its
//! data, from an old snapshot, is stopped for a while, and has a full disk.
//!
//! `TENURE_TEST_SEED=7` chooses other faults.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

#[path = "../../tenure-testkit/gauntlet/mod.rs"]
mod gauntlet;

use std::time::Duration;

use gauntlet::{Ground, LEASES, a_tenth_on, healthy_on, none_is_lost_while, one_holds_while};
use tenure_redis::Redis;
use tenure_store::Store;
use tenure_testkit::{FaultyProxy, RedisKind, RedisServer, RedisSetup};

/// A server of its own, whose quarantine is as long as the longest ttl of the test.
struct Standalone {
    server: RedisServer,
    quarantine: Duration,
}

impl Standalone {
    fn start(kind: RedisKind, setup: RedisSetup, quarantine: Duration) -> Option<Self> {
        Some(Self { server: RedisServer::start_or_skip(kind, setup)?, quarantine })
    }
}

impl Ground for Standalone {
    fn proxy(&self) -> FaultyProxy {
        FaultyProxy::start_redis(self.server.address())
    }

    fn store_through(&self, proxy: &FaultyProxy) -> impl Store {
        Redis::builder(&proxy.address().to_string()).quarantine(self.quarantine).open().unwrap()
    }

    fn shares_connections(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_network_does_one_holds_each_lease_at_a_time_on_valkey() {
    let setup = RedisSetup::new().durable();
    let Some(ground) = Standalone::start(RedisKind::Valkey, setup, Duration::from_secs(3)) else { return };
    a_tenth_on(&ground).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_is_lost_while_faults_are_shorter_than_the_ttl_allows() {
    let setup = RedisSetup::new().durable();
    let Some(ground) = Standalone::start(RedisKind::Redis, setup, Duration::from_secs(6)) else { return };
    healthy_on(&ground, LEASES / 2).await;
}

/// The server may forget leases at each restart, and does: the quarantine keeps a second holder out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_holds_each_lease_at_a_time_while_redis_forgets_them() {
    let Some(ground) = Standalone::start(RedisKind::Redis, RedisSetup::new(), TTL) else { return };
    let server = &ground.server;
    let old = server.snapshot();
    one_holds_while(
        &ground,
        TTL,
        BETWEEN,
        &[
            ("killed", &|| server.restart()),
            ("emptied", &|| server.restart_without_data()),
            ("rolled back", &|| server.restart_from(&old)),
            ("emptied while it runs", &|| drop(server.command(&["FLUSHALL"]))),
            ("stopped for a while", &|| pause(server, TTL * 2)),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_holds_each_lease_at_a_time_while_the_disk_of_valkey_is_full() {
    let setup = RedisSetup::new().durable().disk(4);
    let Some(ground) = Standalone::start(RedisKind::Valkey, setup, TTL) else { return };
    let server = &ground.server;
    let full_disk = || {
        server.fill_disk();
        std::thread::sleep(TTL);
        server.free_disk();
        // A server that must sync every write ends when it cannot.
        server.restart();
    };
    one_holds_while(&ground, TTL, BETWEEN, &[("its disk is full", &full_disk)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_is_lost_in_a_restart_that_keeps_the_data_and_is_shorter_than_the_ttl_allows() {
    let kinds = [(RedisKind::Redis, RedisSetup::new()), (RedisKind::Valkey, RedisSetup::new().durable())];
    for (kind, setup) in kinds {
        let ttl = Duration::from_secs(4);
        let Some(ground) = Standalone::start(kind, setup, ttl) else { continue };
        let server = &ground.server;
        none_is_lost_while(&ground, ttl, || {
            if kind == RedisKind::Redis {
                server.stop();
            }
            server.restart();
            pause(server, Duration::from_millis(500));
        })
        .await;
    }
}

fn pause(server: &RedisServer, time: Duration) {
    server.pause();
    std::thread::sleep(time);
    server.resume();
}

const TTL: Duration = Duration::from_secs(2);

/// Time between two faults: longer than the quarantine, so that leases are granted before the next one.
const BETWEEN: Duration = Duration::from_secs(4);
