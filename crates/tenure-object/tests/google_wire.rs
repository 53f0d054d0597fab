//! Requests to Google's XML API, and answers that no real server gives on demand.

mod scripted;

use bytes::Bytes;
use scripted::{Reply, Scripted, answer, error};
use tenure_object::{Environment, Google};
use tenure_store::{Expect, Put, Reason, Store, StoreError, Version};
use tenure_testkit::key;

fn store(server: &Scripted) -> Google {
    let builder = Google::builder("leases").prefix("locks").endpoint(&server.endpoint()).token("let-me-in");
    builder.open_in(&Environment::default()).unwrap()
}

/// The answer to a write or a read of this generation.
fn generation(number: u64, value: &str) -> Reply {
    let headers = format!(
        "etag: \"e\"\r\nx-goog-generation: {number}\r\nlast-modified: Sun, 15 Nov 2026 12:00:00 GMT\r\n"
    );
    answer("200 OK", &headers, value)
}

fn unchanged(generation: &str) -> Reply {
    answer("304 Not Modified", &format!("etag: \"e\"\r\n{generation}"), "")
}

#[tokio::test]
async fn a_condition_is_a_generation_and_a_read_again_names_the_etag() {
    let server = Scripted::start([
        generation(7, ""),
        generation(8, ""),
        generation(8, "two"),
        unchanged("x-goog-generation: 8\r\n"),
        error("412 Precondition Failed", "PreconditionFailed"),
    ])
    .await;
    let (store, key) = (store(&server), key("a/b"));
    let Ok(Put::Applied(applied)) = store.put(&key, "one".into(), Expect::Absent).await else { panic!() };
    assert_eq!(applied.version, Version::new("7"));
    let Ok(Put::Applied(applied)) = store.put(&key, "two".into(), Expect::Version(applied.version)).await
    else {
        panic!()
    };
    for _ in 0..2 {
        let entry = store.get(&key).await.unwrap().entry.unwrap();
        assert_eq!((entry.value, entry.version), (Bytes::from("two"), Version::new("8")));
    }
    let lost = store.put(&key, "three".into(), Expect::Version(applied.version)).await;
    assert!(matches!(lost, Ok(Put::Conflict(_))), "{lost:?}");
    let heads = server.heads();
    let sent = |number: usize, line: &str| {
        assert!(heads[number].lines().any(|there| there == line), "{line}: {}", heads[number]);
    };
    for head in &heads {
        assert!(head.contains(" /leases/locks%2fa%2fb%2erecord http"), "{head}");
        assert!(head.contains("authorization: bearer let-me-in"), "{head}");
        assert!(
            head.contains("cache-control: no-cache"),
            "for a read, and as the metadata of the object: {head}"
        );
    }
    sent(0, "x-goog-if-generation-match: 0");
    sent(1, "x-goog-if-generation-match: 7");
    assert!(!heads[2].contains("if-none-match"), "the first read after a write is complete: {}", heads[2]);
    sent(3, "if-none-match: \"e\"");
    sent(4, "x-goog-if-generation-match: 8");
}

/// Equal bytes have equal ETags, so a restored object looks unchanged. Its generation is another one.
#[tokio::test]
async fn an_unchanged_etag_with_another_generation_is_not_the_known_version() {
    let server = Scripted::start([
        generation(7, "one"),
        unchanged("x-goog-generation: 9\r\n"),
        generation(9, "one"),
        unchanged(""),
    ])
    .await;
    let (store, key) = (store(&server), key("k"));
    assert_eq!(store.get(&key).await.unwrap().entry.unwrap().version, Version::new("7"));
    let doubt = store.get(&key).await.unwrap_err();
    assert!(
        matches!(doubt, StoreError::Unknown(_)) && doubt.to_string().contains("another version"),
        "{doubt}"
    );
    assert_eq!(store.get(&key).await.unwrap().entry.unwrap().version, Version::new("9"));
    assert_eq!(
        store.get(&key).await.unwrap().entry.unwrap().version,
        Version::new("9"),
        "an answer without a generation is believed: a stale one is only ever a conflict"
    );
}

#[tokio::test]
async fn an_answer_without_a_generation_is_no_version() {
    let etag = "etag: \"e\"\r\nlast-modified: Sun, 15 Nov 2026 12:00:00 GMT\r\n";
    let zero = format!("{etag}x-goog-generation: 0\r\n");
    let server = Scripted::start([
        answer("200 OK", etag, ""),
        answer("200 OK", &zero, ""),
        answer("200 OK", etag, "value"),
    ])
    .await;
    let (store, key) = (store(&server), key("k"));
    for _ in 0..2 {
        let unknown = store.put(&key, "one".into(), Expect::Absent).await.unwrap_err();
        assert!(matches!(unknown, StoreError::Unknown(_)), "it was applied: {unknown}");
    }
    let Err(StoreError::Refused(refused)) = store.get(&key).await else { panic!() };
    assert_eq!(refused.reason, Reason::Unsupported);
    assert!(refused.to_string().contains("does not speak Google Cloud Storage"), "{refused}");
}

#[tokio::test]
async fn throttling_is_its_own_answer_and_says_nothing_about_the_lease() {
    let wait = answer("429 Too Many Requests", "retry-after: 2\r\n", "<Error><Code>SlowDown</Code></Error>");
    let server =
        Scripted::start([wait, error("503 Unavailable", "SlowDown"), error("429 Slow", "rateLimitExceeded")]);
    let store = store(&server.await);
    for seconds in [Some(2), None, None] {
        let throttled = store.put(&key("k"), "one".into(), Expect::Version(Version::new("7"))).await;
        let Err(StoreError::Throttled(throttled)) = throttled else { panic!("{throttled:?}") };
        assert_eq!(throttled.after.map(|wait| wait.as_secs()), seconds);
    }
}
