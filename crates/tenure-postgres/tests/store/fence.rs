//! The row of a token, which transactions of users lock.

use std::time::{Duration, Instant};

use tenure_store::{Expect, Purpose, Put, Store, StoreError, Write};
use tenure_testkit::key;
use tokio_postgres::{Client, NoTls};

use crate::database::Database;
use crate::{applied, create, replace};

/// A connection of a user, beside the store.
pub(crate) async fn user(database: &Database) -> Client {
    try_user(database).await.expect("the server has a connection left")
}

/// The same; `None` if the server refuses it.
pub(crate) async fn try_user(database: &Database) -> Option<Client> {
    let address = database.server().address();
    let settings =
        format!("host={} port={} user=postgres dbname={}", address.ip(), address.port(), database.name());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.ok()?;
    tokio::spawn(connection);
    Some(client)
}

#[tokio::test]
async fn only_a_grant_writes_the_token_and_in_the_same_statement() {
    let Some(database) = Database::on_shared("tokens") else { return };
    let (store, key) = (database.store(), key("job"));
    let tokens = || database.sql("SELECT key, token FROM tenure.token");
    let version = create(&store, &key).await;
    let version = applied(replace(&store, &key, &version, Purpose::Change).await);
    assert_eq!(tokens(), "");
    let version = applied(replace(&store, &key, &version, Purpose::Grant { token: 7 }).await);
    assert_eq!(tokens(), "job|7");
    let written = "SELECT xmin FROM tenure.record UNION SELECT xmin FROM tenure.token";
    assert_eq!(database.sql(written).lines().count(), 1, "one transaction wrote both");
    let old = version.clone();
    let version = applied(replace(&store, &key, &version, Purpose::Renewal).await);
    let version = applied(replace(&store, &key, &version, Purpose::Release).await);
    assert_eq!(tokens(), "job|7");
    let late = replace(&store, &key, &old, Purpose::Grant { token: 8 }).await;
    assert!(matches!(late, Ok(Put::Conflict(_))), "{late:?}");
    assert_eq!(tokens(), "job|7", "a grant that is not applied leaves the token");

    // Tokens never go back, even if the records were restored without the tokens.
    let back = crate::refusal(replace(&store, &key, &version, Purpose::Grant { token: 7 }).await);
    assert!(back.contains("job was granted with token 7 before, and would now get 7"), "{back}");
    applied(replace(&store, &key, &version, Purpose::Grant { token: 9 }).await);
    assert_eq!(tokens(), "job|9");

    // A grant that creates its record does the same.
    database.sql("DELETE FROM tenure.record");
    let grant = |token| Write::new("first", Expect::Absent).for_purpose(Purpose::Grant { token });
    let back = crate::refusal(store.write(&key, grant(9)).await);
    assert!(back.contains("would now get 9"), "{back}");
    applied(store.write(&key, grant(10)).await);
    assert_eq!(tokens(), "job|10");
    let second = store.write(&key, grant(11)).await;
    assert!(matches!(second, Ok(Put::Conflict(_))), "{second:?}");
}

#[tokio::test]
async fn while_a_user_holds_the_token_no_renewal_waits_and_a_grant_waits_and_says_why() {
    let Some(database) = Database::on_shared("held_token") else { return };
    let (store, job, other) = (database.store(), key("job"), key("other"));
    let version = create(&store, &job).await;
    let version = applied(replace(&store, &job, &version, Purpose::Grant { token: 7 }).await);
    let beside = create(&store, &other).await;
    let user = user(&database).await;
    user.batch_execute("BEGIN; SELECT FROM tenure.token WHERE key = 'job' AND token = 7 FOR SHARE")
        .await
        .unwrap();

    let began = Instant::now();
    let version = applied(replace(&store, &job, &version, Purpose::Renewal).await);
    assert!(began.elapsed() < SOON, "the renewal waited for {:?}", began.elapsed());

    let waiting = {
        let (store, job, version) = (store.clone(), job.clone(), version.clone());
        tokio::spawn(async move { replace(&store, &job, &version, Purpose::Grant { token: 8 }).await })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished(), "the grant waits for the user");
    let began = Instant::now();
    applied(replace(&store, &other, &beside, Purpose::Renewal).await);
    store.get(&job).await.unwrap();
    assert!(began.elapsed() < SOON, "calls waited behind a grant for {:?}", began.elapsed());
    let answer = waiting.await.unwrap();
    let Err(StoreError::Throttled(held)) = answer else { panic!("{answer:?}") };
    assert!(held.cause.unwrap().contains("a transaction that checked the token of this lease is still open"));

    // The holder renews also while a grant waits for the token.
    let waiting = {
        let (store, job, version) = (store.clone(), job.clone(), version.clone());
        tokio::spawn(async move { replace(&store, &job, &version, Purpose::Grant { token: 8 }).await })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    let began = Instant::now();
    let version = applied(replace(&store, &job, &version, Purpose::Renewal).await);
    assert!(began.elapsed() < SOON, "the renewal waited behind a grant for {:?}", began.elapsed());
    user.batch_execute("COMMIT").await.unwrap();
    let answer = waiting.await.unwrap();
    assert!(matches!(answer, Ok(Put::Conflict(_))), "it was renewed: {answer:?}");
    applied(replace(&store, &job, &version, Purpose::Grant { token: 8 }).await);
}

/// Much less than a grant waits.
const SOON: Duration = Duration::from_millis(700);
