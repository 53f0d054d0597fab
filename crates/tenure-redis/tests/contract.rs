//! The contract of stores, on real servers.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

mod support;

use std::time::Duration;

use support::Place;
use tenure::Coordinator;
use tenure_conformance::Suite;
use tenure_testkit::{RedisKind, RedisSetup, quota};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_keeps_the_contract() {
    keeps_the_contract(RedisKind::Redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn valkey_keeps_the_contract() {
    keeps_the_contract(RedisKind::Valkey).await;
}

async fn keeps_the_contract(kind: RedisKind) {
    let setup = RedisSetup::new().durable();
    let Some(place) = Place::start(kind, setup, |builder| builder.accept_restart()) else { return };
    let suite = Suite::new(1).only_contract().racers(64).rounds(quota(200, 1000) as usize);
    let skips = ["ages", "removal", "this harness", "no listing with stamps", "keeping acknowledged writes"];
    place.passes(suite, &skips).await;
}

/// The default settings of server and store, except for a shorter quarantine. One participant waits for it, and all others
/// are granted at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_may_forget_passes_all_levels_after_its_quarantine() {
    let ttl = Duration::from_secs(2);
    let briefly = |builder: tenure_redis::RedisBuilder| builder.quarantine(Duration::from_secs(2));
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), briefly) else { return };
    let first = Coordinator::connect(place.store()).await.unwrap();
    let request = first.lease("first").unwrap().ttl(ttl).without_witness().wait(ttl * 3);
    request.acquire().await.unwrap().release().await.unwrap();
    let suite = Suite::new(1).racers(64).rounds(20).ttl(ttl);
    place
        .passes(
            suite,
            &["ages", "removal", "this harness", "no listing with stamps", "keeping acknowledged writes"],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_carries_leases_and_primitives() {
    carries(RedisKind::Redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn valkey_carries_leases_and_primitives() {
    carries(RedisKind::Valkey).await;
}

async fn carries(kind: RedisKind) {
    let setup = RedisSetup::new().durable();
    let Some(place) = Place::start(kind, setup, |builder| builder.accept_restart()) else { return };
    let suite = Suite::new(1).only_leases().only_primitives().ttl(Duration::from_secs(2));
    place.passes(suite, &["ages", "removal", "this harness", "no listing with stamps"]).await;
}
