//! Settings of servers, databases and roles.

use std::time::Duration;

use futures_util::future::join_all;
use tenure::{Coordinator, ErrorKind};
use tenure_store::{Expect, Purpose, Put, Store, StoreError, Version};
use tenure_testkit::{PgBouncer, PostgresSetup, key};

use crate::database::{Database, open};
use crate::{applied, create, refusal, replace};

/// PostgreSQL then answers some statements with 40001, because others were in the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_serializable_by_default_gives_definite_answers() {
    let Some(database) = Database::on_shared("serializable") else { return };
    database.sql("ALTER DATABASE serializable SET default_transaction_isolation = 'serializable'");
    database.store().create_tables().await.unwrap();
    let pooler = PgBouncer::start_or_skip(database.server());
    let builders =
        [Some(database.builder()), pooler.as_ref().map(|pooler| database.builder_at(pooler.address()))];
    for (server, builder) in builders.into_iter().flatten().enumerate() {
        let stores: Vec<_> = (0..8).map(|_| open(&builder)).collect();
        let calls = || stores.iter().map(|store| store.calls().writes).sum::<u64>();
        let mut sent = 0;
        for round in 0..50 {
            let key = key(&format!("raced-{server}-{round}"));
            let puts = join_all(stores.iter().map(|store| store.put(&key, "x".into(), Expect::Absent))).await;
            let version = only_winner(puts);
            let replace = |store| replace(store, &key, &version, Purpose::Change);
            only_winner(join_all(stores.iter().map(replace)).await);
            sent += 2 * stores.len() as u64;
            if calls() > sent {
                break;
            }
        }
        assert_eq!(calls() > sent, server == 1, "only through the pooler, statements are sent again");
    }
}

/// The version of the one write that was applied.
#[track_caller]
fn only_winner(puts: Vec<Result<Put, StoreError>>) -> Version {
    let applied = puts.into_iter().filter_map(|put| match put.unwrap() {
        Put::Applied(applied) => Some(applied.version),
        Put::Conflict(_) => None,
    });
    let versions: Vec<_> = applied.collect();
    let [version] = versions.as_slice() else { panic!("one write wins: {versions:?}") };
    version.clone()
}

#[tokio::test]
async fn a_role_that_only_reads_is_refused_in_words() {
    let Some(database) = Database::on_shared("read_only") else { return };
    let (store, key) = (database.store(), key("k"));
    create(&store, &key).await;
    database.sql("ALTER DATABASE read_only SET default_transaction_read_only = on");
    let sentence = refusal(database.store().get(&key).await);
    assert!(sentence.contains("default_transaction_read_only"), "{sentence}");
    let error = Coordinator::connect(database.store()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// The write raises the setting for its own transaction, so that it is durable all the same. The server has no other
/// clients, and its own processes flush the log too rarely to matter.
#[tokio::test]
async fn a_write_waits_for_the_disk_though_the_role_does_not() {
    let lazy = PostgresSetup::new().setting("wal_writer_delay", "10s").setting("autovacuum", "off");
    let Some(database) = Database::alone_with(lazy, "hasty") else { return };
    database.sql("ALTER DATABASE hasty SET synchronous_commit = off");
    let (store, key) = (database.store(), key("k"));
    let mut version = create(&store, &key).await;
    let is_durable =
        || database.sql("SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()") == "t";
    for purpose in [Purpose::Renewal, Purpose::Change, Purpose::Grant { token: 7 }, Purpose::Release] {
        database.sql("CREATE TABLE IF NOT EXISTS other (n int); INSERT INTO other VALUES (1)");
        assert!(!is_durable(), "without the setting of the write, nothing waits");
        version = applied(replace(&store, &key, &version, purpose).await);
        assert!(is_durable(), "{purpose:?}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_keep_what_it_acknowledges_or_that_follows_another_is_refused_in_words() {
    let Some(database) = Database::alone("durable") else { return };
    let (server, key) = (database.server(), key("k"));
    create(&database.store(), &key).await;
    server.sql("ALTER SYSTEM SET fsync = off");
    server.sql("SELECT pg_reload_conf()");
    tenure_testkit::wait_until("the setting is loaded", || server.sql("SHOW fsync") == "off");
    let sentence = refusal(database.store().get(&key).await);
    assert!(sentence.contains("fsync = off") && sentence.contains("accept=fsync-off"), "{sentence}");
    open(&database.builder().accept_fsync_off()).get(&key).await.unwrap();
    server.sql("ALTER SYSTEM RESET fsync");
    server.sql("SELECT pg_reload_conf()");
    tenure_testkit::wait_until("the setting is loaded", || server.sql("SHOW fsync") == "on");

    let replica = server.replica();
    let follows =
        || replica.try_sql_in("durable", "SELECT count(*) FROM tenure.record").is_ok_and(|n| n == "1");
    tenure_testkit::wait_until("the replica follows", follows);
    let standby = open(&database.builder_at(replica.address()));
    for sentence in
        [refusal(standby.get(&key).await), refusal(standby.put(&key, "x".into(), Expect::Absent).await)]
    {
        assert!(sentence.contains("the server is a standby"), "{sentence}");
    }

    let risks = database.store().risks().await.unwrap();
    assert!(risks[0].starts_with("1 server follows this one, and no commit waits"), "{risks:?}");
    assert_eq!(risks.len(), 1);

    // With several servers in the URL, the one that accepts writes is used, before and after a failover.
    let both = database.builder_at(replica.address()).host_at("127.0.0.1", server.address().port());
    let both = open(&both);
    let entry = both.get(&key).await.unwrap().entry.unwrap();
    server.kill();
    replica.promote();
    let mut again = both.get(&key).await;
    for _ in 0..50 {
        if again.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        again = both.get(&key).await;
    }
    let again = again.unwrap().entry.unwrap();
    assert_eq!(again.value, entry.value);
    // The failover may have undone writes that the former server acknowledged.
    let earlier = replace(&both, &key, &entry.version, Purpose::Change).await.unwrap();
    assert!(matches!(earlier, Put::Conflict(_)), "a version of another server is no reason to write");
    applied(replace(&both, &key, &again.version, Purpose::Change).await);
}

#[tokio::test]
async fn an_age_by_the_servers_clock_counts_only_for_the_process_that_wrote_it() {
    let Some(database) = Database::alone("ages") else { return };
    let key = key("k");
    let judge = || open(&database.builder().accept_server_clock());
    create(&judge(), &key).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let age = judge().get(&key).await.unwrap().entry.unwrap().age.unwrap();
    assert!(age >= Duration::from_millis(50), "{age:?}");
    assert_eq!(database.store().get(&key).await.unwrap().entry.unwrap().age, None, "it was not accepted");
    database.server().restart();
    assert_eq!(
        judge().get(&key).await.unwrap().entry.unwrap().age,
        None,
        "another process has another clock"
    );
}

/// The search path of the database puts a clock of the test before that of the server.
#[tokio::test]
async fn tokens_grow_though_the_clock_of_the_server_is_ten_years_off_and_set_right_again() {
    let Some(database) = Database::on_shared("skewed") else { return };
    let set = |interval: &str| {
        database.sql(&format!(
            "CREATE SCHEMA IF NOT EXISTS skew; CREATE OR REPLACE FUNCTION skew.clock_timestamp() RETURNS timestamptz \
             LANGUAGE sql VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() + interval '{interval}' $$; \
             ALTER DATABASE skewed SET search_path = skew, pg_catalog"
        ));
    };
    let mut latest = None;
    for interval in ["0", "10 years", "-10 years", "0"] {
        set(interval);
        // Each is a new process, which has seen no token.
        let process = Coordinator::connect(database.store()).await.unwrap();
        let lease = process.lease("job").unwrap().without_witness().acquire().await.unwrap();
        lease.renew().await.unwrap();
        assert!(Some(lease.token()) > latest, "{interval}: {} after {latest:?}", lease.token());
        latest = Some(lease.token());
        lease.release().await.unwrap();
    }
}
