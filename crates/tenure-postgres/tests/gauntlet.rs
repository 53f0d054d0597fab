//! Leases in a PostgreSQL database under faults of the network and of the server: it is killed, restarts, is stopped for a
//! while, has a full disk, and loses its data.
//!
//! `TENURE_TEST_SEED=7` chooses other faults.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

#[path = "../../tenure-testkit/gauntlet/mod.rs"]
mod gauntlet;

use std::time::Duration;

use gauntlet::{Ground, LEASES, a_tenth_on, healthy_on, none_is_lost_while, one_holds_while};
use tenure::Coordinator;
use tenure_postgres::{Environment, Postgres};
use tenure_store::Store;
use tenure_testkit::{FaultyProxy, PostgresServer, PostgresSetup, wait_until};

/// The first database of a server of its own.
struct FirstDatabase(PostgresServer);

impl FirstDatabase {
    fn start(setup: PostgresSetup) -> Option<Self> {
        PostgresServer::start_or_skip(setup).map(Self)
    }
}

impl Ground for FirstDatabase {
    fn proxy(&self) -> FaultyProxy {
        FaultyProxy::start_postgres(self.0.address())
    }

    fn store_through(&self, proxy: &FaultyProxy) -> impl Store {
        let address = proxy.address();
        let builder = Postgres::builder().host_at(&address.ip().to_string(), address.port());
        builder.user("postgres").database("postgres").open_in(&Environment::default()).unwrap()
    }

    fn shares_connections(&self) -> bool {
        true
    }

    fn slots(&self) -> u16 {
        2
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_the_network_does_one_holds_each_lease_at_a_time() {
    let Some(ground) = FirstDatabase::start(PostgresSetup::new()) else { return };
    a_tenth_on(&ground).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_is_lost_while_faults_are_shorter_than_the_ttl_allows() {
    let Some(ground) = FirstDatabase::start(PostgresSetup::new()) else { return };
    healthy_on(&ground, LEASES / 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_holds_each_lease_at_a_time_while_the_server_is_killed_and_stopped_and_its_disk_is_full() {
    let Some(ground) = FirstDatabase::start(PostgresSetup::new().disk(96)) else { return };
    let server = &ground.0;
    let full_disk = || {
        server.fill_disk();
        // Uses up the room that its log has in advance. The server gives up then.
        wait_until("the disk is full", || {
            let log = "SELECT pg_switch_wal(), pg_create_restore_point('full')";
            server.try_sql_in("postgres", log).is_err()
        });
        std::thread::sleep(TTL / 2);
        server.free_disk();
        server.restart();
    };
    one_holds_while(
        &ground,
        TTL,
        BETWEEN,
        &[
            ("killed", &|| server.restart()),
            ("stopped for a while", &|| pause(server, TTL * 2)),
            ("its disk is full", &full_disk),
            ("shut down", &|| {
                server.stop();
                server.restart();
            }),
        ],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_lease_is_lost_in_a_restart_that_is_shorter_than_the_ttl_allows() {
    let Some(ground) = FirstDatabase::start(PostgresSetup::new()) else { return };
    // A busy machine takes seconds to recover from its log.
    none_is_lost_while(&ground, Duration::from_secs(10), || {
        ground.0.restart();
        pause(&ground.0, Duration::from_millis(300));
    })
    .await;
}

/// A server without its data has broken its promise, and only the fence protects: the next token is greater.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_server_ends_the_lease_at_its_next_renewal_and_tokens_grow() {
    let Some(ground) = FirstDatabase::start(PostgresSetup::new()) else { return };
    let proxy = ground.proxy();
    let coordinator = Coordinator::connect(ground.store_through(&proxy)).await.unwrap();
    let request = coordinator.lease("emptied").unwrap().without_witness().ttl(TTL);
    let before = request.acquire().await.unwrap();
    tokio::task::block_in_place(|| {
        ground.0.restart_without_data();
        wait_until("the holder learns that its lease is lost", || before.check().is_err());
    });
    let other = Coordinator::connect(ground.store_through(&proxy)).await.unwrap();
    let request = other.lease("emptied").unwrap().without_witness().ttl(TTL);
    let after = request.wait(TTL * 4).acquire().await.unwrap();
    assert!(after.token() > before.token());
}

fn pause(server: &PostgresServer, time: Duration) {
    server.pause();
    std::thread::sleep(time);
    server.resume();
}

const TTL: Duration = Duration::from_secs(2);

/// Time between two faults: long enough that leases are granted before the next one.
const BETWEEN: Duration = Duration::from_secs(3);
