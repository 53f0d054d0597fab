//! Restarts of a real server, while a holder believes.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

mod support;

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::Place;
use tenure::{Coordinator, Denied, ErrorKind, Lease};
use tenure_redis::{Redis, RedisBuilder};
use tenure_store::{Expect, Put, Store, StoreError};
use tenure_testkit::{RedisKind, RedisServer, RedisSetup, key, wait_until};

/// Longest ttl, and ttl of all leases here.
const TTL: Duration = Duration::from_secs(3);

/// Length of the quarantine: the longest ttl, and a fifth of it.
const QUARANTINE: Duration = Duration::from_millis(3_600);

fn with_quarantine(builder: RedisBuilder) -> RedisBuilder {
    builder.quarantine(TTL)
}

fn with_short_quarantine(builder: RedisBuilder) -> RedisBuilder {
    builder.quarantine(Duration::from_millis(100))
}

fn without_quarantine(builder: RedisBuilder) -> RedisBuilder {
    builder.accept_restart()
}

async fn connect(place: &Place) -> Coordinator {
    Coordinator::connect(place.store()).await.unwrap()
}

async fn acquire(coordinator: &Coordinator, wait: Duration) -> Lease {
    let request = coordinator.lease("k").unwrap().ttl(TTL).without_witness().manual();
    request.wait(wait).acquire().await.unwrap()
}

/// Grants the lease, restarts the server with `lose` while its holder believes, and returns true if a contender was
/// granted the lease before the holder's deadline. The snapshot is from a time when the lease was vacant.
async fn two_believe(place: &Place, lose: impl FnOnce(&RedisServer, &tenure_testkit::Snapshot)) -> bool {
    let holder = connect(place).await;
    acquire(&holder, QUARANTINE * 2).await.release().await.unwrap();
    let vacant = place.server.snapshot();
    let contender = connect(place).await;
    let lease = acquire(&holder, Duration::ZERO).await;
    lose(&place.server, &vacant);
    lease.check().expect("the holder knows nothing of the restart");
    let second = acquire(&contender, QUARANTINE * 3).await;
    let both = lease.check().is_ok();
    assert!(second.token() > lease.token(), "tokens grow, also from a lost record");
    both
}

fn roll_back(server: &RedisServer, vacant: &tenure_testkit::Snapshot) {
    server.restart_from(vacant);
}

fn lose_all(server: &RedisServer, _: &tenure_testkit::Snapshot) {
    server.restart_without_data();
}

/// A deletion of all data is no restart: connections and run stay.
fn flush(server: &RedisServer, _: &tenure_testkit::Snapshot) {
    server.command(&["FLUSHALL"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_a_restart_from_an_old_snapshot_nothing_is_granted_while_a_holder_may_believe() {
    for kind in RedisKind::ALL {
        let Some(place) = Place::start(kind, RedisSetup::new(), with_quarantine) else { return };
        assert!(!two_believe(&place, roll_back).await, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_a_restart_without_data_nothing_is_granted_while_a_holder_may_believe() {
    let Some(place) = Place::start(RedisKind::Valkey, RedisSetup::new(), with_quarantine) else { return };
    assert!(!two_believe(&place, lose_all).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_a_deletion_of_all_data_nothing_is_granted_while_a_holder_may_believe() {
    let Some(place) = Place::start(RedisKind::Valkey, RedisSetup::new(), with_quarantine) else { return };
    assert!(!two_believe(&place, flush).await);
}

/// The same tests, with the quarantine turned off: the risk that `accept=restart` accepts.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_the_quarantine_two_hold_the_lease_after_such_a_restart() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), without_quarantine) else { return };
    assert!(two_believe(&place, roll_back).await);
    assert!(two_believe(&place, lose_all).await);
}

/// The former holder remembers the version of its release, which the server has again after the restart, and the time of
/// that release, which is older than the lost grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tokens_grow_after_a_restart_that_lost_a_grant_also_without_a_quarantine() {
    for kind in RedisKind::ALL {
        let Some(place) = Place::start(kind, RedisSetup::new(), without_quarantine) else { return };
        let (former, holder) = (connect(&place).await, connect(&place).await);
        acquire(&former, Duration::ZERO).await.release().await.unwrap();
        let vacant = place.server.snapshot();
        let lost = acquire(&holder, Duration::ZERO).await;
        place.server.restart_from(&vacant);
        let second = acquire(&former, TTL).await;
        assert!(second.token() > lost.token(), "{kind:?}: {} after {}", second.token(), lost.token());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_whose_record_survived_the_restart_keeps_its_lease_through_the_quarantine() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), with_quarantine) else { return };
    let holder = connect(&place).await;
    acquire(&holder, QUARANTINE * 2).await.release().await.unwrap();
    let lease =
        holder.lease("k").unwrap().ttl(TTL).without_witness().wait(QUARANTINE).acquire().await.unwrap();
    lease.renew().await.unwrap();
    place.server.command(&["SAVE"]);
    place.server.restart();
    let (began, token) = (Instant::now(), lease.token());
    while began.elapsed() < QUARANTINE + TTL {
        lease.check().expect("it renews in the new run");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(lease.token(), token);
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn short_lived_commands_that_do_not_wait_get_through_after_the_quarantine() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), with_quarantine) else { return };
    let began = Instant::now();
    let mut denied = 0;
    loop {
        // Each is a new process, as far as the store knows.
        let command = connect(&place).await;
        match command.lease("k").unwrap().ttl(TTL).without_witness().try_acquire().await {
            Ok(lease) => {
                lease.release().await.unwrap();
                break;
            }
            Err(error) => {
                denied += 1;
                let text =
                    format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
                assert!(text.contains("forgotten leases: nothing is granted for"), "{text}");
                assert_eq!(error.kind(), ErrorKind::Held, "{error:?}");
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let passed = began.elapsed();
    assert!(denied > 3 && passed >= QUARANTINE && passed < QUARANTINE * 2, "{denied} in {passed:?}");
    // Newcomers wait once for each start of the server, and not once each.
    let began = Instant::now();
    acquire(&connect(&place).await, Duration::ZERO).await.release().await.unwrap();
    assert!(began.elapsed() < QUARANTINE / 2);
}

/// Its settings can change while it runs. Here the log is switched off and on again, and the server is killed before it has
/// rewritten the log: it loads the log from before, without the grant, and with settings that sync every write.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_syncs_every_write_has_a_quarantine_after_each_restart() {
    let setup = RedisSetup::new().durable().setting("rdb-key-save-delay", "100000");
    let Some(place) = Place::start(RedisKind::Redis, setup, with_quarantine) else { return };
    let holder = connect(&place).await;
    acquire(&holder, QUARANTINE * 2).await.release().await.unwrap();
    for number in 0..100 {
        place.server.command(&["SET", &format!("slow/{number}"), "x"]);
    }
    place.server.command(&["CONFIG", "SET", "appendonly", "no"]);
    place.server.command(&["CONFIG", "SET", "appendonly", "yes"]);
    assert_eq!(place.server.info("aof_rewrite_in_progress"), "1");
    let lease = acquire(&holder, Duration::ZERO).await;
    place.server.restart();
    let contender = connect(&place).await;
    let error = contender.lease("k").unwrap().ttl(TTL).try_acquire().await.unwrap_err();
    assert!(matches!(error.denied(), Some(Denied::Withheld(_))), "{error:?}");
    let next = acquire(&contender, QUARANTINE * 2).await;
    lease.check().expect_err("the server has forgotten this grant");
    assert!(next.token() > lease.token());
}

/// `SWAPDB` replaces all data, and breaks no connection. Both databases have passed the quarantine of this run.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_databases_are_swapped_nothing_is_granted_for_a_while() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), with_short_quarantine) else {
        return;
    };
    let stores = [0, 1].map(|number| place.builder().database(number).open().unwrap());
    for store in &stores {
        let began = Instant::now();
        while store.put(&key("k"), "value".into(), Expect::Absent).await.is_err() {
            assert!(began.elapsed() < Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    place.server.command(&["SWAPDB", "0", "1"]);
    let told = stores[0].put(&key("new"), "value".into(), Expect::Absent).await;
    assert!(matches!(told, Err(StoreError::Throttled(_))), "{told:?}");
}

#[tokio::test]
async fn participants_with_different_quarantines_are_refused_with_both_numbers() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), with_quarantine) else { return };
    place.store().get(&key("k")).await.unwrap();
    let other = place.builder().quarantine(Duration::from_secs(2)).open().unwrap();
    let error = other.get(&key("k")).await.unwrap_err().to_string();
    assert!(error.contains("quarantine=3000ms") && error.contains("quarantine=2000ms"), "{error}");
}

#[tokio::test]
async fn a_ttl_above_the_quarantine_is_refused() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), with_quarantine) else { return };
    let coordinator = connect(&place).await;
    let error = coordinator.lease("k").unwrap().ttl(TTL * 2).acquire().await.unwrap_err();
    assert!(error.to_string().contains("3s"), "{error}");
}

/// Forwards connections to the server that `target` names at the time.
fn forwarding(target: Arc<Mutex<SocketAddr>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(*target.lock().unwrap()) else { continue };
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    address
}

/// Replication copies the marks of the primary server, and may lose its latest grants.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_promoted_replica_has_a_quarantine() {
    for kind in RedisKind::ALL {
        let Some(primary) = RedisServer::start_or_skip(kind, RedisSetup::new().durable()) else { return };
        let target = Arc::new(Mutex::new(primary.address()));
        let address = forwarding(Arc::clone(&target)).to_string();
        let open = || Redis::builder(&address).quarantine(TTL).open().unwrap();
        let holder = Coordinator::connect(open()).await.unwrap();
        acquire(&holder, QUARANTINE * 2).await.release().await.unwrap();
        let replica = primary.replica();
        wait_until("the replica has all of it", || {
            let offsets = [&primary, &replica].map(|server| server.info("master_repl_offset"));
            offsets[0] == offsets[1]
        });
        // The replica has lost contact, and does not get this grant.
        replica.promote();
        let lease = acquire(&holder, Duration::ZERO).await;
        primary.kill();
        *target.lock().unwrap() = replica.address();
        let contender = Coordinator::connect(open()).await.unwrap();
        let second = acquire(&contender, QUARANTINE * 3).await;
        lease.check().expect_err("the replica never had this grant");
        assert!(second.token() > lease.token(), "{kind:?}");
    }
}

/// Holders from before the first run may still believe.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restart_during_the_quarantine_does_not_end_it() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new().durable(), with_quarantine) else {
        return;
    };
    let _sees = connect(&place).await;
    place.server.restart();
    let error = connect(&place).await.lease("k").unwrap().ttl(TTL).try_acquire().await.unwrap_err();
    assert!(matches!(error.denied(), Some(Denied::Withheld(_))), "{error:?}");
}

#[tokio::test]
async fn a_restart_that_cannot_be_recorded_leaves_the_earlier_record() {
    let users = "user narrow on >hush ~tenure:* &tenure:* +@all -hset";
    let setup = RedisSetup::new().durable().users(users);
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, setup) else { return };
    server.command(&[
        "HSET",
        "tenure:restart",
        "run",
        "earlier",
        "quarantine",
        "60000",
        "cleared",
        "earlier",
    ]);
    let builder = Redis::builder(&server.address().to_string());
    let store = builder.user("narrow").password("hush").open().unwrap();
    store.get(&key("k")).await.unwrap();
    assert_eq!(server.command(&["HGET", "tenure:restart", "run"]), "earlier");
    assert_eq!(server.command(&["HGET", "tenure:restart", "quarantine"]), "60000");
}

/// A random name for each connection would fill the record without bound, and no other connection could use it.
#[tokio::test]
async fn a_clock_that_no_other_process_can_name_leaves_no_sighting() {
    let Some(server) = RedisServer::shared(RedisKind::Redis) else { return };
    let script = include_str!("../src/scripts/sight.lua");
    let sight = |run: &str, id: &str, clock: &[&str]| {
        let arguments = ["EVAL", script, "1", "nameless:restart", run, "3000", id];
        let fields = server.command(&[&arguments, clock].concat());
        let fields: Vec<_> = fields.lines().map(str::to_owned).collect();
        fields.chunks(2).map(|pair| pair.join("=")).collect::<BTreeSet<_>>()
    };
    let fields = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
    assert_eq!(sight("one", "a", &[]), fields(&["run=one", "id=a", "quarantine=3000"]));
    let named = sight("one", "b", &["seen:clock", "7"]);
    assert_eq!(named, fields(&["run=one", "id=a", "quarantine=3000", "seen:clock=7"]));
    assert_eq!(sight("two", "c", &[]), fields(&["run=two", "id=c", "quarantine=3000"]), "another run");
}

#[tokio::test]
async fn a_server_that_becomes_a_replica_during_the_quarantine_is_noticed() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), with_short_quarantine) else {
        return;
    };
    let store = place.store();
    let told = store.put(&key("k"), "value".into(), Expect::Absent).await;
    assert!(matches!(told, Err(StoreError::Throttled(_))), "{told:?}");
    tokio::time::sleep(Duration::from_millis(200)).await;
    place.server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let mut said = Vec::new();
    for _ in 0..2 {
        said.push(store.put(&key("k"), "value".into(), Expect::Absent).await.unwrap_err().to_string());
    }
    assert!(said[0].contains("READONLY") && said[1].contains("is a replica"), "{said:?}");
}

#[tokio::test]
async fn no_version_of_an_earlier_run_conditions_a_write_also_if_every_write_is_on_disk() {
    let setup = RedisSetup::new().durable();
    let Some(place) = Place::start(RedisKind::Redis, setup, without_quarantine) else { return };
    let store = place.store();
    let Put::Applied(applied) = store.put(&key("k"), "one".into(), Expect::Absent).await.unwrap() else {
        panic!("it was absent")
    };
    // Later in this run, so the connection of this store has not seen it.
    place.server.command(&["CONFIG", "SET", "appendfsync", "everysec"]);
    place.server.stop();
    place.server.restart();
    let later = place.store();
    let put = later.put(&key("k"), "two".into(), Expect::Version(applied.version)).await.unwrap();
    assert!(matches!(put, Put::Conflict(_)), "{put:?}");
    let entry = later.get(&key("k")).await.unwrap().entry.expect("the record is there");
    let put = later.put(&key("k"), "two".into(), Expect::Version(entry.version)).await.unwrap();
    assert!(matches!(put, Put::Applied(_)), "{put:?}");
}

/// An operator who adds `accept=restart` to the URL of such a server relies on it.
#[tokio::test]
async fn a_server_with_every_acknowledged_write_on_disk_has_them_after_a_crash() {
    for kind in RedisKind::ALL {
        let Some(place) = Place::start(kind, RedisSetup::new().durable(), without_quarantine) else {
            continue;
        };
        let store = place.store();
        let keys: Vec<_> = (0..50).map(|number| key(&format!("kept/{number}"))).collect();
        for key in &keys {
            let value = key.as_str().to_owned().into();
            assert!(matches!(store.put(key, value, Expect::Absent).await, Ok(Put::Applied(_))));
        }
        place.server.restart();
        let later = place.store();
        for key in &keys {
            let entry = later.get(key).await.unwrap().entry;
            assert!(entry.is_some_and(|entry| entry.value == key.as_str()), "{kind:?}: {key}");
        }
    }
}

#[tokio::test]
async fn a_participant_that_waits_learns_that_another_one_has_cleared_the_run() {
    let long = |builder: RedisBuilder| builder.quarantine(Duration::from_secs(30));
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), long) else { return };
    let coordinator = connect(&place).await;
    let waiting = tokio::spawn(
        coordinator.lease("k").unwrap().ttl(TTL).without_witness().wait(Duration::from_secs(20)).acquire(),
    );
    tokio::time::sleep(Duration::from_millis(500)).await;
    let run = place.server.command(&["HGET", "tenure:restart", "run"]);
    place.server.command(&["HSET", "tenure:restart", "cleared", &run]);
    let began = Instant::now();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_write_that_waits_costs_at_most_one_command() {
    let Some(place) = Place::start(RedisKind::Redis, RedisSetup::new(), with_quarantine) else { return };
    let (store, k) = (place.store(), key("k"));
    let waits = async |times: usize| {
        for _ in 0..times {
            let told = store.put(&k, "value".into(), Expect::Absent).await;
            assert!(matches!(told, Err(StoreError::Throttled(_))), "{told:?}");
        }
        let log = place.proxy.log();
        place.proxy.clear_log();
        log.into_iter().map(|exchange| exchange.method).filter(|method| method == "HMGET").count()
    };
    assert_eq!(waits(10).await, 0, "the handshake has just read the marks");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(waits(10).await, 1, "all calls share one read");
}
