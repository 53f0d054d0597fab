//! Limits of the server, and of the store.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tenure::Coordinator;
use tenure_store::{Purpose, Put, Store, StoreError};
use tenure_testkit::{PostgresSetup, key};

use crate::database::{Database, open};
use crate::fence::{try_user, user};
use crate::{applied, create, refusal, replace};

#[tokio::test]
async fn a_statement_that_the_servers_limit_cancels_had_no_effect_and_the_holder_renews_again() {
    let Some(database) = Database::on_shared("limited") else { return };
    database.sql("CREATE ROLE hurried LOGIN SUPERUSER; ALTER ROLE hurried SET statement_timeout = '300ms'");
    let hurried = database.builder().user("hurried");
    let store = open(&hurried);
    let job = key("job");
    let version = create(&store, &job).await;
    let holder = Coordinator::connect(store.clone()).await.unwrap();
    let ttl = Duration::from_secs(6);
    let lease = holder.lease("held").unwrap().without_witness().ttl(ttl).acquire().await.unwrap();
    let user = user(&database).await;
    user.batch_execute("BEGIN; SELECT FROM tenure.record FOR UPDATE").await.unwrap();
    let sentence = refusal(replace(&store, &job, &version, Purpose::Renewal).await);
    assert!(sentence.contains("a lease needs a longer statement_timeout (57014"), "{sentence}");
    // The keeper meets the limit, too.
    let limit = Instant::now() + ttl;
    while !lease.last_error().is_some_and(|error| error.contains("57014")) {
        assert!(Instant::now() < limit, "{:?}", lease.last_error());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    user.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.get(&job).await.unwrap().entry.unwrap().version, version, "it had no effect");
    applied(replace(&store, &job, &version, Purpose::Renewal).await);
    lease.renew().await.unwrap();
    lease.release().await.unwrap();

    // A new connection reads the catalog first.
    user.batch_execute("BEGIN; LOCK TABLE pg_catalog.pg_trigger").await.unwrap();
    let sentence = refusal(open(&hurried).get(&job).await);
    assert!(sentence.contains("a lease needs a longer statement_timeout (57014"), "{sentence}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contender_waits_while_the_server_has_no_connection_left_and_then_holds_the_lease() {
    let few = PostgresSetup::new().setting("max_connections", "12");
    let Some(database) = Database::alone_with(few, "crowded") else { return };
    let contender = Coordinator::connect(database.store()).await.unwrap();
    let mut users = vec![user(&database).await];
    // The connection of the contender is cut, and others take its place.
    let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                  WHERE datname = 'crowded' AND pid <> pg_backend_pid()";
    users[0].query_one(others, &[]).await.unwrap();
    while let Some(user) = try_user(&database).await {
        users.push(user);
    }
    let request = contender.lease("job").unwrap().without_witness();
    let acquire = tokio::spawn(async move { request.wait(Duration::from_secs(30)).acquire().await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!acquire.is_finished(), "it waits");
    users.clear();
    acquire.await.unwrap().unwrap().release().await.unwrap();
}

/// A user holds the rows of all tokens, so that every grant waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_has_four_connections_at_most_and_a_renewal_waits_behind_no_grant() {
    let Some(database) = Database::on_shared("connections") else { return };
    let store = database.store();
    let keys: Vec<_> = (0..24).map(|number| key(&format!("k{number}"))).collect();
    let mut versions = Vec::new();
    for key in &keys {
        let version = create(&store, key).await;
        versions.push(applied(replace(&store, key, &version, Purpose::Grant { token: 1 }).await));
    }
    let renewed = create(&store, &key("renewed")).await;
    let user = user(&database).await;
    user.batch_execute("BEGIN; SELECT FROM tenure.token FOR SHARE").await.unwrap();
    let grants = keys.iter().zip(&versions).map(|(key, version)| {
        let (store, key, version) = (store.clone(), key.clone(), version.clone());
        tokio::spawn(async move { replace(&store, &key, &version, Purpose::Grant { token: 2 }).await })
    });
    let grants: Vec<_> = grants.collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let began = Instant::now();
    applied(replace(&store, &key("renewed"), &renewed, Purpose::Renewal).await);
    assert!(began.elapsed() < Duration::from_millis(700), "it waited for {:?}", began.elapsed());
    let open =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = 'connections' AND pid <> pg_backend_pid()";
    let open: i64 = user.query_one(open, &[]).await.unwrap().get(0);
    assert_eq!(open, 4, "of them, three have grants");
    assert_eq!(store.calls().connections, 4);
    user.batch_execute("COMMIT").await.unwrap();
    for answer in join_all(grants).await {
        let answer = answer.unwrap();
        assert!(matches!(answer, Ok(Put::Applied(_)) | Err(StoreError::Throttled(_))), "{answer:?}");
    }
}
