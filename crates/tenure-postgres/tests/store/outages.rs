//! Servers that stop, and calls that are given up.

use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use tenure::{Coordinator, ErrorKind};
use tenure_store::{Expect, Purpose, Put, Store, StoreError, Write};
use tenure_testkit::{Fault, PostgresSetup, Rule, key};

use crate::database::{Database, WRITE, open};
use crate::fence::user;
use crate::{applied, create, refusal, replace, scratch_key};

const TTL: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_survives_a_kill_and_a_pause_of_the_server_and_not_the_loss_of_its_data() {
    let Some(database) = Database::alone("outages") else { return };
    // A renewal that was sent before the restart and found applied after it counts from its send: on a busy machine the
    // restart takes most of a short ttl.
    let ttl = Duration::from_secs(20);
    let holder = Coordinator::connect(database.store()).await.unwrap();
    let lease = holder.lease("job").unwrap().without_witness().ttl(ttl).acquire().await.unwrap();
    let server = database.server();
    server.restart();
    lease.renew().await.expect("it connects again");
    server.pause();
    tokio::time::sleep(Duration::from_secs(2)).await;
    lease.check().expect("the ttl is longer than the pause");
    server.resume();
    lease.renew().await.expect("the paused connection is replaced or has answered");
    server.restart_without_data();
    server.sql("CREATE DATABASE outages");
    let began = Instant::now();
    while lease.check().is_ok() && began.elapsed() < 2 * ttl {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(lease.check().is_err(), "its record is gone");
    let next = Coordinator::connect(database.store()).await.unwrap();
    let token = lease.token();
    let next = next.lease("job").unwrap().without_witness().ttl(ttl).wait(ttl).acquire().await.unwrap();
    assert!(next.token() > token, "the server's clock keeps tokens growing");
}

/// The statement is in the queue of a stopped server. No other call waits behind it.
#[tokio::test]
async fn a_call_that_is_given_up_does_not_delay_the_next_one() {
    let Some(database) = Database::on_shared("given_up") else { return };
    let (store, key) = (database.store(), key("k"));
    let version = create(&store, &key).await;
    database
        .proxy()
        .install(Rule::new(Fault::HangThenDeliver(Duration::from_secs(5))).containing(WRITE).times(1));
    let call = replace(&store, &key, &version, Purpose::Renewal);
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    let began = Instant::now();
    store.get(&key).await.unwrap();
    let again = replace(&store, &key, &version, Purpose::Renewal).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // The dropped write may have happened, and nothing else.
    let entry = store.get(&key).await.unwrap().entry.unwrap();
    match again {
        Put::Applied(applied) => assert_eq!(entry.version, applied.version),
        Put::Conflict(_) => assert_ne!(entry.version, version),
    }
    assert_eq!(store.calls().connections, 2);
}

#[tokio::test]
async fn an_answer_that_is_lost_is_unknown_and_a_server_that_is_down_is_not() {
    let Some(database) = Database::alone("lost") else { return };
    let (store, key) = (database.store(), key("k"));
    let version = create(&store, &key).await;
    database.proxy().install(Rule::new(Fault::CutAfter).containing(WRITE).times(1));
    let lost = replace(&store, &key, &version, Purpose::Renewal).await;
    assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
    assert_ne!(store.get(&key).await.unwrap().entry.unwrap().version, version, "it was applied");
    database.server().stop();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let down = refusal(database.store().put(&key, "x".into(), Expect::Absent).await);
    assert!(down.contains("could not be reached"), "{down}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_grants_nothing_and_loses_nothing() {
    let Some(database) = Database::alone_with(PostgresSetup::new().disk(96), "full_disk") else { return };
    let holder = Coordinator::connect(database.store()).await.unwrap();
    let lease = holder.lease("job").unwrap().without_witness().ttl(TTL).acquire().await.unwrap();
    let token = lease.token();
    let server = database.server();
    let (store, before) = (database.store(), key("before"));
    create(&store, &before).await;
    server.fill_disk();
    // Uses up the room that its log has in advance: the server fails when it needs another file.
    tenure_testkit::wait_until("the disk is full", || {
        let log = "SELECT pg_switch_wal(), pg_create_restore_point('full')";
        server.try_sql_in("full_disk", log).is_err()
    });
    let failed = store.put(&key("while full"), "x".into(), Expect::Absent).await;
    assert!(failed.is_err(), "the disk was not full: {failed:?}");
    let contender = Coordinator::connect(database.store()).await;
    let denied = match contender {
        Ok(contender) => contender.lease("job").unwrap().wait(Duration::ZERO).acquire().await.map(drop),
        Err(error) => Err(error),
    };
    let kind = denied.unwrap_err().kind();
    assert!(matches!(kind, ErrorKind::Held | ErrorKind::Unavailable), "{kind:?}");
    server.free_disk();
    server.restart();
    let next = Coordinator::connect(database.store()).await.unwrap();
    drop(lease);
    let next = next.lease("job").unwrap().without_witness().ttl(TTL).wait(3 * TTL).acquire().await.unwrap();
    assert!(next.token() > token);
    for kept in [before, key("job")] {
        assert!(store.get(&kept).await.unwrap().entry.is_some(), "{kept} was acknowledged");
    }
    applied(store.put(&key("freed"), "x".into(), Expect::Absent).await);
}

/// A listener that accepts connections, by its queue, and never answers.
fn silent() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Repeats a call that gives up after `limit`, until it is answered. Panics after ten attempts.
async fn impatient<T, F: Future<Output = Result<T, StoreError>>>(limit: Duration, call: impl Fn() -> F) -> T {
    for _ in 0..10 {
        if let Ok(answer) = tokio::time::timeout(limit, call()).await {
            return answer.unwrap();
        }
    }
    panic!("no call was answered within {limit:?}")
}

#[tokio::test]
async fn a_server_that_accepts_connections_and_is_silent_is_reported() {
    let Some(database) = Database::on_shared("silent") else { return };
    let (_listener, address) = silent();
    let store = open(&database.builder_at(address).parameter("connect_timeout", "1"));
    let began = Instant::now();
    let key = key("k");
    let (created, risks, read) = tokio::join!(store.create_tables(), store.risks(), store.get(&key));
    for sentence in [refusal(created), refusal(risks), refusal(read)] {
        assert!(sentence.ends_with(&format!("{address} did not answer within 1 s")), "{sentence}");
    }
    assert!(began.elapsed() < Duration::from_secs(3), "they wait together: {:?}", began.elapsed());
    assert_eq!(store.calls().connections, 0);
}

#[tokio::test]
async fn behind_a_silent_server_the_next_one_answers_also_beside_a_call_that_waits_for_ever() {
    let Some(database) = Database::on_shared("second_host") else { return };
    let (_listener, address) = silent();
    let port = database.server().address().port();
    let store = open(&database.builder_at(address).host_at("127.0.0.1", port));
    let patient = tokio::spawn({
        let store = store.clone();
        async move { store.get(&key("k")).await }
    });
    tokio::task::yield_now().await;
    let key = key("k");
    impatient(Duration::from_millis(500), || store.get(&key)).await;
    patient.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_call_that_gives_up_before_the_handshake_ends_leaves_the_connection_to_the_next_one() {
    let Some(database) = Database::on_shared("far_away") else { return };
    let slow = Fault::DelayAnswer(Duration::from_millis(500));
    database.proxy().install(Rule::new(slow).containing("pg_backend_pid"));
    let (store, key) = (database.store(), key("k"));
    impatient(Duration::from_millis(200), || store.get(&key)).await;
    assert_eq!(store.calls().connections, 1);
}

#[tokio::test]
async fn a_connection_that_is_lost_on_its_way_costs_a_second_and_not_its_limit() {
    let Some(database) = Database::on_shared("lost_on_its_way") else { return };
    let lost = Fault::HangThenDeliver(Duration::from_secs(60));
    database.proxy().install(Rule::new(lost).containing("pg_backend_pid").times(1));
    let (store, key) = (database.store(), key("k"));
    let read = tokio::time::timeout(Duration::from_secs(4), store.get(&key)).await;
    read.expect("the second attempt is answered").unwrap();
}

#[tokio::test]
async fn a_runtime_that_is_blocked_while_it_connects_delays_no_other_runtime() {
    let Some(database) = Database::on_shared("blocked") else { return };
    let (store, key) = (database.store(), key("k"));
    let mut blocked = pin!(store.get(&key));
    assert!((&mut blocked).now_or_never().is_none(), "it connects, and this runtime does nothing more");
    let (answered, answer) = mpsc::channel();
    let other = store.clone();
    let thread = std::thread::spawn(move || {
        let answer = tenure_testkit::block_on(async { other.get(&tenure_testkit::key("k")).await });
        answered.send(answer.is_ok()).unwrap();
    });
    assert_eq!(answer.recv_timeout(Duration::from_secs(10)), Ok(true));
    thread.join().unwrap();
    blocked.await.unwrap();
}

/// Each of these calls may wait for a lock, and none may be in front of a renewal or a read.
#[tokio::test]
async fn a_renewal_waits_behind_no_release_no_change_and_no_creation() {
    let Some(database) = Database::on_shared("locked_rows") else { return };
    let (store, renewed) = (database.store(), key("renewed"));
    let version = create(&store, &renewed).await;
    let [released, changed] = [create(&store, &key("released")).await, create(&store, &key("changed")).await];
    let user = user(&database).await;
    let locks = "BEGIN; SELECT FROM tenure.record WHERE key <> 'renewed' FOR UPDATE; \
                 INSERT INTO tenure.record VALUES ('created', '', '', now(), ''); \
                 SELECT pg_advisory_xact_lock(x'74656e757265'::bigint)";
    user.batch_execute(locks).await.unwrap();
    let waiting = [
        ("released", Write::new("next", Expect::Version(released)).for_purpose(Purpose::Release)),
        ("changed", Write::new("next", Expect::Version(changed))),
        ("created", Write::new("first", Expect::Absent)),
    ];
    let waiting = waiting.map(|(name, write)| {
        let store = store.clone();
        tokio::spawn(async move { store.write(&key(name), write).await })
    });
    let without_tables = open(&database.builder().schema("other"));
    let creation = tokio::spawn({
        let store = without_tables.clone();
        async move { store.create_tables().await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let soon = Duration::from_millis(700);
    let renewal = replace(&store, &renewed, &version, Purpose::Renewal);
    applied(tokio::time::timeout(soon, renewal).await.expect("a renewal waits for no other write"));
    let read = tokio::time::timeout(soon, without_tables.get(&renewed)).await;
    read.expect("a read waits for no creation of tables").unwrap();
    for answer in waiting {
        let answer = answer.await.unwrap();
        let Err(StoreError::Throttled(locked)) = answer else { panic!("{answer:?}") };
        assert!(locked.cause.unwrap().contains("a lock was not free in time"));
    }
    user.batch_execute("ROLLBACK").await.unwrap();
    creation.await.unwrap().unwrap();
}

/// PostgreSQL raises this error while it commits, when the queue of notifications is full. Here a trigger does.
#[tokio::test]
async fn a_full_queue_of_notifications_certainly_refuses_and_delays_no_renewal() {
    let Some(database) = Database::on_shared("full_queue") else { return };
    let (store, key) = (database.store(), key("k"));
    let version = create(&store, &key).await;
    database.sql(
        "CREATE FUNCTION full_queue() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE \
         'too many notifications in the NOTIFY queue' USING ERRCODE = '54000'; END $$; \
         CREATE CONSTRAINT TRIGGER full_queue AFTER INSERT ON tenure.token DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION full_queue()",
    );
    let sentence = refusal(replace(&store, &key, &version, Purpose::Grant { token: 7 }).await);
    assert!(
        sentence.contains("a session that listens has had a transaction open for too long"),
        "{sentence}"
    );
    applied(replace(&store, &key, &version, Purpose::Renewal).await);
}

/// The server fails each statement once, as it does if a transaction is in the way.
#[tokio::test]
async fn every_statement_that_the_server_rolled_back_is_sent_again() {
    let Some(database) = Database::on_shared("in_the_way") else { return };
    let (store, own) = (database.store(), scratch_key());
    create(&store, &own).await;
    database.sql(
        "CREATE SCHEMA skew; CREATE SEQUENCE skew.reads; CREATE SEQUENCE skew.sweeps; \
         CREATE FUNCTION skew.once(calls regclass) RETURNS void LANGUAGE plpgsql AS $$ \
         BEGIN IF nextval(calls) = 1 THEN RAISE 'in the way' USING ERRCODE = '40001'; END IF; END $$; \
         CREATE FUNCTION skew.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ \
         BEGIN PERFORM skew.once('skew.reads'); RETURN pg_catalog.clock_timestamp(); END $$; \
         CREATE FUNCTION skew.trigger() RETURNS trigger LANGUAGE plpgsql AS $$ \
         BEGIN PERFORM skew.once('skew.sweeps'); RETURN OLD; END $$; \
         CREATE TRIGGER once AFTER DELETE ON tenure.record FOR EACH ROW EXECUTE FUNCTION skew.trigger(); \
         ALTER DATABASE in_the_way SET search_path = skew, pg_catalog",
    );
    let store = database.store();
    assert!(store.get(&own).await.unwrap().entry.is_some());
    store.scratch().unwrap().sweep(&own).await.unwrap();
    assert_eq!((store.calls().reads, store.calls().others), (2, 2));
}

#[tokio::test]
async fn a_sweep_locks_rows_in_the_order_of_a_grant() {
    let Some(database) = Database::on_shared("sweep_order") else { return };
    let (store, own) = (database.store(), scratch_key());
    let version = create(&store, &own).await;
    applied(replace(&store, &own, &version, Purpose::Grant { token: 7 }).await);
    let user = user(&database).await;
    user.batch_execute("BEGIN; SELECT FROM tenure.token FOR UPDATE").await.unwrap();
    let sweep = tokio::spawn({
        let (store, own) = (store.clone(), own.clone());
        async move { store.scratch().unwrap().sweep(&own).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let locked = user.batch_execute("SELECT FROM tenure.record FOR UPDATE NOWAIT; COMMIT").await;
    locked.expect("the sweep waits for the token, and holds no lock on the record");
    sweep.await.unwrap().unwrap();
    assert!(store.get(&own).await.unwrap().entry.is_none());
    assert_eq!(database.sql("SELECT count(*) FROM tenure.token"), "0");
}
