//! Sentinels and clusters, whose failover the caller has accepted.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

mod support;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use tenure::Coordinator;
use tenure_redis::Redis;
use tenure_store::{Expect, Key, Prefix, Put, Reason, Store, StoreError};
use tenure_testkit::{RedisCluster, RedisKind, RedisSentinels, key, wait_until};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_survives_a_failover_by_sentinels() {
    let Some(group) = RedisSentinels::start_or_skip(RedisKind::Redis) else { return };
    let sentinels: Vec<_> = group.sentinels().iter().map(|sentinel| sentinel.address().to_string()).collect();
    let builder = Redis::by_sentinel(&sentinels.join(","), RedisSentinels::NAME);
    let refused = builder.clone().open().unwrap_err();
    assert!(refused.to_string().contains("accept=failover"), "{refused}");
    let direct = Redis::builder(&sentinels[0]).accept_restart().open().unwrap();
    let error = direct.get(&key("k")).await.unwrap_err().to_string();
    assert!(error.contains("is a sentinel"), "{error}");

    let builder = builder.accept_failover();
    let connect = async || Coordinator::connect(builder.open().unwrap()).await.unwrap();
    let (holder, contender, former) = (connect().await, connect().await, connect().await);
    let ttl = Duration::from_secs(20);
    let request = |of: &Coordinator, name| of.lease(name).unwrap().ttl(ttl).without_witness();
    let lease = request(&holder, "k").acquire().await.unwrap();
    let waiting = tokio::spawn(request(&contender, "k").wait(ttl * 2).acquire());
    let released = request(&former, "lost").manual().acquire().await.unwrap();
    released.release().await.unwrap();
    let [primary, replica] = group.servers();
    wait_until("the replica has all of it", || {
        let offsets = [primary, replica].map(|server| server.info("master_repl_offset"));
        offsets[0] == offsets[1]
    });
    // The replica does not get this grant, and becomes the primary server.
    replica.pause();
    let lost = request(&holder, "lost").manual().acquire().await.unwrap();
    let before = group.primary();
    primary.kill();
    replica.resume();
    let later = builder.open().unwrap();
    let began = Instant::now();
    while group.primary() == before || later.get(&key("k")).await.is_err() {
        assert!(began.elapsed() < ttl, "no failover");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let entry = later.get(&key("k")).await.unwrap().entry.expect("the replica has the record");
    assert!(!entry.value.is_empty());
    lease.check().expect("the ttl allows for the failover");
    lease.renew().await.unwrap();
    assert!(!waiting.is_finished(), "the lease was never free");
    let token = lease.token();
    lease.release().await.unwrap();
    let second = waiting.await.unwrap().unwrap();
    assert!(second.token() > token, "{} after {token}", second.token());
    // Nothing shows that the other grant was lost. Both may believe, and the second token is greater.
    let twice = request(&former, "lost").manual().wait(ttl).acquire().await.unwrap();
    assert!(twice.token() > lost.token(), "{} after {}", twice.token(), lost.token());
    let unknown = Redis::by_sentinel(&sentinels[0], "nobody").accept_failover().open().unwrap();
    let error = unknown.get(&key("k")).await.unwrap_err().to_string();
    assert!(error.contains("names no master \"nobody\""), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_serves_every_key_from_the_node_of_its_slot() {
    let Some(cluster) = RedisCluster::start_or_skip(RedisKind::Redis) else { return };
    let nodes: Vec<_> = cluster.nodes().iter().map(|node| node.address().to_string()).collect();
    let single = Redis::builder(&nodes[0]).open().unwrap();
    let Err(StoreError::Refused(refused)) = single.get(&key("k")).await else { panic!("it is a cluster") };
    assert_eq!(refused.reason, Reason::Unsupported);
    assert!(refused.to_string().contains("is part of a cluster"), "{refused}");

    let store = Redis::builder(&nodes.join(",")).accept_failover().open().unwrap();
    let names: Vec<_> = (0..40)
        .map(|number| format!("jobs/{number}"))
        .chain(["a}b", "{c}", "{", "}"].map(str::to_owned))
        .collect();
    for name in &names {
        let put = store.put(&key(name), "one".into(), Expect::Absent).await.unwrap();
        let Put::Applied(applied) = put else { panic!("{name}") };
        let expect = Expect::Version(applied.version);
        assert!(
            matches!(store.put(&key(name), "two".into(), expect).await.unwrap(), Put::Applied(_)),
            "{name}"
        );
        assert_eq!(store.get(&key(name)).await.unwrap().entry.unwrap().value, "two");
    }
    let listed: BTreeSet<_> = store.list(&Prefix::all()).try_collect().await.unwrap();
    assert_eq!(listed, names.iter().map(|name| key(name)).collect());
    assert!(cluster.nodes().iter().all(|node| node.command(&["DBSIZE"]) != "0"), "all nodes have some");

    // Two contenders that enter the cluster by different nodes meet.
    let entered = |at: usize| Redis::builder(&nodes[at]).accept_failover().open().unwrap();
    let (one, two) =
        (Coordinator::connect(entered(0)).await.unwrap(), Coordinator::connect(entered(1)).await.unwrap());
    let lease = one.lease("shared").unwrap().without_witness().acquire().await.unwrap();
    assert!(two.lease("shared").unwrap().without_witness().try_acquire().await.is_err());
    lease.release().await.unwrap();
    let _lease =
        two.lease("shared").unwrap().without_witness().wait(Duration::from_secs(5)).acquire().await.unwrap();
}

/// The record moves to another node while its lease is held, and then that node fails over to its replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_survives_the_move_of_its_slot_and_the_failover_of_a_node() {
    let Some(cluster) = RedisCluster::start_or_skip(RedisKind::Valkey) else { return };
    let nodes = cluster.nodes();
    let entered = |at: usize| {
        let address = nodes[at].address().to_string();
        Redis::builder(&address).accept_failover().open().unwrap()
    };
    let slot = nodes[0].command(&["CLUSTER", "KEYSLOT", "tenure:{a}"]);
    let from = slot.parse::<usize>().unwrap() * 3 / 16384;
    let to = (from + 1) % 3;
    let other = (from + 2) % 3;
    let holder = Coordinator::connect(entered(other)).await.unwrap();
    let contender = Coordinator::connect(entered(to)).await.unwrap();
    let request = |of: &Coordinator| of.lease("a").unwrap().without_witness().manual();
    let lease = request(&holder).acquire().await.unwrap();
    let ids = [from, to].map(|at| nodes[at].command(&["CLUSTER", "MYID"]));
    nodes[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[0]]);
    nodes[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[1]]);
    lease.renew().await.expect("the record has not moved yet");
    // Another record of this slot: it does not exist here, so it is created there.
    let store = entered(other);
    let same_slot = key("a}b");
    let Put::Applied(applied) = store.put(&same_slot, "one".into(), Expect::Absent).await.unwrap() else {
        panic!()
    };
    let put = store.put(&same_slot, "two".into(), Expect::Version(applied.version)).await.unwrap();
    assert!(matches!(put, Put::Applied(_)), "a version of the other node");
    let port = nodes[to].address().port().to_string();
    nodes[from].command(&["MIGRATE", "127.0.0.1", &port, "tenure:{a}", "0", "5000"]);
    for stage in ["the record has moved", "and again"] {
        lease.renew().await.expect(stage);
        assert!(request(&contender).try_acquire().await.is_err(), "{stage}");
    }
    for at in [to, from, other] {
        nodes[at].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &ids[1]]);
    }
    lease.renew().await.expect("the slot has moved");

    let replica = cluster.replica_of(to);
    wait_until("the replica has the record", || {
        replica.info("master_repl_offset") == nodes[to].info("master_repl_offset")
    });
    nodes[to].kill();
    replica.command(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    wait_until("the other nodes know", || {
        let slots = nodes[other].command(&["CLUSTER", "SLOTS"]);
        !slots.contains(&port)
    });
    let contender = Coordinator::connect(entered(from)).await.unwrap();
    lease.renew().await.expect("the replica has the record");
    assert!(request(&contender).try_acquire().await.is_err());
    let token = lease.token();
    lease.release().await.unwrap();
    let second = request(&contender).wait(Duration::from_secs(5)).acquire().await.unwrap();
    assert!(second.token() > token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_silent_sentinel_does_not_hide_the_others() {
    let Some(group) = RedisSentinels::start_or_skip(RedisKind::Redis) else { return };
    let (silent, _queue) = support::silent();
    let sentinels = format!("{silent},{}", group.sentinels()[1].address());
    let store = Redis::by_sentinel(&sentinels, RedisSentinels::NAME).accept_failover().open().unwrap();
    let began = Instant::now();
    store.get(&key("k")).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    group.servers()[0].command(&["CLIENT", "KILL", "TYPE", "normal"]);
    let began = Instant::now();
    while store.get(&key("k")).await.is_err() {}
    assert!(began.elapsed() < Duration::from_millis(900), "it begins at the sentinel that answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_is_swept_while_its_slot_moves() {
    let Some(cluster) = RedisCluster::start_or_skip(RedisKind::Valkey) else { return };
    let nodes = cluster.nodes();
    let swept = Key::from_stored(".tenure/probe/1/a").unwrap();
    let slot = nodes[0].command(&["CLUSTER", "KEYSLOT", "tenure:{.tenure/probe/1/a}"]);
    let from = slot.parse::<usize>().unwrap() * 3 / 16384;
    let to = (from + 1) % 3;
    let ids = [from, to].map(|at| nodes[at].command(&["CLUSTER", "MYID"]));
    nodes[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[0]]);
    nodes[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[1]]);
    let store = Redis::builder(&nodes[from].address().to_string()).accept_failover().open().unwrap();
    let put = store.put(&swept, "one".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Applied(_)));
    store.scratch().unwrap().sweep(&swept).await.unwrap();
    assert!(store.get(&swept).await.unwrap().entry.is_none());
}

/// It has lost contact with the others, and nothing listens at the address that it names.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_sentinel_that_names_a_former_primary_server_does_not_hide_the_others() {
    let Some(group) = RedisSentinels::start_or_skip(RedisKind::Redis) else { return };
    let outdated = support::answering("*2\r\n$9\r\n127.0.0.1\r\n$1\r\n1\r\n");
    let sentinels = format!("{outdated},{}", group.sentinels()[1].address());
    let store = Redis::by_sentinel(&sentinels, RedisSentinels::NAME).accept_failover().open().unwrap();
    let error = store.get(&key("k")).await.unwrap_err().to_string();
    assert!(error.contains("cannot connect to 127.0.0.1:1"), "{error}");
    store.get(&key("k")).await.unwrap();
}
