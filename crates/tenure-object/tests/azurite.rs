//! The store on Microsoft's emulator of Azure Blob Storage.

mod bucket;

use std::time::Duration;

use bucket::{Cloud, Container, OnAzure};
use bytes::Bytes;
use futures_util::future::join_all;
use tenure::{Coordinator, ErrorKind};
use tenure_conformance::Harness;
use tenure_object::{Azure, AzureBuilder, Environment};
use tenure_store::{Expect, Key, Put, Store, StoreError};
use tenure_testkit::{ErrorAnswer, Fault, Kind, Rule, key, quota};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_container_keeps_the_contract() {
    let Some(container) = Container::alone_on(Kind::Azurite, "contract") else { return };
    container.keeps_the_contract(64, quota(10, 30) as usize).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_container_carries_leases() {
    let Some(container) = Container::alone_on(Kind::Azurite, "carries") else { return };
    // Azurite needs a processor for every request.
    container.carries_leases(6, Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_container_carries_the_primitives() {
    let Some(container) = Container::on(Kind::Azurite, "primitives") else { return };
    container.carries_primitives(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn every_legal_key_comes_back_from_its_blob_and_from_a_listing() {
    let Some(container) = Container::on(Kind::Azurite, "hostile") else { return };
    container.stores_every_legal_key().await;
    let Some(container) = Container::on(Kind::Azurite, "hostile-at-the-top") else { return };
    container.stores_every_legal_key_at_the_top().await;
}

#[tokio::test]
async fn a_lease_goes_from_hand_to_hand_by_release_and_by_crash_with_growing_tokens() {
    let Some(container) = Container::on(Kind::Azurite, "hands") else { return };
    container.hands_a_lease_over().await;
}

/// All clients connect to a container that no client has checked before, and race to create the key of the check.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_clients_that_connect_at_once_all_trust_an_honest_server() {
    let Some(container) = Container::on(Kind::Azurite, "crowd") else { return };
    let connecting = (0..100).map(|_| Coordinator::connect(container.store()));
    for connected in join_all(connecting).await {
        connected.unwrap();
    }
}

/// A second write of equal bytes has another version, so that no version ever returns.
#[tokio::test]
async fn equal_bytes_have_another_version_each_time_they_are_written() {
    let Some(container) = Container::on(Kind::Azurite, "equal") else { return };
    let (store, mut expect, mut seen) = (container.store(), Expect::Absent, Vec::new());
    for _ in 0..5 {
        let put = store.put(&key("k"), "same".into(), expect).await.unwrap();
        let Put::Applied(applied) = put else { panic!("there is no other writer") };
        assert!(!seen.contains(&applied.version), "{seen:?}");
        expect = Expect::Version(applied.version.clone());
        seen.push(applied.version);
    }
}

#[tokio::test]
async fn a_wrong_place_and_wrong_credentials_are_reported() {
    let Some(container) = Container::on(Kind::Azurite, "wrong") else { return };
    let server = container.server();
    let at = |name: &str| Azure::builder(name).account(server.account()).endpoint(&server.endpoint());
    let open = |builder: AzureBuilder| builder.open_in(&Environment::default()).unwrap();
    let key = key("k");
    let missing = open(at("never-made").access_key(server.account_key()));
    let put = missing.put(&key, Bytes::new(), Expect::Absent).await.unwrap_err().to_string();
    assert!(put.contains("there is no container \"never-made\": create it"), "{put}");
    let replace = Expect::Version(missing.identity().impossible_version);
    let put = missing.put(&key, Bytes::new(), replace).await.unwrap_err().to_string();
    assert!(put.contains("there is no container"), "and it is no conflict: {put}");
    assert!(missing.get(&key).await.unwrap_err().to_string().contains("there is no container"));
    let error = Coordinator::connect(missing).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");

    for (stranger, words) in [
        (open(at("wrong").access_key("aHVzaA==")), "the access key is not one of this account"),
        (open(at("wrong").sas_token("sv=2023-11-03&sig=hush")), "the SAS token is wrong or has expired"),
    ] {
        let error = stranger.get(&key).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("aHVzaA") && !error.contains("hush"), "{error}");
        let error = Coordinator::connect(stranger).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn a_deleted_blob_is_a_conflict_for_its_replacement_and_no_value() {
    let Some(container) = Container::on(Kind::Azurite, "deleted") else { return };
    let (store, key) = (container.store(), Key::parse("k").unwrap());
    let Put::Applied(applied) = store.put(&key, "one".into(), Expect::Absent).await.unwrap() else {
        panic!()
    };
    let _ = container.delete(&key).await;
    assert!(store.get(&key).await.unwrap().entry.is_none());
    let put = store.put(&key, "two".into(), Expect::Version(applied.version)).await.unwrap();
    assert!(matches!(put, Put::Conflict(_)));
}

#[tokio::test]
async fn a_sweep_deletes_one_blob_and_a_missing_permission_is_reported() {
    let Some(container) = Container::on(Kind::Azurite, "sweep") else { return };
    let (store, swept) = (container.store(), Key::from_stored(".tenure/probe/1/a").unwrap());
    for key in [&swept, &key("kept")] {
        assert!(matches!(store.put(key, "x".into(), Expect::Absent).await, Ok(Put::Applied(_))));
    }
    assert!(matches!(store.scratch().unwrap().sweep(&key("kept")).await, Err(StoreError::Refused(_))));
    store.scratch().unwrap().sweep(&swept).await.unwrap();
    store.scratch().unwrap().sweep(&swept).await.expect("it is gone already, which is no error");
    assert!(store.get(&swept).await.unwrap().entry.is_none());
    assert!(store.get(&key("kept")).await.unwrap().entry.is_some());

    let denied = ErrorAnswer::new(403, "AuthorizationPermissionMismatch");
    container.proxy().install(Rule::new(Fault::AnswerInstead(denied)).path("sweep").times(1));
    let error = store.scratch().unwrap().sweep(&swept).await.unwrap_err();
    assert!(error.to_string().contains("may not delete"), "{error}");
}

/// A program that leases a blob with Azure's own leases blocks its writes. That is no conflict: a read shows the same
/// version, and a holder that took it for a lost lease would stop without need.
#[tokio::test]
async fn a_blob_that_another_program_has_leased_natively_is_refused_in_words() {
    let Some(container) = Container::on(Kind::Azurite, "native") else { return };
    let (store, key) = (container.store(), key("k"));
    let Put::Applied(applied) = store.put(&key, "one".into(), Expect::Absent).await.unwrap() else {
        panic!()
    };
    let target = format!("/{}/native/{}?comp=lease", container.server().account(), store.object_of(&key));
    let lease = [("x-ms-lease-action", "acquire"), ("x-ms-lease-duration", "-1")];
    container.server().administer("PUT", &target, &lease, "");
    let result = store.put(&key, "two".into(), Expect::Version(applied.version)).await;
    let Err(StoreError::Refused(refused)) = result else { panic!("{result:?}") };
    assert!(refused.to_string().contains("break that lease"), "{refused}");
    assert_eq!(store.get(&key).await.unwrap().entry.unwrap().value, "one");
}

/// Azurite sends the time of the write only with the value, so an answer without one shows no age.
#[tokio::test]
async fn the_first_read_shows_an_age_by_the_servers_clock_where_it_is_accepted() {
    let Some(container) = Container::on(Kind::Azurite, "ages") else { return };
    let writer = container.store();
    let _ = writer.put(&key("k"), "one".into(), Expect::Absent).await.unwrap();
    container.pause(Duration::from_millis(2100)).await;
    let trusting = OnAzure::open(&OnAzure::accept_server_clock(container.builder()));
    let age = trusting.get(&key("k")).await.unwrap().entry.unwrap().age;
    assert!(age.is_some_and(|age| age >= Duration::from_secs(1)), "{age:?}");
    assert_eq!(writer.get(&key("k")).await.unwrap().entry.unwrap().age, None, "it was not accepted");
}
