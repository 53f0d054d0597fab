//! Servers of the kit with the protocol of Redis.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use tenure_testkit::{
    Authority, RedisCluster, RedisKind, RedisSentinels, RedisServer, RedisSetup, is_alive, wait_until,
};

#[test]
fn a_durable_server_keeps_writes_through_a_kill_and_the_default_one_loses_them() {
    for kind in RedisKind::ALL {
        for (setup, kept) in [(RedisSetup::new().durable(), "value"), (RedisSetup::new(), "")] {
            let Some(server) = RedisServer::start_or_skip(kind, setup) else { continue };
            let run = server.info("run_id");
            server.command(&["SET", "key", "value"]);
            server.restart();
            assert_eq!(server.command(&["GET", "key"]), kept, "{kind:?}");
            assert_ne!(server.info("run_id"), run);
        }
    }
}

#[test]
fn an_orderly_stop_saves_and_a_restart_without_data_is_empty() {
    for kind in RedisKind::ALL {
        let Some(server) = RedisServer::start_or_skip(kind, RedisSetup::new()) else { continue };
        server.command(&["SET", "key", "value"]);
        server.stop();
        assert!(server.try_command(&["PING"]).is_err());
        server.restart();
        assert_eq!(server.command(&["GET", "key"]), "value", "{kind:?}");
        server.restart_without_data();
        assert_eq!(server.command(&["DBSIZE"]), "0", "{kind:?}");
    }
}

#[test]
fn settings_passwords_and_users_are_applied() {
    let setup =
        RedisSetup::new().setting("save", "").setting("maxmemory-policy", "allkeys-lru").password("secret");
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    assert_eq!(server.command(&["CONFIG", "GET", "maxmemory-policy"]), "maxmemory-policy\nallkeys-lru");
    assert_eq!(server.command(&["CONFIG", "GET", "save"]), "save\n");
    assert_eq!(server.url(), format!("redis://:secret@{}", server.address()));

    let setup = RedisSetup::new().users("user worker on >word ~tenure:* +get");
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    let users = server.command(&["ACL", "LIST"]);
    assert!(users.contains("user worker on") && users.contains("user default off"), "{users}");
}

#[test]
fn redis_serves_over_tls_and_is_administered_over_its_socket() {
    let setup = RedisSetup::new().encrypted(Authority::new().certify(&["127.0.0.1"]));
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    assert!(server.url().starts_with("rediss://127.0.0.1:"));
    assert_eq!(
        server.command(&["CONFIG", "GET", "tls-port"]),
        format!("tls-port\n{}", server.address().port())
    );
}

#[test]
fn an_old_snapshot_forgets_with_and_without_a_log_of_writes() {
    for kind in RedisKind::ALL {
        for setup in [RedisSetup::new(), RedisSetup::new().durable()] {
            let Some(server) = RedisServer::start_or_skip(kind, setup) else { continue };
            server.command(&["SET", "key", "old"]);
            let snapshot = server.snapshot();
            server.command(&["SET", "key", "new"]);
            server.restart_from(&snapshot);
            assert_eq!(server.command(&["GET", "key"]), "old", "{kind:?}");
        }
    }
}

#[test]
fn a_paused_server_answers_when_it_is_resumed() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Valkey, RedisSetup::new()) else { return };
    server.pause();
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| server.command(&["PING"]));
        tenure_testkit::sleep_ms(200);
        assert!(!answer.is_finished());
        server.resume();
        assert_eq!(answer.join().unwrap(), "PONG");
    });
}

#[test]
fn a_full_disk_ends_a_server_that_must_sync_and_a_freed_one_has_everything_acknowledged() {
    for kind in RedisKind::ALL {
        let setup = RedisSetup::new().durable().disk(4);
        let Some(server) = RedisServer::start_or_skip(kind, setup) else { continue };
        server.fill_disk();
        let (long, mut acknowledged) = ("x".repeat(1000), 0);
        while server.try_command(&["SET", &format!("key{acknowledged}"), &long]).is_ok() {
            acknowledged += 1;
        }
        server.free_disk();
        server.restart();
        for number in 0..acknowledged {
            assert_eq!(server.command(&["EXISTS", &format!("key{number}")]), "1", "{kind:?}");
        }
    }
}

#[test]
fn a_replica_follows_is_read_only_and_can_be_promoted() {
    for kind in RedisKind::ALL {
        let setup = RedisSetup::new().password("secret");
        let Some(server) = RedisServer::start_or_skip(kind, setup) else { continue };
        let replica = server.replica();
        server.command(&["SET", "key", "value"]);
        tenure_testkit::wait_until("the replica follows", || replica.command(&["GET", "key"]) == "value");
        assert_eq!(replica.info("role"), "slave");
        assert!(replica.try_command(&["SET", "key", "other"]).unwrap_err().starts_with("READONLY"));
        replica.promote();
        assert_eq!(replica.command(&["SET", "key", "other"]), "OK");
    }
}

#[test]
fn sentinels_promote_the_replica_of_a_killed_server() {
    for kind in RedisKind::ALL {
        let Some(all) = RedisSentinels::start_or_skip(kind) else { continue };
        let [first, second] = all.servers();
        assert_eq!(all.primary(), first.address());
        first.kill();
        tenure_testkit::wait_until("the replica is promoted", || all.primary() == second.address());
        assert_eq!(second.info("role"), "master");
    }
}

#[test]
fn the_nodes_of_a_cluster_name_each_other() {
    for kind in RedisKind::ALL {
        let Some(cluster) = RedisCluster::start_or_skip(kind) else { continue };
        // `key` has the slot 12539, of the last third.
        let [first, _, last] = cluster.nodes() else { panic!("it has three nodes") };
        assert_eq!(last.command(&["SET", "key", "value"]), "OK");
        let elsewhere = first.try_command(&["GET", "key"]).unwrap_err();
        assert_eq!(elsewhere, format!("MOVED 12539 {}", last.address()));
    }
}

const WAITS: &str = "TENURE_TEST_WAITS_TO_BE_KILLED";

/// A process with a paused server that waits to be killed.
#[test]
#[ignore = "a process of another test"]
fn waits_to_be_killed_with_its_paused_server() {
    if std::env::var_os(WAITS).is_none() {
        return;
    }
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    server.pause();
    println!("runs as {}", server.process_number().unwrap());
    std::thread::sleep(Duration::from_secs(60));
}

/// The kernel sends SIGHUP and SIGCONT to a process group with a stopped process whose last parent outside of it exits.
/// Redis ignores SIGHUP, so it survives unless its guard survives, too.
#[test]
fn a_paused_server_ends_when_its_process_is_killed() {
    let Some(_) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let mut process = Command::new(std::env::current_exe().unwrap());
    process
        .args(["--ignored", "--exact", "--nocapture", "waits_to_be_killed_with_its_paused_server"])
        .env(WAITS, "yes");
    let mut process = process.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let server: i32 = lines.find_map(|line| line.split_once("runs as ")?.1.parse().ok()).unwrap();
    assert!(is_alive(server));

    process.kill().unwrap();
    process.wait().unwrap();
    wait_until("the server has ended", || !is_alive(server));
}
