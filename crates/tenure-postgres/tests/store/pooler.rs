//! Through a pooler in transaction mode.

use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use tenure::Coordinator;
use tenure_store::{Expect, Prefix, Purpose, Put, Reason, Store, StoreError};
use tenure_testkit::{PgBouncer, key};

use crate::database::{Database, open};
use crate::{applied, create, refusal, replace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_work_through_a_pooler_which_keeps_no_state_of_theirs() {
    let Some(database) = Database::on_shared("pooled") else { return };
    let Some(pooler) = PgBouncer::start_or_skip(database.server()) else { return };
    let store = || open(&database.builder_at(pooler.address()));
    let stores: Vec<_> = (0..6).map(|_| store()).collect();
    let key = key("raced");
    let racers = stores.iter().flat_map(|store| (0..4).map(|_| store.put(&key, "x".into(), Expect::Absent)));
    let won = join_all(racers).await.into_iter().filter(|put| matches!(put, Ok(Put::Applied(_)))).count();
    assert_eq!(won, 1);
    assert!(stores[0].watch(&Prefix::all()).is_none(), "a pooler passes no notification on");

    let [first, second] = [store(), store()];
    let first = Coordinator::connect(first).await.unwrap();
    let second = Coordinator::connect(second).await.unwrap();
    let lease = first.lease("job").unwrap().without_witness().acquire().await.unwrap();
    let token = lease.token();
    let wait = Duration::from_secs(20);
    let (released, next) =
        tokio::join!(lease.release(), second.lease("job").unwrap().without_witness().wait(wait).acquire());
    released.unwrap();
    assert!(next.unwrap().token() > token);
    let state = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'pooled' AND query LIKE 'LISTEN%'";
    assert_eq!(database.sql(state), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_connection_gives_hints() {
    use futures_util::StreamExt;
    let Some(database) = Database::on_shared("hints") else { return };
    let (store, key) = (open(&database.builder_at(database.server().address())), key("watched"));
    let version = create(&store, &key).await;
    let mut hints = store.watch(&Prefix::of(&key)).expect("it is not pooled");
    hints.next().await.expect("the first one says that it listens");
    let version = applied(replace(&store, &key, &version, Purpose::Renewal).await);
    let pause = Duration::from_millis(300);
    assert!(tokio::time::timeout(pause, hints.next()).await.is_err(), "a renewal wakes no contender");
    let version = applied(replace(&store, &key, &version, Purpose::Release).await);
    hints.next().await.expect("a release wakes contenders");
    applied(replace(&store, &key, &version, Purpose::Grant { token: 7 }).await);
    hints.next().await.expect("a grant shows its holder to observers");
    drop(hints);
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'hints' AND query LIKE 'LISTEN%'";
    tenure_testkit::wait_until("the connection is closed", || database.sql(listening) == "0");
}

/// The stream ends, so that its owner knows that hints may be missing. The next one listens again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_listener_ends_the_streams_and_the_next_stream_listens_again() {
    use futures_util::StreamExt;
    let Some(database) = Database::on_shared("lost_hints") else { return };
    let (store, key) = (open(&database.builder_at(database.server().address())), key("watched"));
    let version = create(&store, &key).await;
    let mut hints = store.watch(&Prefix::of(&key)).expect("it is not pooled");
    hints.next().await.expect("it listens");
    database.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = 'lost_hints' AND query LIKE 'LISTEN%'",
    );
    assert_eq!(hints.next().await, None);
    let mut hints = store.watch(&Prefix::of(&key)).expect("it is not pooled");
    hints.next().await.expect("it listens again");
    applied(replace(&store, &key, &version, Purpose::Release).await);
    hints.next().await.expect("a release wakes contenders");
}

/// Two coordinators on one store have a runtime each, and one connection listens for both.
#[test]
fn a_listener_that_ends_with_its_runtime_ends_the_streams_of_other_runtimes() {
    use futures_util::StreamExt;
    let Some(database) = Database::on_shared("listeners") else { return };
    let (store, key) = (open(&database.builder_at(database.server().address())), key("watched"));
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let first = runtime().unwrap();
    let _watched = first.block_on(async {
        create(&store, &key).await;
        let mut hints = store.watch(&Prefix::of(&key)).expect("it is not pooled");
        hints.next().await.expect("it listens");
        hints
    });
    runtime().unwrap().block_on(async {
        let mut hints = store.watch(&Prefix::of(&key)).expect("it is not pooled");
        first.shutdown_background();
        let ended = tokio::time::timeout(Duration::from_secs(10), hints.next()).await;
        assert_eq!(ended, Ok(None));
        let mut hints = store.watch(&Prefix::of(&key)).expect("it is not pooled");
        hints.next().await.expect("this runtime listens");
    });
}

#[tokio::test]
async fn a_standby_behind_a_pooler_is_refused_though_the_connection_began_on_a_primary() {
    let Some(database) = Database::alone("switched") else { return };
    let server = database.server();
    let Some(pooler) = PgBouncer::start_or_skip(server) else { return };
    let (store, key) = (open(&database.builder_at(pooler.address())), key("k"));
    create(&store, &key).await;
    server.stop();
    std::fs::write(server.data_directory().join("standby.signal"), "").unwrap();
    server.restart();
    let listed: Result<Vec<_>, _> = store.list(&Prefix::all()).try_collect().await;
    let missing: Result<Vec<_>, _> = store.list(&Prefix::parse("missing").unwrap()).try_collect().await;
    for sentence in [refusal(listed), refusal(missing), refusal(store.get(&key).await)] {
        assert!(sentence.contains("the server is a standby"), "{sentence}");
    }
    assert_eq!(store.calls().connections, 1);
}

/// The pooler still accepts connections, and refuses each with the code of a wrong protocol.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contender_waits_while_the_server_of_the_pooler_is_down() {
    let Some(database) = Database::alone("behind") else { return };
    let Some(pooler) = PgBouncer::start_or_skip(database.server()) else { return };
    let store = || open(&database.builder_at(pooler.address()));
    let contender = Coordinator::connect(store()).await.unwrap();
    database.server().stop();
    let request = contender.lease("job").unwrap().without_witness();
    let acquire = tokio::spawn(async move { request.wait(Duration::from_secs(60)).acquire().await });
    // PgBouncer tells its clients after the second attempt.
    let began = std::time::Instant::now();
    let sentence = loop {
        let sentence = refusal(store().get(&key("job")).await);
        if sentence.contains("08P01") {
            break sentence;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{sentence}");
    };
    assert!(sentence.starts_with("the store could not be reached"), "{sentence}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!acquire.is_finished(), "it waits");
    database.server().restart();
    acquire.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_missing_database_behind_a_pooler_is_missing_and_not_unreachable() {
    let Some(database) = Database::on_shared("missing_behind_a_pooler") else { return };
    let Some(pooler) = PgBouncer::start_or_skip(database.server()) else { return };
    let store = open(&database.builder_at(pooler.address()).database("nowhere"));
    let answer = store.get(&key("k")).await;
    let Err(StoreError::Refused(refused)) = answer else { panic!("{answer:?}") };
    assert_eq!(refused.reason, Reason::Missing, "{refused}");
    assert!(refused.to_string().contains("there is no database \"nowhere\""), "{refused}");
}
