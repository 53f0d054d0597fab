//! A lease in the same database: its token is stale from the moment the next holder is granted.

use std::time::Duration;

use tenure::{Coordinator, ErrorKind};
use tenure_fence::{FenceError, FencingToken};
use tenure_postgres::{FenceSchema, Postgres, PostgresFence};
use tenure_store::{Expect, Key, Purpose, Put, Reason, Store, StoreError, Version, Write};
use tenure_testkit::key;

use crate::database::{Database, open};
use crate::{fenced, install, refused, user};

#[tokio::test]
async fn a_token_is_stale_before_its_successor_has_written_anything() {
    let Some(database) = Database::on_shared("same_database") else { return };
    let mut client = install(&database).await;
    let tenure = Coordinator::connect(database.store()).await.unwrap();
    let request = || tenure.lease("billing/nightly").unwrap().without_witness();
    let fence = PostgresFence::new("orders").lease_here();

    let first = request().acquire().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    first.fenced(&fence).write(&transaction).await.unwrap();
    transaction.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();
    first.renew().await.expect("no renewal waits for the transaction");
    transaction.commit().await.unwrap();
    let stale = FencingToken::new(first.key().clone(), first.token()).unwrap();
    first.release().await.unwrap();

    // A released lease has no successor yet: the token is still the latest one.
    fenced(&mut client, &fence, &stale.to_string()).await.unwrap().rollback().await.unwrap();
    let second = request().acquire().await.unwrap();
    let error = refused(&mut client, &fence, &stale.to_string()).await;
    let FenceError::Stale { highest, .. } = &error else { panic!("{error}") };
    assert_eq!(*highest, second.token());
    let mark = database.sql("SELECT token FROM tenure.fence WHERE resource = 'orders'");
    assert_eq!(mark, stale.token().to_string(), "the successor has written nothing");
    // Without the look at the grant, it would have been admitted.
    fenced(&mut client, &PostgresFence::new("orders"), &stale.to_string()).await.unwrap();
    second.fenced(&fence.seal_on(&user(&database).await)).seal().await.unwrap();
    let error = refused(&mut client, &PostgresFence::new("orders"), &stale.to_string()).await;
    assert!(error.is_stale(), "{error}");
}

#[tokio::test]
async fn a_token_that_was_not_granted_here_is_refused() {
    let Some(database) = Database::on_shared("not_granted") else { return };
    let mut client = install(&database).await;
    let fence = PostgresFence::new("orders").lease_here();
    let missing = refused(&mut client, &fence, "billing=7").await;
    assert!(matches!(missing, FenceError::Refused { reason: Reason::Unsupported, .. }), "{missing}");
    assert!(missing.to_string().contains("\"tenure\".\"token\" of the leases"), "{missing}");

    granted(&database.store(), &key("billing"), 7).await;
    for (offered, expected) in [("billing=8", 7), ("payroll=7", 0)] {
        let error = refused(&mut client, &fence, offered).await;
        let FenceError::NotGranted { granted, .. } = &error else { panic!("{error}") };
        assert_eq!(granted.get(), expected);
        assert_eq!(tenure_core::Error::from(error).kind(), ErrorKind::Invalid);
    }
    assert!(refused(&mut client, &fence, "billing=6").await.is_stale());
    assert_eq!(database.sql("SELECT count(*) FROM tenure.fence"), "0");
    fenced(&mut client, &fence, "billing=7").await.unwrap().commit().await.unwrap();
}

#[tokio::test]
async fn the_leases_may_be_in_other_tables() {
    let Some(database) = Database::on_shared("other_tables") else { return };
    let mut client = user(&database).await;
    let builder = database.builder().schema("my locks").table("Jobs");
    let schema = FenceSchema::named("my \"fences\"").unwrap().with_leases_of(&builder).unwrap();
    schema.install(&client).await.unwrap();
    granted(&open(&builder), &key("billing"), 7).await;
    let fence = schema.fence("orders").lease_here();
    fenced(&mut client, &fence, "billing=7").await.unwrap().commit().await.unwrap();
    let error = refused(&mut client, &fence, "billing=8").await;
    assert!(matches!(error, FenceError::NotGranted { .. }), "{error}");
    assert_eq!(database.sql("SELECT token FROM \"my \"\"fences\"\"\".fence"), "7");
}

/// A renewal that waited for the transaction would never end here.
#[tokio::test]
async fn a_renewal_does_not_wait_for_a_fenced_transaction_and_a_grant_does() {
    let Some(database) = Database::on_shared("held_grant") else { return };
    let mut client = install(&database).await;
    let (store, job) = (database.store(), key("billing"));
    let version = granted(&store, &job, 7).await;
    let fence = PostgresFence::new("orders").lease_here();
    let transaction = fenced(&mut client, &fence, "billing=7").await.unwrap();
    transaction.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();

    let renewal = replace(&store, &job, &version, Purpose::Renewal);
    let version = applied(tokio::time::timeout(PATIENCE, renewal).await.expect("it does not wait"));
    // The grant waits for a second, fails without an effect, and may be tried again.
    let held = replace(&store, &job, &version, Purpose::Grant { token: 8 }).await;
    assert!(matches!(held, Err(StoreError::Throttled(_))), "{held:?}");
    transaction.commit().await.unwrap();
    assert_eq!(database.sql("SELECT token FROM tenure.token"), "7");
    applied(replace(&store, &job, &version, Purpose::Grant { token: 8 }).await);
    assert!(refused(&mut client, &fence, "billing=7").await.is_stale());
}

/// The contender keeps trying.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contender_is_granted_the_lease_after_the_transaction_of_the_earlier_holder_has_ended() {
    let Some(database) = Database::on_shared("taken_over") else { return };
    let mut client = install(&database).await;
    let tenure = Coordinator::connect(database.store()).await.unwrap();
    let request = || tenure.lease("billing").unwrap().without_witness();
    let fence = PostgresFence::new("orders").lease_here();
    let first = request().acquire().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    first.fenced(&fence).write(&transaction).await.unwrap();
    transaction.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();
    first.release().await.unwrap();
    let contender = tokio::spawn(request().wait(Duration::from_secs(30)).acquire());
    // Longer than one attempt of a grant waits.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!contender.is_finished(), "the grant waits for the transaction");
    transaction.commit().await.unwrap();
    let second = contender.await.unwrap().unwrap();
    assert!(second.token() > first.token());
    assert_eq!(database.sql("SELECT count(*) FROM orders"), "1", "it was committed before the grant");
}

async fn replace(
    store: &Postgres,
    key: &Key,
    version: &Version,
    purpose: Purpose,
) -> Result<Put, StoreError> {
    store.write(key, Write::new("next", Expect::Version(version.clone())).for_purpose(purpose)).await
}

/// Creates a record with a grant.
async fn granted(store: &Postgres, key: &Key, token: u64) -> Version {
    let write = Write::new("first", Expect::Absent).for_purpose(Purpose::Grant { token });
    applied(store.write(key, write).await)
}

#[track_caller]
fn applied(put: Result<Put, StoreError>) -> Version {
    match put {
        Ok(Put::Applied(applied)) => applied.version,
        other => panic!("{other:?}"),
    }
}

/// Bounds a wait that must not happen.
const PATIENCE: Duration = Duration::from_secs(20);
