//! The store on a stand-in for Google Cloud Storage: fake-gcs-server behind a translator.

mod bucket;

use std::time::Duration;

use bucket::GoogleBucket as Bucket;
use bytes::Bytes;
use futures_util::future::join_all;
use tenure::{Coordinator, ErrorKind};
use tenure_conformance::Harness;
use tenure_object::Environment;
use tenure_object::Google;
use tenure_store::{Expect, Key, Put, Store, StoreError};
use tenure_testkit::{ErrorAnswer, Fault, Kind, Rule, key, quota};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_keeps_the_contract() {
    let Some(bucket) = Bucket::alone_on(Kind::FakeGcs, "contract") else { return };
    bucket.keeps_the_contract(64, quota(30, 100) as usize).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_carries_leases() {
    let Some(bucket) = Bucket::alone_on(Kind::FakeGcs, "carries") else { return };
    bucket.carries_leases(6, Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_carries_the_primitives() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "primitives") else { return };
    bucket.carries_primitives(Duration::from_secs(3)).await;
}

#[tokio::test]
async fn every_legal_key_comes_back_from_its_object_and_from_a_listing() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "hostile") else { return };
    bucket.stores_every_legal_key().await;
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "hostile-at-the-top") else { return };
    bucket.stores_every_legal_key_at_the_top().await;
}

#[tokio::test]
async fn a_lease_goes_from_hand_to_hand_by_release_and_by_crash_with_growing_tokens() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "hands") else { return };
    bucket.hands_a_lease_over().await;
}

/// All clients connect to a bucket that no client has checked before, and race to create the key of the check.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_clients_that_connect_at_once_all_trust_an_honest_server() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "crowd") else { return };
    let connecting = (0..200).map(|_| Coordinator::connect(bucket.store()));
    for connected in join_all(connecting).await {
        connected.unwrap();
    }
}

#[tokio::test]
async fn a_liar_is_refused_when_it_is_connected() {
    let Some(bucket) = Bucket::on(Kind::GcpEmulator, "liar") else { return };
    let error = Coordinator::connect(bucket.store()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
    assert!(error.to_string().contains("it accepted a create over an existing entry"), "{error}");
}

#[tokio::test]
async fn a_wrong_place_and_wrong_credentials_are_reported() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "wrong") else { return };
    let endpoint = bucket.server().endpoint();
    let open = |name: &str, token: &str| {
        Google::builder(name).endpoint(&endpoint).token(token).open_in(&Environment::default()).unwrap()
    };
    let key = key("k");
    let missing = open("never-made", bucket.server().bearer_token());
    let put = missing.put(&key, Bytes::new(), Expect::Absent).await.unwrap_err().to_string();
    assert!(put.contains("there is no bucket \"never-made\": create it"), "{put}");
    let replace = Expect::Version(missing.identity().impossible_version);
    let put = missing.put(&key, Bytes::new(), replace).await.unwrap_err().to_string();
    assert!(put.contains("there is no bucket"), "and it is no conflict: {put}");
    assert!(missing.get(&key).await.unwrap_err().to_string().contains("there is no bucket"));
    let error = Coordinator::connect(missing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");

    let stranger = open("wrong", "not-the-token");
    let error = stranger.get(&key).await.unwrap_err().to_string();
    assert!(error.contains("the access token is not valid or has expired"), "{error}");
    assert!(!error.contains("not-the-token"));
    let error = Coordinator::connect(stranger).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

/// Verifies that the harness deletes the object on the server.
#[tokio::test]
async fn a_deleted_object_is_a_conflict_for_its_replacement() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "deleted") else { return };
    let (store, key) = (bucket.store(), Key::parse("k").unwrap());
    let Put::Applied(applied) = store.put(&key, "one".into(), Expect::Absent).await.unwrap() else {
        panic!()
    };
    let _ = bucket.delete(&key).await;
    let put = store.put(&key, "two".into(), Expect::Version(applied.version)).await.unwrap();
    assert!(matches!(put, Put::Conflict(_)), "a 412, as at Google");
}

#[tokio::test]
async fn a_sweep_is_one_plain_delete_and_a_missing_permission_is_reported() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "sweep") else { return };
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
    assert_eq!(sent, [("DELETE", "/sweep/some%2Flocks%2F%2Etenure%2Fprobe%2F1%2Fa%2Erecord"); 2]);
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
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "balancer") else { return };
    let ttl = Duration::from_secs(6);
    let holder = Coordinator::connect(bucket.store()).await.unwrap();
    let lease = holder.lease("job").unwrap().ttl(ttl).acquire().await.unwrap();
    let contender = Coordinator::connect(bucket.store()).await.unwrap();
    let empty = Fault::AnswerInstead(ErrorAnswer::EMPTY_NOT_FOUND);
    bucket.proxy().install(Rule::new(empty).path("job").times(4));
    let denied = contender.lease("job").unwrap().ttl(ttl).wait(ttl * 2).acquire().await.unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Held, "{denied}");
    let faults = bucket.proxy().log().iter().filter(|exchange| exchange.fault.is_some()).count();
    assert_eq!(faults, 4);
    lease.check().expect("it was renewed after those answers");
    lease.release().await.unwrap();
}

/// One write per second and object is the limit at Google. A holder that meets it continues, and renews later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn throttled_renewals_for_half_a_ttl_end_no_term() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "throttled") else { return };
    let ttl = Duration::from_secs(6);
    let coordinator = Coordinator::connect(bucket.store()).await.unwrap();
    let lease = coordinator.lease("job").unwrap().without_witness().ttl(ttl).acquire().await.unwrap();
    let slow_down = ErrorAnswer::new(429, "SlowDown");
    let rule = bucket.proxy().install(Rule::new(Fault::AnswerInstead(slow_down)).method("PUT"));
    bucket.pause(ttl / 2).await;
    let refused = bucket.proxy().log().iter().filter(|exchange| exchange.fault.is_some()).count();
    assert!(refused > 0, "a renewal was due, and was refused");
    lease.check().unwrap();
    rule.remove();
    bucket.pause(ttl).await;
    lease.check().expect("it was renewed after the pause");
    lease.release().await.unwrap();
}

/// Equal bytes have equal ETags, and the generation tells the two writes apart.
#[tokio::test]
async fn equal_bytes_never_bring_a_version_back() {
    let Some(bucket) = Bucket::on(Kind::FakeGcs, "equal") else { return };
    let (store, other, key) = (bucket.store(), bucket.store(), key("k"));
    let Put::Applied(first) = store.put(&key, "a".into(), Expect::Absent).await.unwrap() else { panic!() };
    assert_eq!(store.get(&key).await.unwrap().entry.unwrap().version, first.version);
    let Put::Applied(second) =
        other.put(&key, "b".into(), Expect::Version(first.version.clone())).await.unwrap()
    else {
        panic!()
    };
    let Put::Applied(third) = other.put(&key, "a".into(), Expect::Version(second.version)).await.unwrap()
    else {
        panic!()
    };
    assert_ne!(first.version, third.version);
    let doubt = store.get(&key).await.unwrap_err();
    assert!(
        doubt.to_string().contains("another version"),
        "the cached one is not taken for the new one: {doubt}"
    );
    assert_eq!(store.get(&key).await.unwrap().entry.unwrap().version, third.version);
    let stale = store.put(&key, "c".into(), Expect::Version(first.version)).await.unwrap();
    assert!(matches!(stale, Put::Conflict(_)));
}
