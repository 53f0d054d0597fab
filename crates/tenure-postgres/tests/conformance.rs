//! The store under the public suite, on a real server.

mod database;

use std::time::Duration;

use database::Database;
use tenure_testkit::{PostgresKind, PostgresSetup, quota};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_keeps_the_contract() {
    let Some(database) = Database::alone("contract") else { return };
    database.keeps_the_contract(64, quota(200, 1_000) as usize).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_carries_leases() {
    let Some(database) = Database::alone("leases") else { return };
    database.carries_leases(6, Duration::from_secs(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_carries_the_primitives() {
    let Some(database) = Database::alone("primitives") else { return };
    database.carries_primitives(Duration::from_secs(5)).await;
}

/// Fewer races: they show that the statements mean the same there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_newest_postgresql_keeps_the_contract_and_carries_leases() {
    let newest = PostgresSetup::new().kind(PostgresKind::Newest);
    let Some(database) = Database::alone_with(newest, "newest") else { return };
    database.keeps_the_contract(16, quota(10, 200) as usize).await;
    database.carries_leases(4, Duration::from_secs(4)).await;
}
