//! The store on a real server: MinIO.

mod bucket;

use std::time::Duration;

use bucket::Bucket;
use bytes::Bytes;
use futures_util::future::{join, join_all};
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, ErrorKind};
use tenure_conformance::{Harness, Suite};
use tenure_object::Environment;
use tenure_object::{Requests, S3};
use tenure_store::{Expect, Key, Put, Store, StoreError};
use tenure_testkit::{ErrorAnswer, Fault, Kind as Server, Rule, key, quota};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_keeps_the_contract() {
    let Some(bucket) = Bucket::alone_on(Server::Minio, "contract") else { return };
    bucket.keeps_the_contract(64, quota(30, 100) as usize).await;
}

/// Problems of the connection never count against a server.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_write_whose_answer_was_lost_is_no_answer_without_a_time() {
    let Some(bucket) = Bucket::on(Server::Minio, "lost-time") else { return };
    bucket.proxy().install(Rule::new(Fault::CutAfter).method("PUT").path("told").times(1));
    let report = Suite::new(1).only("clock").run(&bucket).await;
    assert_eq!(
        bucket.proxy().log().iter().filter(|exchange| exchange.fault.is_some()).count(),
        1,
        "{report}"
    );
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_carries_leases() {
    let Some(bucket) = Bucket::alone_on(Server::Minio, "carries") else { return };
    bucket.carries_leases(6, Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_carries_the_primitives() {
    let Some(bucket) = Bucket::on(Server::Minio, "primitives") else { return };
    bucket.carries_primitives(Duration::from_secs(3)).await;
}

#[tokio::test]
async fn every_legal_key_comes_back_from_its_object_and_from_a_listing() {
    let Some(bucket) = Bucket::on(Server::Minio, "hostile") else { return };
    bucket.stores_every_legal_key().await;
    let Some(bucket) = Bucket::on(Server::Minio, "hostile-at-the-top") else { return };
    bucket.stores_every_legal_key_at_the_top().await;
}

/// In requests as the provider counts them.
#[tokio::test]
async fn what_a_lease_costs_is_counted_in_requests() {
    let Some(bucket) = Bucket::on(Server::Minio, "costs") else { return };
    let store = bucket.store();
    let warm = Coordinator::connect(store.clone()).await.unwrap();
    let mut before = Requests::default();
    let mut cost = |now: Requests| {
        let cost = (now.gets - before.gets, now.puts - before.puts, now.lists - before.lists);
        before = now;
        cost
    };
    assert_eq!(cost(store.requests()), (4, 3, 0), "to connect for the first time: the scratch key is made");
    let lease = warm.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    // The clock of a bucket shows whole seconds, so the grant waits for the second after the plant.
    assert_eq!(
        cost(store.requests()),
        (2, 2, 0),
        "first use: a read, the plant, a read of the clock and the grant"
    );
    lease.renew().await.unwrap();
    assert_eq!(cost(store.requests()), (0, 1, 0), "a renewal");
    lease.release().await.unwrap();
    assert_eq!(cost(store.requests()), (0, 1, 0), "a release");
    let lease = warm.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    assert_eq!(cost(store.requests()), (0, 1, 0), "a warm acquire");
    lease.release().await.unwrap();

    let store = bucket.store();
    let cold = Coordinator::connect(store.clone()).await.unwrap();
    let before = store.requests();
    assert_eq!((before.gets, before.puts), (3, 2), "to connect");
    let _lease = cold.lease("k").unwrap().without_witness().manual().acquire().await.unwrap();
    let now = store.requests();
    assert_eq!((now.gets - before.gets, now.puts - before.puts), (1, 1), "a cold acquire");

    // The store's counts equal the requests on the wire.
    let wire = bucket.proxy().log();
    let sent = |method| wire.iter().filter(|exchange| exchange.method == method).count();
    assert_eq!((sent("GET"), sent("PUT"), wire.len()), (10, 12, 22));
}

/// Each process is a new one, which has seen no token. Before the first grant waited for a later second than the plant,
/// most of these tokens were the same.
#[tokio::test]
async fn a_record_that_is_deleted_within_the_second_of_its_grant_repeats_no_token() {
    let Some(bucket) = Bucket::on(Server::Minio, "deleted-at-once") else { return };
    let mut latest = None;
    for round in 0..6 {
        let process = Coordinator::connect(bucket.store()).await.unwrap();
        let lease = process.lease("k").unwrap().without_witness().acquire().await.unwrap();
        assert!(Some(lease.token()) > latest, "round {round}: {} after {latest:?}", lease.token());
        latest = Some(lease.token());
        lease.release().await.unwrap();
        bucket.remove(&key("k")).await;
    }
}

#[tokio::test]
async fn a_lease_goes_from_hand_to_hand_by_release_and_by_crash_with_growing_tokens() {
    let Some(bucket) = Bucket::on(Server::Minio, "hands") else { return };
    bucket.hands_a_lease_over().await;
}

/// In turn, a contender reads eight slots in two ttl.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_freed_slot_of_a_full_group_is_found_by_the_next_listing_at_four_calls_per_ttl() {
    let Some(bucket) = Bucket::on(Server::Minio, "freed-slot") else { return };
    let ttl = Duration::from_secs(3);
    let holders = Coordinator::connect(bucket.store()).await.unwrap();
    let slot = |of: &Coordinator| of.slots("gpu", 8).unwrap().ttl(ttl).without_witness();
    let held = join_all((0..8).map(|_| slot(&holders).acquire())).await;
    let held: Vec<_> = held.into_iter().map(Result::unwrap).collect();

    let store = bucket.store();
    let contender = Coordinator::connect(store.clone()).await.unwrap();
    let waits = slot(&contender).acquire();
    let releases = async {
        BootClock.sleep_until(BootClock.now() + ttl / 2).await;
        let before = store.requests();
        BootClock.sleep_until(BootClock.now() + ttl).await;
        let now = store.requests();
        let released = BootClock.now();
        held[5].release().await.unwrap();
        (released, now.gets - before.gets, now.lists - before.lists)
    };
    let (granted, (released, reads, listings)) = join(waits, releases).await;
    let took = BootClock.now().since(released);
    assert_eq!(granted.unwrap().index(), held[5].index());
    assert!((2..=3).contains(&listings) && reads <= 3, "{reads} reads and {listings} listings in a ttl");
    let busy_machine = Duration::from_millis(1_500);
    assert!(took <= ttl * 2 / 5 + busy_machine, "found after {took:?}");
}

/// All clients connect to a bucket that no client has checked before, and race to create the key of the check.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_clients_that_connect_at_once_all_trust_an_honest_server() {
    let Some(bucket) = Bucket::on(Server::Minio, "crowd") else { return };
    let connecting = (0..200).map(|_| Coordinator::connect(bucket.store()));
    for connected in join_all(connecting).await {
        connected.unwrap();
    }
}

#[tokio::test]
async fn a_liar_is_refused_when_it_is_connected() {
    let Some(bucket) = Bucket::on(Server::Rclone, "liar") else { return };
    let error = Coordinator::connect(bucket.store()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.to_string().contains("it accepted a create over an existing entry"), "{error}");
}

#[tokio::test]
async fn a_wrong_place_and_wrong_credentials_are_reported() {
    let Some(bucket) = Bucket::on(Server::Minio, "wrong") else { return };
    let endpoint = bucket.server().endpoint();
    let open = |name: &str, secret: &str| {
        let store = S3::builder(name).endpoint(&endpoint).keys(bucket.server().access_key(), secret);
        store.open_in(&Environment::default()).unwrap()
    };
    let key = key("k");
    let missing = open("never-made", bucket.server().secret_key());
    let put = missing.put(&key, Bytes::new(), Expect::Absent).await.unwrap_err().to_string();
    assert!(put.contains("there is no bucket \"never-made\": create it"), "{put}");
    let replace = Expect::Version(missing.identity().impossible_version);
    let put = missing.put(&key, Bytes::new(), replace).await.unwrap_err().to_string();
    assert!(put.contains("there is no bucket"), "and it is no conflict: {put}");
    assert!(missing.get(&key).await.unwrap_err().to_string().contains("there is no bucket"));
    let error = Coordinator::connect(missing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");

    let elsewhere = bucket.builder().region("eu-west-1").open_in(&Environment::default()).unwrap();
    let error = elsewhere.get(&key).await.unwrap_err().to_string();
    assert!(error.contains("is not here: write region=us-east-1"), "{error}");

    let stranger = open("wrong", "not-the-secret");
    let error = stranger.get(&key).await.unwrap_err().to_string();
    assert!(error.contains("its secret is wrong"), "{error}");
    assert!(!error.contains("not-the-secret"));
    let error = Coordinator::connect(stranger).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

/// Verifies that the harness deletes the object on the server.
#[tokio::test]
async fn a_deleted_object_is_a_conflict_for_its_replacement() {
    let Some(bucket) = Bucket::on(Server::Minio, "deleted") else { return };
    let (store, key) = (bucket.store(), Key::parse("k").unwrap());
    let Put::Applied(applied) = store.put(&key, "one".into(), Expect::Absent).await.unwrap() else {
        panic!()
    };
    let _ = bucket.delete(&key).await;
    let put = store.put(&key, "two".into(), Expect::Version(applied.version)).await.unwrap();
    assert!(matches!(put, Put::Conflict(_)), "a 404, which the client library calls a failed precondition");
}

#[tokio::test]
async fn a_sweep_is_one_plain_delete_and_a_missing_permission_is_reported() {
    let Some(bucket) = Bucket::on(Server::Minio, "sweep") else { return };
    let (store, swept) = (bucket.store(), Key::from_stored(".tenure/probe/1/a").unwrap());
    for key in [&swept, &key("kept")] {
        assert!(matches!(store.put(key, "x".into(), Expect::Absent).await, Ok(Put::Applied(_))));
    }
    bucket.proxy().clear_log();
    assert!(matches!(store.scratch().unwrap().sweep(&key("kept")).await, Err(StoreError::Refused(_))));
    store.scratch().unwrap().sweep(&swept).await.unwrap();
    store.scratch().unwrap().sweep(&swept).await.expect("it is gone already, which is no error");
    let log = bucket.proxy().log();
    let sent: Vec<_> =
        log.iter().map(|exchange| (exchange.method.as_str(), exchange.target.as_str())).collect();
    assert_eq!(sent, [("DELETE", "/sweep/some/locks/.tenure/probe/1/a.record"); 2]);
    assert!(store.get(&swept).await.unwrap().entry.is_none());
    assert!(store.get(&key("kept")).await.unwrap().entry.is_some());

    let denied = ErrorAnswer::new(403, "AccessDenied");
    bucket.proxy().install(Rule::new(Fault::AnswerInstead(denied)).method("DELETE"));
    let error = store.scratch().unwrap().sweep(&swept).await.unwrap_err();
    assert!(error.to_string().contains("may not delete"), "{error}");
}

/// Such answers do not say that the record was deleted, and no contender treats the lease as free.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn empty_404s_of_a_load_balancer_end_no_lease() {
    let Some(bucket) = Bucket::on(Server::Minio, "balancer") else { return };
    let ttl = Duration::from_secs(6);
    let holder = Coordinator::connect(bucket.store()).await.unwrap();
    let lease = holder.lease("job").unwrap().ttl(ttl).acquire().await.unwrap();
    let contender = Coordinator::connect(bucket.store()).await.unwrap();
    let empty = Fault::AnswerInstead(ErrorAnswer::EMPTY_NOT_FOUND);
    bucket.proxy().install(Rule::new(empty).path("job").times(3));
    let denied = contender.lease("job").unwrap().ttl(ttl).wait(ttl * 2).acquire().await.unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Held, "{denied}");
    let faults = bucket.proxy().log().iter().filter(|exchange| exchange.fault.is_some()).count();
    assert_eq!(faults, 3);
    lease.check().expect("it was renewed after those answers");
    lease.release().await.unwrap();
}
