//! Commands on the wire: their number, their repetition, and the connections that carry them.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

mod support;

use std::time::Duration;

use support::Place;
use tenure::Coordinator;
use tenure_redis::{Redis, RedisBuilder};
use tenure_store::{Expect, Key, Put, Store, StoreError, Version};
use tenure_testkit::{Fault, RedisKind, RedisSetup, Rule, key};

fn plain(builder: RedisBuilder) -> RedisBuilder {
    builder.accept_restart()
}

fn place() -> Option<Place> {
    Place::start(RedisKind::Redis, RedisSetup::new(), plain)
}

/// The names of the commands since the last call.
fn sent(place: &Place) -> Vec<String> {
    let log = place.proxy.log();
    place.proxy.clear_log();
    log.into_iter().map(|exchange| exchange.method).collect()
}

async fn created(store: &tenure_redis::Redis, key: &Key, value: &'static str) -> Version {
    match store.put(key, value.into(), Expect::Absent).await.unwrap() {
        Put::Applied(applied) => applied.version,
        Put::Conflict(_) => panic!("it was absent"),
    }
}

#[tokio::test]
async fn every_operation_on_a_lease_is_one_command() {
    let Some(place) = place() else { return };
    let warm = Coordinator::connect(place.store()).await.unwrap();
    // The keeper has its own runtime, and so its own connection.
    warm.lease("other").unwrap().without_witness().manual().acquire().await.unwrap().release().await.unwrap();
    sent(&place);
    let lease = warm.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    assert_eq!(sent(&place), ["EVALSHA"; 3], "first use: a read, the plant and the grant");
    lease.renew().await.unwrap();
    assert_eq!(sent(&place), ["EVALSHA"], "a renewal");
    lease.release().await.unwrap();
    assert_eq!(sent(&place), ["EVALSHA"], "a release");
    let lease = warm.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    assert_eq!(sent(&place), ["EVALSHA"], "a warm acquire");
    lease.release().await.unwrap();
    let cold = Coordinator::connect(place.store()).await.unwrap();
    cold.lease("other").unwrap().without_witness().manual().acquire().await.unwrap().release().await.unwrap();
    sent(&place);
    let _lease = cold.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    assert_eq!(sent(&place), ["EVALSHA"; 2], "a cold acquire");
}

#[tokio::test]
async fn a_connection_begins_with_one_handshake_and_is_kept() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), |builder| builder) else { return };
    let store = place.store();
    assert_eq!(sent(&place).len(), 0, "opening a store sends nothing");
    store.get(&key("k")).await.unwrap();
    let handshake = [&["INFO"; 4][..], &["CONFIG"; 3], &["HGETALL"]].concat();
    let first = ["EVALSHA", "EVAL", "EVALSHA", "EVAL"];
    assert_eq!(
        sent(&place),
        [&handshake[..], &first].concat(),
        "the sighting and the read, whose scripts are new"
    );
    for _ in 0..3 {
        store.get(&key("k")).await.unwrap();
    }
    assert_eq!(sent(&place), ["EVALSHA"; 3]);
    assert_eq!(store.connections_opened(), 1);
}

#[tokio::test]
async fn a_script_that_the_server_has_lost_is_sent_once_with_its_text() {
    let Some(place) = place() else { return };
    let store = place.store();
    let version = created(&store, &key("k"), "one").await;
    place.server.command(&["SCRIPT", "FLUSH"]);
    sent(&place);
    let put = store.put(&key("k"), "two".into(), Expect::Version(version)).await.unwrap();
    assert!(matches!(put, Put::Applied(_)));
    assert_eq!(sent(&place), ["EVALSHA", "EVAL"]);
}

/// The client library repeats nothing: a repeated write would be answered with a conflict, although it was applied.
#[tokio::test]
async fn a_write_whose_answer_is_lost_is_unknown_and_not_sent_again() {
    let Some(place) = place() else { return };
    let store = place.store();
    let version = created(&store, &key("k"), "one").await;
    sent(&place);
    for fault in [Fault::CutAfter, Fault::CutMidAnswer] {
        place.lose_next_write(fault);
        let told = store.put(&key("k"), "two".into(), Expect::Version(version.clone())).await;
        assert!(matches!(told, Err(StoreError::Unknown(_))), "{fault:?}: {told:?}");
        let writes = sent(&place).into_iter().filter(|name| name.starts_with("EVAL")).count();
        assert_eq!(writes, 1, "{fault:?}");
    }
    let entry = store.get(&key("k")).await.unwrap().entry.unwrap();
    assert_eq!(entry.value, "two");
}

#[tokio::test]
async fn a_call_that_is_dropped_before_its_answer_makes_the_next_call_use_another_connection() {
    let Some(place) = place() else { return };
    let store = place.store();
    store.get(&key("k")).await.unwrap();
    let rule = place.proxy.install(Rule::new(Fault::DelayAnswer(Duration::from_secs(60))).method("EVALSHA"));
    tokio::time::timeout(Duration::from_millis(300), store.get(&key("k"))).await.unwrap_err();
    rule.remove();
    tokio::time::timeout(Duration::from_secs(5), store.get(&key("k"))).await.unwrap().unwrap();
    assert_eq!(store.connections_opened(), 2);
}

#[tokio::test]
async fn a_server_that_stops_answering_and_continues_is_used_again() {
    let Some(place) = place() else { return };
    let store = place.store();
    let version = created(&store, &key("k"), "one").await;
    place.server.pause();
    let k = key("k");
    let write = store.put(&k, "two".into(), Expect::Version(version));
    tokio::time::timeout(Duration::from_millis(300), write).await.unwrap_err();
    place.server.resume();
    let entry = store.get(&key("k")).await.unwrap().entry.unwrap();
    assert!(entry.value == "one" || entry.value == "two");
}

#[tokio::test]
async fn a_server_that_is_killed_makes_writes_unknown_and_then_unreachable_until_it_is_back() {
    let Some(place) = place() else { return };
    let store = place.store();
    created(&store, &key("k"), "one").await;
    place.server.kill();
    let mut errors = Vec::new();
    for _ in 0..3 {
        errors.push(store.put(&key("x"), "x".into(), Expect::Absent).await.unwrap_err());
    }
    assert!(
        errors.iter().all(|error| !matches!(error, StoreError::Throttled(_)))
            && matches!(errors.last(), Some(StoreError::Refused(_))),
        "{errors:?}"
    );
    place.server.restart();
    assert!(store.get(&key("k")).await.unwrap().entry.is_none(), "it had no snapshot");
}

/// A thousand calls that find a broken connection share one handshake, and its error.
#[tokio::test]
async fn many_calls_share_one_new_connection() {
    let Some(place) = place() else { return };
    let store = place.store();
    store.get(&key("k")).await.unwrap();
    place.proxy.cut_connections();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let k = key("k");
    for answer in futures_util::future::join_all((0..1000).map(|_| store.get(&k))).await {
        answer.unwrap();
    }
    assert_eq!(store.connections_opened(), 2);
}

/// Each runtime has its own connection: the runtime of the first call may be blocked, or end.
#[test]
fn a_store_survives_the_runtime_that_called_it_first() {
    let Some(place) = place() else { return };
    let store = place.store();
    for runtimes in 1..=3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(store.get(&key("k"))).unwrap();
        assert_eq!(store.connections_opened(), runtimes);
    }
}

#[tokio::test]
async fn hints_return_after_a_broken_connection_and_name_the_watched_key_only() {
    use futures_util::StreamExt;
    let Some(place) = place() else { return };
    let (store, writer) = (place.store(), place.store());
    let mut hints = store.watch(&tenure_store::Prefix::of(&key("a*"))).unwrap();
    let mut soon = async |expected: bool, what: &str| {
        let came =
            tokio::time::timeout(Duration::from_millis(if expected { 5_000 } else { 200 }), hints.next())
                .await;
        assert_eq!(came.is_ok(), expected, "{what}");
    };
    soon(true, "the subscription itself").await;
    created(&writer, &key("ab"), "x").await;
    soon(false, "another key, which the pattern must not match").await;
    created(&writer, &key("a*/b"), "x").await;
    soon(true, "a key below").await;
    place.proxy.cut_connections();
    soon(true, "a new subscription").await;
    let _ = writer.get(&key("a*")).await;
    created(&writer, &key("a*"), "x").await;
    soon(true, "the key itself").await;
}

/// All watches of a store share one connection, which belongs to the runtime of the first watch.
#[test]
fn a_watch_gets_hints_after_the_runtime_of_the_first_watch_has_ended() {
    use futures_util::StreamExt;
    let Some(place) = place() else { return };
    let (store, writer) = (place.store(), place.store());
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let (first, second) = (runtime().unwrap(), runtime().unwrap());
    let watch = || store.watch(&tenure_store::Prefix::of(&key("k"))).unwrap();
    let (mut of_first, mut of_second) = (watch(), watch());
    assert_eq!(first.block_on(of_first.next()), Some(()), "the subscription itself");
    assert_eq!(second.block_on(of_second.next()), Some(()), "the subscription itself");
    first.shutdown_timeout(Duration::from_secs(5));
    second.block_on(async {
        let limit = Duration::from_secs(5);
        let soon = |what: &'static str| move |_| panic!("no hint: {what}");
        tokio::time::timeout(limit, of_second.next()).await.unwrap_or_else(soon("the other runtime ended"));
        tokio::time::timeout(limit, of_second.next()).await.unwrap_or_else(soon("the new subscription"));
        created(&writer, &key("k"), "x").await;
        tokio::time::timeout(limit, of_second.next()).await.unwrap_or_else(soon("the write")).unwrap();
    });
}

/// A hint that is lost delays a contender by at most one interval between its reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contender_gets_a_released_lease_soon_after_the_connection_for_hints_was_killed() {
    let Some(place) = place() else { return };
    let holder = Coordinator::connect(place.store()).await.unwrap();
    let contender = Coordinator::connect(place.store()).await.unwrap();
    let lease = holder.lease("k").unwrap().without_witness().acquire().await.unwrap();
    let request = contender.lease("k").unwrap().without_witness().wait(Duration::from_secs(20));
    let waiting = tokio::spawn(request.acquire());
    let killed = || place.server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    tenure_testkit::wait_until("the contender has subscribed", || killed() != "0");
    lease.release().await.unwrap();
    let began = std::time::Instant::now();
    let _lease = waiting.await.unwrap().unwrap();
    let passed = began.elapsed();
    assert!(passed < Duration::from_secs(5), "it waited for {passed:?}, and a ttl lasts 15 s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_outlives_a_pause_of_all_clients_and_ends_when_all_data_is_deleted() {
    for kind in RedisKind::ALL {
        let Some(place) = Place::start(kind, RedisSetup::new(), plain) else { continue };
        let coordinator = Coordinator::connect(place.store()).await.unwrap();
        let request = coordinator.lease("k").unwrap().ttl(Duration::from_secs(3)).without_witness();
        let lease = request.clone().acquire().await.unwrap();
        place.server.command(&["CLIENT", "PAUSE", "1000", "ALL"]);
        lease.renew().await.expect("the answer comes after the pause");
        place.server.command(&["SCRIPT", "FLUSH"]);
        lease.renew().await.expect("the script is sent again");
        let token = lease.token();
        place.server.command(&["FLUSHALL"]);
        lease.renew().await.expect_err("the record is deleted");
        lease.check().expect_err("the holder knows");
        let second = request.wait(Duration::from_secs(5)).acquire().await.unwrap();
        assert!(second.token() > token, "{kind:?}: {} after {token}", second.token());
    }
}

#[tokio::test]
async fn a_handshake_that_lasts_longer_than_a_call_is_not_begun_again() {
    let Some(place) = place() else { return };
    let store = place.store();
    let late = Rule::new(Fault::DelayAnswer(Duration::from_secs(1))).method("INFO").containing("modules");
    place.proxy.install(late);
    let began = std::time::Instant::now();
    while tokio::time::timeout(Duration::from_millis(300), store.get(&key("k"))).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "no connection is ever opened");
    }
    assert_eq!(store.connections_opened(), 1);
}

/// A proxy may answer for a server that has applied the write.
#[tokio::test]
async fn an_answer_that_is_not_one_of_the_script_leaves_the_outcome_unknown() {
    for answer in ["$-1\r\n", "+OK\r\n", ":0\r\n", "*0\r\n", "*1\r\n:0\r\n"] {
        let store = Redis::builder(&support::answering(answer).to_string()).accept_restart().open().unwrap();
        let told = store.put(&key("k"), "value".into(), Expect::Absent).await;
        assert!(matches!(told, Err(StoreError::Unknown(_))), "{answer:?}: {told:?}");
    }
}
