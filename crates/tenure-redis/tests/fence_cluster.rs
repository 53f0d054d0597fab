//! Fenced writes in a cluster, where a script reaches the keys of one slot only.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

use std::time::Duration;

use tenure::Coordinator;
use tenure_fence::{Fence, FenceError, FencingToken, Seal};
use tenure_redis::redis::{Cmd, Value};
use tenure_redis::{Redis, RedisFence};
use tenure_store::Reason;
use tenure_testkit::{RedisCluster, RedisKind};

fn token(number: u64) -> FencingToken {
    format!("billing={number}").parse().unwrap()
}

fn store(cluster: &RedisCluster, entry: usize) -> Redis {
    Redis::builder(&cluster.nodes()[entry].address().to_string()).accept_failover().open().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_resource_is_written_on_the_node_of_its_slot() {
    for kind in RedisKind::ALL {
        let Some(cluster) = RedisCluster::start_or_skip(kind) else { return };
        for number in 0..20 {
            let name = format!("ledger-{number}");
            let fences = [0, 1].map(|entry| RedisFence::new(&store(&cluster, entry), &name).unwrap());
            let commands = [Cmd::set(&name, 1), Cmd::set(format!("{{{name}}}:last"), 2)];
            fences[0].write(&token(7), &commands).await.unwrap();
            let error = fences[1].write(&token(6), &commands).await.unwrap_err();
            assert!(error.is_stale(), "{error}");
        }
        assert!(cluster.nodes().iter().all(|node| node.command(&["DBSIZE"]) != "0"), "all nodes have some");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_of_another_slot_are_refused_in_words_before_anything_is_sent() {
    let Some(cluster) = RedisCluster::start_or_skip(RedisKind::Redis) else { return };
    let fence = RedisFence::new(&store(&cluster, 0), "ledger").unwrap();
    let commands = [Cmd::set("{ledger}:a", 1), Cmd::set("elsewhere", 1)];
    let error = fence.write(&token(7), &commands).await.unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
    assert!(error.to_string().contains("\"elsewhere\" is in another slot"), "{error}");
    let fence = fence.checking_grants();
    let error = fence.seal(&token(7)).await.unwrap_err();
    assert!(matches!(error, FenceError::Refused { reason: Reason::Invalid, .. }), "{error}");
    assert!(error.to_string().contains("as in {billing}:ledger"), "{error}");
    assert!(cluster.nodes().iter().all(|node| node.command(&["DBSIZE"]) == "0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_grant_is_checked_if_the_resource_has_the_hash_tag_of_the_lease() {
    let Some(cluster) = RedisCluster::start_or_skip(RedisKind::Valkey) else { return };
    let fence = RedisFence::new(&store(&cluster, 0), "{billing}:ledger").unwrap().checking_grants();
    let tenure = Coordinator::connect(store(&cluster, 1)).await.unwrap();
    let request = || tenure.lease("billing").unwrap().without_witness().manual().wait(Duration::from_secs(5));
    let lease = request().acquire().await.unwrap();
    let old = lease.fencing_token().clone();
    lease.fenced(&fence).write(&[Cmd::set("{billing}:a", 1)]).await.unwrap();
    lease.release().await.unwrap();
    let next = request().acquire().await.unwrap();
    let error = fence.write(&old, &[Cmd::set("{billing}:a", 2)]).await.unwrap_err();
    assert!(matches!(&error, FenceError::Stale { highest, .. } if *highest == next.token()), "{error}");
}

/// While a slot moves, some of its keys are on either node. The server must refuse the call before its first command runs,
/// because a script cannot undo one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn while_a_slot_moves_a_write_is_complete_or_nothing() {
    for kind in RedisKind::ALL {
        let Some(cluster) = RedisCluster::start_or_skip(kind) else { return };
        let nodes = cluster.nodes();
        let slot = nodes[0].command(&["CLUSTER", "KEYSLOT", "ledger"]);
        let from = slot.parse::<usize>().unwrap() * 3 / 16384;
        let to = (from + 1) % 3;
        let fence = RedisFence::new(&store(&cluster, (from + 2) % 3), "ledger").unwrap();
        let add = [Cmd::incr("{ledger}:a", 1), Cmd::incr("{ledger}:b", 1)];
        assert_eq!(fence.write(&token(7), &add).await.unwrap(), [Value::Int(1), Value::Int(1)]);
        let ids = [from, to].map(|at| nodes[at].command(&["CLUSTER", "MYID"]));
        nodes[to].command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[0]]);
        nodes[from].command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[1]]);
        assert_eq!(fence.write(&token(7), &add).await.unwrap(), [Value::Int(2), Value::Int(2)]);
        let port = nodes[to].address().port().to_string();
        let mut whole = 2;
        for key in ["{ledger}:b", "tenure:fence:{ledger}", "{ledger}:a"] {
            nodes[from].command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
            match fence.write(&token(7), &add).await {
                Ok(replies) => {
                    whole += 1;
                    assert_eq!(replies, [Value::Int(whole), Value::Int(whole)], "{kind:?} after {key}");
                }
                Err(error) => assert!(
                    matches!(error, FenceError::Refused { reason: Reason::Unreachable, .. }),
                    "{kind:?} after {key}: {error}"
                ),
            }
        }
        assert_eq!(whole, 3, "when all keys have moved, the redirection is followed");
        assert!(fence.write(&token(6), &add).await.unwrap_err().is_stale());
        for node in nodes {
            node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &ids[1]]);
        }
        assert_eq!(fence.write(&token(8), &add).await.unwrap(), [Value::Int(4), Value::Int(4)]);
    }
}
