//! Servers that cannot be used as they are, and errors of servers.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use support::Place;
use tenure::Coordinator;
use tenure_redis::{Redis, RedisBuilder};
use tenure_store::{Entry, Expect, Put, Reason, Store, StoreError};
use tenure_testkit::{Authority, RedisKind, RedisServer, RedisSetup, key, wait_until};

fn plain(builder: RedisBuilder) -> RedisBuilder {
    builder.accept_restart()
}

/// The reason and the sentence of a refused write.
async fn refused(store: &Redis) -> (Reason, String) {
    match store.put(&key("new"), "value".into(), Expect::Absent).await {
        Err(StoreError::Refused(refused)) => (refused.reason, refused.to_string()),
        other => panic!("it was not refused: {other:?}"),
    }
}

#[track_caller]
fn says((reason, sentence): (Reason, String), expected: Reason, part: &str) {
    assert!(sentence.contains(part), "{sentence}");
    assert_eq!(reason, expected, "{sentence}");
    assert!(!sentence.contains("hush"), "{sentence}");
}

fn at(server: &RedisServer) -> RedisBuilder {
    Redis::builder(&server.address().to_string())
}

#[tokio::test]
async fn a_password_is_required_right_and_never_shown() {
    let setup = RedisSetup::new().password("hush-hush");
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    let builder = at(&server).accept_restart();
    says(refused(&builder.open().unwrap()).await, Reason::Denied, "it requires a password");
    let wrong = builder.clone().password("hush").open().unwrap();
    says(refused(&wrong).await, Reason::Denied, "the password of the user \"default\" is wrong");
    let right = builder.clone().password("hush-hush").open().unwrap();
    right.get(&key("k")).await.unwrap();
    let file = std::env::temp_dir().join(format!("tenure-redis-password-{}", std::process::id()));
    std::fs::write(&file, "hush-hush\n").unwrap();
    let by_file = builder.clone().password_file(file.to_str().unwrap()).open().unwrap();
    // As Docker mounts a secret.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    by_file.get(&key("k")).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let missing = builder.clone().password_file(file.to_str().unwrap()).open().unwrap();
    says(refused(&missing).await, Reason::Denied, "cannot be read");
    let text =
        format!("{right:?} {right} {:?} {:?} {}", right.identity(), builder.password("hush-hush"), by_file);
    assert!(!text.contains("hush"), "{text}");
}

/// The server would serve a connection without a password as its default user.
#[tokio::test]
async fn a_user_without_a_password_is_never_served_as_the_default_user() {
    let Some(server) = RedisServer::shared(RedisKind::Redis) else { return };
    let store = at(server).accept_restart().user("billing").open().unwrap();
    says(refused(&store).await, Reason::Denied, "there is no password for the user \"billing\"");
}

#[tokio::test]
async fn a_permission_that_a_script_lacks_is_denied_and_nothing_is_written() {
    for kind in RedisKind::ALL {
        let Some(server) = RedisServer::start_or_skip(kind, RedisSetup::new()) else { return };
        let store = at(&server).accept_restart().user("narrow").password("hush").open().unwrap();
        let allow = |rule: &str| {
            let all =
                ["ACL", "SETUSER", "narrow", "reset", "on", ">hush", "~tenure:*", "&tenure:*", "+@all", rule];
            server.command(&all);
        };
        for rule in ["-time", "-hset", "-exists"] {
            allow(rule);
            says(refused(&store).await, Reason::Denied, "script");
            assert_eq!(server.command(&["EXISTS", "tenure:{new}"]), "0", "{kind:?} {rule}");
        }
        allow("-publish");
        let put = store.put(&key("new"), "value".into(), Expect::Absent).await.unwrap();
        assert!(matches!(put, Put::Applied(_)), "a hint may be missing");
    }
}

#[tokio::test]
async fn a_password_for_a_server_without_one_and_a_missing_database_are_named() {
    let Some(server) = RedisServer::shared(RedisKind::Redis) else { return };
    let builder = at(server).accept_restart();
    let store = builder.clone().password("hush").open().unwrap();
    says(refused(&store).await, Reason::Denied, "it has no password");
    let store = builder.database(99).open().unwrap();
    says(refused(&store).await, Reason::Missing, "it has no database 99");
}

#[tokio::test]
async fn a_replica_and_a_server_with_replicas_are_refused_until_a_failover_is_accepted() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let replica = server.replica();
    let (master, slave) = (at(&server).open().unwrap(), at(&replica).open().unwrap());
    says(refused(&master).await, Reason::Unsupported, "has 1 replica, and a failover may lose");
    says(refused(&slave).await, Reason::Unsupported, "is a replica, which accepts no writes");
    wait_until("the replica confirms writes", || server.info("slave0").contains("state=online"));
    let accepting = at(&server).accept_failover().wait_for_replicas(1, false).open().unwrap();
    let put = accepting.put(&key("k"), "value".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Applied(_)));
    assert_eq!(replica.command(&["HGET", "tenure:{k}", "d"]), "value", "the write waited for the replica");
    // The server becomes a replica while it is connected.
    drop(replica);
    wait_until("the replica has gone", || server.info("connected_slaves") == "0");
    let Some(other) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let store = at(&server).accept_restart().open().unwrap();
    store.get(&key("k")).await.unwrap();
    server.command(&["REPLICAOF", "127.0.0.1", &other.address().port().to_string()]);
    let first = refused(&store).await;
    assert!(first.1.contains("READONLY") || first.1.contains("replica"), "{first:?}");
    says(refused(&store).await, Reason::Unsupported, "is a replica");
}

/// The primary server has the write, and a failover would lose it: the holder must not read its own grant back and
/// believe it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_no_replica_confirms_is_unknown_and_is_not_believed_until_a_replica_confirms_it() {
    for (kind, on_disk) in [(RedisKind::Redis, false), (RedisKind::Valkey, true)] {
        let setup = RedisSetup::new().durable().setting("repl-diskless-sync-delay", "0");
        let Some(server) = RedisServer::start_or_skip(kind, setup) else { continue };
        let replica = server.replica();
        wait_until("the replica confirms writes", || server.info("slave0").contains("state=online"));
        let accepting = at(&server).accept_failover().wait_for_replicas(1, on_disk);
        let store = accepting.open().unwrap();
        let coordinator = Coordinator::connect(accepting.open().unwrap()).await.unwrap();
        let put = store.put(&key("k"), "value".into(), Expect::Absent).await.unwrap();
        assert!(matches!(put, Put::Applied(_)), "{kind:?}");
        assert_eq!(server.command(&["TTL", "tenure:{k}"]), "-1", "records do not expire");
        replica.pause();
        let told = store.put(&key("l"), "value".into(), Expect::Absent).await.unwrap_err();
        assert!(
            matches!(&told, StoreError::Unknown(_)) && told.to_string().contains("0 of 1 replicas"),
            "{told}"
        );
        assert_eq!(server.command(&["HGET", "tenure:{l}", "d"]), "value", "the primary server has it");
        let read = store.get(&key("l")).await.unwrap_err();
        assert!(read.to_string().contains("0 of 1 replicas"), "{read}");
        let request = coordinator.lease("m").unwrap().ttl(Duration::from_secs(60)).without_witness();
        let granted = request.clone().wait(Duration::from_secs(2)).acquire().await;
        assert!(granted.is_err(), "{kind:?}: a failover would lose this grant");
        replica.resume();
        let entry = confirmed(&store, "l").await;
        assert_eq!(entry.value, "value");
        // On a busy disk the replica may confirm it later.
        let _ = store.put(&key("l"), "next".into(), Expect::Version(entry.version)).await;
        assert_eq!(confirmed(&store, "l").await.value, "next", "the read has changed no version");
        let _lease = request.wait(Duration::from_secs(90)).acquire().await.unwrap();
    }
}

/// The entry, once a replica has confirmed it.
async fn confirmed(store: &Redis, name: &str) -> Entry {
    for _ in 0..20 {
        if let Ok(reading) = store.get(&key(name)).await {
            return reading.entry.expect("it was written");
        }
    }
    panic!("no replica confirms {name}");
}

#[tokio::test]
async fn a_server_that_cannot_wait_for_a_disk_is_refused_before_anything_is_written() {
    let Some(server) = RedisServer::shared(RedisKind::Redis) else { return };
    let store = at(server).prefix("wait:").accept_failover().wait_for_replicas(1, true).open().unwrap();
    says(refused(&store).await, Reason::Unsupported, "Redis 7.2 and newer have it");
    assert_eq!(server.command(&["EXISTS", "wait:{new}"]), "0");
}

#[tokio::test]
async fn a_server_that_evicts_is_refused_by_the_name_of_its_policy() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let setup = RedisSetup::new().setting("maxmemory", "100mb").setting("maxmemory-policy", policy);
        let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
        let store = at(&server).accept_restart().open().unwrap();
        says(refused(&store).await, Reason::Unsupported, &format!("maxmemory-policy {policy}"));
        let accepting = at(&server).accept_restart().accept_eviction().open().unwrap();
        accepting.get(&key("k")).await.unwrap();
    }
}

#[tokio::test]
async fn a_foreign_value_under_the_name_of_a_record_is_damaged_and_stays() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), plain) else { return };
    let (store, k) = (place.store(), key("k"));
    let name = store.record_of(&k);
    for create in [&["SET", &name, "foreign"][..], &["RPUSH", &name, "foreign"], &["HSET", &name, "s", "1"]] {
        place.server.command(&["DEL", &name]);
        place.server.command(create);
        let read = store.get(&k).await.unwrap_err();
        assert!(
            matches!(&read, StoreError::Refused(refused) if refused.reason == Reason::Damaged),
            "{create:?} {read}"
        );
        assert!(read.to_string().contains("tenure:{k}"), "{read}");
        let impossible = Expect::Version(store.identity().impossible_version);
        for expect in [Expect::Absent, impossible] {
            let put = store.put(&k, "x".into(), expect).await;
            assert!(!matches!(put, Ok(Put::Applied(_))), "{create:?}");
        }
    }
    assert_eq!(place.server.command(&["HGETALL", &name]), "s\n1");
}

#[tokio::test]
async fn a_restart_record_of_another_type_is_damaged_and_named() {
    let Some(server) = RedisServer::shared(RedisKind::Redis) else { return };
    server.command(&["SET", "taken:restart", "foreign"]);
    let store = at(server).prefix("taken:").open().unwrap();
    says(refused(&store).await, Reason::Damaged, "\"taken:restart\" is not the restart record");
}

/// The stamps of another program, or of a later version of this one.
#[tokio::test]
async fn a_record_with_a_colon_in_its_stamp_can_be_replaced_and_one_without_a_stamp_is_damaged() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), plain) else { return };
    let (store, k) = (place.store(), key("k"));
    let name = store.record_of(&k);
    place.server.command(&["HSET", &name, "s", "a:b", "d", "value"]);
    let version = store.get(&k).await.unwrap().entry.unwrap().version;
    let put = store.put(&k, "next".into(), Expect::Version(version)).await.unwrap();
    assert!(matches!(put, Put::Applied(_)));
    place.server.command(&["HSET", &name, "s", "", "d", "value"]);
    let error = store.get(&k).await.unwrap_err();
    assert!(matches!(&error, StoreError::Refused(refused) if refused.reason == Reason::Damaged), "{error}");
}

/// Each of these errors proves that nothing was written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_writes_for_a_while_is_reported_and_nothing_is_written() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), plain) else { return };
    let store = place.store();
    store.get(&key("k")).await.unwrap();
    let server = &place.server;
    for (set, unset, code) in [
        (["maxmemory", "1"], ["maxmemory", "0"], "OOM"),
        (["min-replicas-to-write", "1"], ["min-replicas-to-write", "0"], "NOREPLICAS"),
    ] {
        server.command(&["CONFIG", "SET", set[0], set[1]]);
        says(refused(&store).await, Reason::Unreachable, code);
        server.command(&["CONFIG", "SET", unset[0], unset[1]]);
        assert_eq!(server.command(&["EXISTS", "tenure:{new}"]), "0", "{code}");
    }
    server.command(&["CONFIG", "SET", "busy-reply-threshold", "20"]);
    std::thread::scope(|scope| {
        scope.spawn(|| server.try_command(&["EVAL", "while true do end", "0"]));
        wait_until("the script runs", || server.try_command(&["PING"]).is_err());
        let answer =
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(refused(&store)));
        server.command(&["SCRIPT", "KILL"]);
        says(answer, Reason::Unreachable, "BUSY");
    });
    assert_eq!(server.command(&["EXISTS", "tenure:{new}"]), "0");
    let put = store.put(&key("k"), "value".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Applied(_)), "and then it is written");
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_it_is_freed() {
    let setup = RedisSetup::new().disk(8).durable();
    let Some(place) = Place::start(RedisKind::Redis, setup, plain) else { return };
    let store = place.store();
    store.get(&key("k")).await.unwrap();
    place.server.fill_disk();
    let mut errors = Vec::new();
    for number in 0..20 {
        let value = vec![b'x'; 60_000];
        if let Err(error) = store.put(&key(&format!("fill/{number}")), value.into(), Expect::Absent).await {
            errors.push(error.to_string());
        }
    }
    assert!(!errors.is_empty(), "the disk is full");
    place.server.free_disk();
    place.server.restart();
    let put = store.put(&key("k"), "value".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Applied(_)), "{errors:?}");
}

/// A snapshot that fails makes the server refuse writes.
#[tokio::test]
async fn a_server_that_cannot_save_refuses_writes_until_it_can() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), plain) else { return };
    let (store, server) = (place.store(), &place.server);
    store.get(&key("k")).await.unwrap();
    let blocked = server.data_directory().join("dump.rdb");
    std::fs::create_dir(&blocked).unwrap();
    let save = |expected: &str| {
        server.command(&["BGSAVE"]);
        wait_until("the snapshot has ended", || {
            server.info("rdb_bgsave_in_progress") == "0" && server.info("rdb_last_bgsave_status") == expected
        });
    };
    save("err");
    says(refused(&store).await, Reason::Unreachable, "MISCONF");
    assert_eq!(server.command(&["EXISTS", "tenure:{new}"]), "0");
    std::fs::remove_dir(&blocked).unwrap();
    save("ok");
    let put = store.put(&key("new"), "value".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Applied(_)));
}

/// An operator can rename commands, or switch them off.
#[tokio::test]
async fn a_server_without_a_command_is_refused_by_the_name_of_the_command() {
    let setup = RedisSetup::new().setting("rename-command", "EVALSHA \"\"");
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    let store = at(&server).accept_restart().open().unwrap();
    says(refused(&store).await, Reason::Unsupported, "unknown command 'EVALSHA'");
    let setup = RedisSetup::new().setting("rename-command", "INFO \"\"");
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    let store = at(&server).accept_restart().open().unwrap();
    says(refused(&store).await, Reason::Unsupported, "does not show its settings");
    let accepting = at(&server).accept_restart().accept_unknown_settings().open().unwrap();
    assert!(matches!(accepting.put(&key("k"), "value".into(), Expect::Absent).await, Ok(Put::Applied(_))));
    let risks = accepting.risks().await.unwrap().join("\n");
    assert!(risks.contains("it does not show its settings to this user"), "{risks}");
}

/// What `tenure probe` names beside its verdict.
#[tokio::test]
async fn the_risks_of_a_server_are_its_replicas_its_settings_and_what_was_accepted() {
    let setup = RedisSetup::new().setting("repl-diskless-sync-delay", "0");
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    let risks = async || {
        let store = at(&server).accept_failover().open().unwrap();
        store.risks().await.unwrap()
    };
    assert_eq!(risks().await, [""; 0]);
    let replica = server.replica();
    wait_until("the replica is connected", || server.info("connected_slaves") == "1");
    let [failover, cut_off] = &risks().await[..] else { panic!("{:?}", risks().await) };
    assert!(failover.starts_with("it has 1 replica: a failover may lose acknowledged writes"), "{failover}");
    assert!(cut_off.starts_with("min-replicas-to-write is 0"), "{cut_off}");
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let [_, refusing] = &risks().await[..] else { panic!("{:?}", risks().await) };
    assert!(
        refusing.starts_with("min-replicas-to-write is 1: with fewer replicas, the server refuses"),
        "{refusing}"
    );
    drop(replica);
    wait_until("the replica has gone", || server.info("connected_slaves") == "0");
    let store = at(&server).accept_failover().open().unwrap();
    says(refused(&store).await, Reason::Unreachable, "than its setting min-replicas-to-write requires");
}

#[tokio::test]
async fn an_encrypted_port_and_one_that_is_not_are_told_apart_in_words() {
    let authority = Authority::new();
    let setup = RedisSetup::new().encrypted(authority.certify(&["127.0.0.1"]));
    let Some(encrypted) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    let Some(plain) = RedisServer::shared(RedisKind::Redis) else { return };
    let began = Instant::now();
    let store = at(&encrypted).open().unwrap();
    says(refused(&store).await, Reason::Unreachable, "If its port is encrypted, write rediss://");
    let store = at(plain).tls().open().unwrap();
    says(refused(&store).await, Reason::Unreachable, "If its port is not encrypted, write redis://");
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

#[tokio::test]
async fn tls_is_checked_by_name_and_by_authority() {
    let authority = Authority::new();
    let setup = RedisSetup::new().encrypted(authority.certify(&["127.0.0.1", "localhost"]));
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    let ca = std::env::temp_dir().join(format!("tenure-redis-ca-{}.pem", std::process::id()));
    std::fs::write(&ca, authority.pem()).unwrap();
    let ca = ca.to_str().unwrap();
    let port = server.address().port();
    let builder = |host: &str| Redis::builder(&format!("{host}:{port}")).accept_restart();
    builder("127.0.0.1").tls().ca(ca).open().unwrap().get(&key("k")).await.unwrap();
    builder("localhost").tls().ca(ca).open().unwrap().get(&key("k")).await.unwrap();
    let stranger = builder("127.0.0.1").tls().open().unwrap();
    says(refused(&stranger).await, Reason::Unreachable, "UnknownIssuer");
    let misnamed = builder("127.0.0.2").tls().ca(ca).open().unwrap();
    let (reason, sentence) = refused(&misnamed).await;
    assert_eq!(reason, Reason::Unreachable, "{sentence}");
    let unencrypted = builder("127.0.0.1").open().unwrap();
    assert_eq!(refused(&unencrypted).await.0, Reason::Unreachable);
    let error = builder("127.0.0.1").tls().ca("/dev/null").open().unwrap_err();
    assert!(error.to_string().contains("has no certificate in it"), "{error}");
    std::fs::remove_file(ca).unwrap();
}

#[tokio::test]
async fn a_socket_serves_as_well_as_a_port() {
    let Some(server) = RedisServer::shared(RedisKind::Redis) else { return };
    let store = Redis::at_socket(server.socket().to_str().unwrap())
        .prefix("socket:")
        .accept_restart()
        .open()
        .unwrap();
    let put = store.put(&key("k"), "value".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Applied(_)));
    assert_eq!(server.command(&["HGET", "socket:{k}", "d"]), "value");
    assert_eq!(server.command(&["TTL", "socket:{k}"]), "-1", "records do not expire");
}

#[tokio::test]
async fn a_server_that_is_not_redis_or_not_there_is_unreachable() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = silent.accept().unwrap();
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let store = Redis::builder(&address).open().unwrap();
    assert_eq!(refused(&store).await.0, Reason::Unreachable);
    server.join().unwrap();
    assert_eq!(refused(&store).await.0, Reason::Unreachable, "nothing listens there any more");
}

#[tokio::test]
async fn a_silent_address_does_not_hide_the_others() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let (silent, _queue) = support::silent();
    let addresses = format!("{silent},{}", server.address());
    let store = Redis::builder(&addresses).accept_failover().open().unwrap();
    let began = Instant::now();
    store.get(&key("k")).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    let began = Instant::now();
    while store.get(&key("k")).await.is_err() {}
    assert!(began.elapsed() < Duration::from_millis(900), "it begins at the address that answered");
}

#[tokio::test]
async fn a_password_file_that_cannot_be_read_now_blocks_no_other_work() {
    let Some(server) = RedisServer::shared(RedisKind::Redis) else { return };
    let pipe = std::env::temp_dir().join(format!("tenure-redis-pipe-{}", std::process::id()));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let store = at(server).accept_restart().password_file(pipe.to_str().unwrap()).open().unwrap();
    let k = key("k");
    // Like a file on a network file system whose server does not answer.
    let call = tokio::time::timeout(Duration::from_secs(1), store.get(&k));
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            std::thread::sleep(Duration::from_secs(3));
            std::fs::write(&pipe, "hush").unwrap();
        }
    });
    let began = Instant::now();
    call.await.unwrap_err();
    let passed = began.elapsed();
    writer.join().unwrap();
    std::fs::remove_file(&pipe).unwrap();
    assert!(passed < Duration::from_secs(2), "the thread was blocked for {passed:?}");
}

#[tokio::test]
async fn a_conflict_leaves_nothing_to_confirm() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let replica = server.replica();
    wait_until("the replica confirms writes", || server.info("slave0").contains("state=online"));
    let store = at(&server).accept_failover().wait_for_replicas(1, false).open().unwrap();
    let put = store.put(&key("k"), "value".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Applied(_)));
    replica.pause();
    let put = store.put(&key("k"), "other".into(), Expect::Absent).await.unwrap();
    assert!(matches!(put, Put::Conflict(_)));
    let entry = store.get(&key("k")).await.unwrap().entry.unwrap();
    assert_eq!(entry.value, "value");
    replica.resume();
}
