//! Standbys, synchronous and not, and what a failover does to leases.

use std::time::Duration;

use tenure::{Coordinator, ErrorKind};
use tenure_postgres::Postgres;
use tenure_store::{Purpose, Store, StoreError, Version};
use tenure_testkit::{PostgresServer, key};
use tokio::task::JoinHandle;

use crate::database::{Database, open};
use crate::{applied, create, replace};

/// PostgreSQL reports a commit as a success, with a warning, if an administrator cancels its wait for a standby. Until a
/// standby has it, a failover may undo it. So its writer must not believe it, also if it reads it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_no_synchronous_standby_has_is_believed_only_when_one_has_it() {
    let Some(database) = Database::alone("replicated") else { return };
    let (server, key) = (database.server(), key("k"));
    let mut version = create(&database.store(), &key).await;
    let write = |store: &Postgres, version: &Version| {
        let (store, key, version) = (store.clone(), key.clone(), version.clone());
        in_background(async move { replace(&store, &key, &version, Purpose::Renewal).await })
    };
    let read = |store: &Postgres| {
        let (store, key) = (store.clone(), key.clone());
        in_background(async move { store.get(&key).await })
    };
    server.sql("ALTER DATABASE replicated SET client_min_messages = error");
    server.sql("ALTER SYSTEM SET synchronous_standby_names = 'replica'");
    server.sql("SELECT pg_reload_conf()");

    // The role's own settings hide warnings, and the write asks for them nevertheless.
    let store = database.store();
    let written = write(&store, &version);
    cancel_the_wait_for_a_standby(server).await;
    let written = written.await.unwrap();
    assert!(matches!(written, Err(StoreError::Unknown(_))), "{written:?}");
    let plain = database.store().get(&key).await.unwrap().entry.unwrap().version;
    assert_ne!(plain, version, "it is committed on the primary, and other stores see it");
    let read_back = read(&store);
    cancel_the_wait_for_a_standby(server).await;
    let sentence = crate::refusal(read_back.await.unwrap());
    assert!(sentence.contains("a failover may undo the latest writes"), "{sentence}");
    version = plain;

    // The primary is killed during the wait, and has the write when it starts again.
    let written = write(&store, &version);
    waits_for_a_standby(server).await;
    server.restart();
    let written = written.await.unwrap();
    assert!(matches!(written, Err(StoreError::Unknown(_))), "{written:?}");
    let plain = database.store().get(&key).await.unwrap().entry.unwrap().version;
    assert_ne!(stamp(&plain), stamp(&version));
    let read_back = read(&store);
    waits_for_a_standby(server).await;
    assert!(!read_back.is_finished());

    // The standby that the primary waits for.
    let replica = server.replica();
    let reading = read_back.await.unwrap().unwrap();
    assert_eq!(reading.entry.unwrap().version, plain);
    // Only the first read after the doubt waits.
    replica.pause();
    assert_eq!(store.get(&key).await.unwrap().entry.unwrap().version, plain);
    replica.resume();
    applied(replace(&store, &key, &plain, Purpose::Renewal).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_keeps_its_lease_through_a_failover_or_learns_that_it_was_lost_and_tokens_grow() {
    let Some(database) = Database::alone("promoted") else { return };
    let primary = database.server();
    let first = primary.replica();
    let both = |one: &PostgresServer, other: &PostgresServer| {
        open(&database.builder_at(one.address()).host_at("127.0.0.1", other.address().port()))
    };
    let (store, other_store) = (both(primary, &first), both(primary, &first));
    let holder = Coordinator::connect(store.clone()).await.unwrap();
    let lease = acquire(&holder, "kept").await;
    catch_up(primary);
    let risks = store.risks().await.unwrap();
    assert!(risks.len() == 1 && risks[0].contains("a failover may lose acknowledged writes"), "{risks:?}");
    primary.kill();
    first.promote();
    renewed(&lease).await;
    let contender = Coordinator::connect(other_store).await.unwrap();
    let held = contender.lease("kept").unwrap().without_witness().ttl(TTL).try_acquire().await;
    assert_eq!(held.unwrap_err().kind(), ErrorKind::Held, "it is held on the promoted server, too");
    let risks = store.risks().await.unwrap();
    assert!(
        risks.len() == 1 && risks[0].contains("its timeline is 2"),
        "the promotion is visible: {risks:?}"
    );
    let token = lease.token();
    lease.release().await.unwrap();
    let next = acquire(&contender, "kept").await;
    assert!(next.token() > token);

    // A participant releases a lease, and remembers that it is free.
    let second = first.replica();
    let remembers = Coordinator::connect(both(&first, &second)).await.unwrap();
    acquire(&remembers, "released").await.release().await.unwrap();
    let released = key("released");
    let vacant = both(&first, &second).get(&released).await.unwrap().entry.unwrap().version;
    // The standby does not follow when the leases are granted.
    catch_up(&first);
    std::fs::write(
        first.data_directory().join("pg_hba.conf"),
        "local all all trust\nhost all all 127.0.0.1/32 trust\n",
    )
    .unwrap();
    first.sql("SELECT pg_reload_conf()");
    let detached = || {
        let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_replication";
        first.sql(terminate) == "0" && second.sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0"
    };
    tenure_testkit::wait_until("the standby is cut off", detached);
    let (store, other_store) = (both(&first, &second), both(&first, &second));
    let holder = Coordinator::connect(store).await.unwrap();
    let lost = acquire(&holder, "lost").await;
    let lost_again = acquire(&holder, "released").await;
    second.promote();
    let risks = other_store.risks().await.unwrap();
    assert!(risks.iter().any(|risk| risk.contains("accept writes, each for itself")), "{risks:?}");
    let twice = both(&first, &first).risks().await.unwrap();
    assert!(!twice.iter().any(|risk| risk.contains("each for itself")), "it is one server: {twice:?}");
    first.kill();
    let contender = Coordinator::connect(other_store).await.unwrap();
    let granted = acquire(&contender, "lost").await;
    assert!(granted.token() > lost.token(), "{} after {}", granted.token(), lost.token());
    // The failover has undone the grant of the released lease, and its row is the one from before.
    let undone = both(&second, &second).get(&released).await.unwrap().entry.unwrap().version;
    assert_eq!(stamp(&undone), stamp(&vacant));
    assert_ne!(undone, vacant, "another server shows it");
    let granted_again = acquire(&remembers, "released").await;
    assert!(
        granted_again.token() > lost_again.token(),
        "{} after {}",
        granted_again.token(),
        lost_again.token()
    );
    let error = loop {
        match lost.renew().await {
            Ok(_) => panic!("two hold the lease, and both can renew it"),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    granted.check().unwrap();
}

/// The part of a version that is in the row.
fn stamp(version: &Version) -> &str {
    version.as_str().split_once(':').unwrap().1
}

const TTL: Duration = Duration::from_secs(15);

async fn acquire(coordinator: &Coordinator, name: &str) -> tenure::Lease {
    coordinator.lease(name).unwrap().without_witness().ttl(TTL).acquire().await.unwrap()
}

/// Renews until the new primary answers.
async fn renewed(lease: &tenure::Lease) {
    for _ in 0..100 {
        match lease.renew().await {
            Ok(_) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the lease was not renewed");
}

/// Waits until the standby has everything that was committed.
fn catch_up(primary: &PostgresServer) {
    let behind = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()";
    tenure_testkit::wait_until("the standby has everything", || primary.sql(behind) == "1");
}

async fn waits_for_a_standby(server: &PostgresServer) {
    waiting(server, "count(*)").await;
}

async fn cancel_the_wait_for_a_standby(server: &PostgresServer) {
    waiting(server, "count(pg_cancel_backend(pid))").await;
}

async fn waiting(server: &PostgresServer, what: &str) {
    let sessions = format!("SELECT {what} FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    for _ in 0..200 {
        if server.sql(&sessions) != "0" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no commit waits for a standby");
}

fn in_background<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(call)
}
