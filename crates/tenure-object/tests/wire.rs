//! Results of calls for events on the wire, with the complete client in between.

mod scripted;

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use scripted::{DATE, Reply, Scripted, answer, error};
use tenure::clock::{BootClock, Clock};
use tenure_object::Environment;
use tenure_store::{
    Conflict, Expect, Key, Prefix, Put, Reason, Store, StoreError, StoreTime, Throttled, Version,
};

fn key() -> Key {
    Key::parse("billing/nightly").unwrap()
}

fn version() -> Expect {
    Expect::Version(Version::new("\"v1\""))
}

/// The result of one write for one reply. In every case one request was sent.
async fn put(expect: Expect, reply: Reply) -> Result<Put, StoreError> {
    let server = Scripted::start([reply]).await;
    let store = server.store();
    let put = store.put(&key(), Bytes::from_static(b"value"), expect).await;
    assert_eq!(server.heads().len(), 1, "it was sent once");
    assert_eq!(store.requests().puts, 1);
    put
}

#[track_caller]
fn refused(answer: Result<Put, StoreError>, reason: Reason, part: &str) {
    match answer {
        Err(StoreError::Refused(refused)) => {
            assert_eq!(refused.reason, reason, "{refused}");
            assert!(refused.to_string().contains(part), "{refused}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_write_is_sent_with_its_condition_and_answered_with_its_version_and_time() {
    let server =
        Scripted::start([answer("200 OK", "ETag: \"v1\"\r\n", ""), answer("200 OK", "etag: \"v2\"\r\n", "")])
            .await;
    let store = server.store();
    for (expect, etag) in [(Expect::Absent, "\"v1\""), (version(), "\"v2\"")] {
        let Ok(Put::Applied(applied)) = store.put(&key(), Bytes::new(), expect).await else { panic!() };
        assert_eq!(applied.version.as_str(), etag, "as the server wrote it");
        assert_eq!(applied.time, Some(StoreTime::from_micros(1_794_744_996_000_000)));
    }
    let heads = server.heads();
    assert!(heads[0].starts_with("put /leases/locks/billing/nightly.record http/1.1"), "{}", heads[0]);
    assert!(heads[0].contains("\r\nif-none-match: *\r\n"), "{}", heads[0]);
    assert!(heads[1].contains("\r\nif-match: \"v1\"\r\n"), "{}", heads[1]);
    assert!(!heads.concat().contains("hush"));
}

#[tokio::test]
async fn servers_that_want_etags_without_quotes_get_them_so() {
    let server = Scripted::start([answer("200 OK", "etag: \"v2\"\r\n", "")]).await;
    let store = server.builder().bare_etags().open_in(&Environment::default()).unwrap();
    let Ok(Put::Applied(applied)) = store.put(&key(), Bytes::new(), version()).await else { panic!() };
    assert_eq!(applied.version.as_str(), "\"v2\"");
    assert!(server.heads()[0].contains("\r\nif-match: v1\r\n"), "{}", server.heads()[0]);
}

#[tokio::test]
async fn a_failed_condition_is_a_conflict_and_so_is_a_deleted_object() {
    for reply in [error("412 Precondition Failed", "PreconditionFailed"), answer("304 Not Modified", "", "")]
    {
        assert_eq!(put(Expect::Absent, reply.clone()).await.unwrap(), Put::Conflict(Conflict));
        assert_eq!(put(version(), reply).await.unwrap(), Put::Conflict(Conflict));
    }
    assert_eq!(put(version(), error("404 Not Found", "NoSuchKey")).await.unwrap(), Put::Conflict(Conflict));
    refused(
        put(version(), error("404 Not Found", "NoSuchBucket")).await,
        Reason::Invalid,
        "no bucket \"leases\"",
    );
}

#[tokio::test]
async fn a_received_status_counts_though_the_body_was_cut_off() {
    let cut =
        |status: &str| Reply::SendAndCut(format!("HTTP/1.1 {status}\r\ncontent-length: 300\r\n\r\n<Error>"));
    assert_eq!(put(version(), cut("412 Precondition Failed")).await.unwrap(), Put::Conflict(Conflict));
    assert!(matches!(put(version(), cut("500 Oops")).await, Err(StoreError::Unknown(_))));
    let done =
        Reply::SendAndCut(format!("HTTP/1.1 200 OK\r\n{DATE}etag: \"v2\"\r\ncontent-length: 9\r\n\r\n"));
    assert!(matches!(put(version(), done).await, Ok(Put::Applied(_))));
}

#[tokio::test]
async fn without_a_clear_answer_the_outcome_is_unknown() {
    let replies = [
        Reply::SendAndCut(String::new()),
        Reply::SendAndCut("HTTP/1.1 20".to_owned()),
        error("409 Conflict", "ConditionalRequestConflict"),
        error("500 Internal Server Error", "InternalError"),
        error("503 Service Unavailable", "ServiceUnavailable"),
        answer("200 OK", "", ""),
    ];
    for reply in replies {
        for expect in [Expect::Absent, version()] {
            let answer = put(expect, reply.clone()).await;
            assert!(matches!(answer, Err(StoreError::Unknown(_))), "{reply:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_store_that_asks_for_patience_is_not_a_lost_write() {
    let slow =
        Reply::Send("HTTP/1.1 429 Too Many Requests\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n".into());
    let after = Some(Duration::from_secs(3));
    assert!(
        matches!(put(version(), slow).await, Err(StoreError::Throttled(Throttled { after: a, .. })) if a == after)
    );
    let slow = error("503 Slow Down", "SlowDown");
    assert!(matches!(put(version(), slow).await, Err(StoreError::Throttled(Throttled { after: None, .. }))));
}

#[tokio::test]
async fn only_a_request_that_was_not_sent_is_unreachable() {
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let store = tenure_object::S3::builder("leases").endpoint(&format!("http://{closed}")).keys("id", "hush");
    let store = store.open_in(&Environment::default()).unwrap();
    refused(store.put(&key(), Bytes::new(), version()).await, Reason::Unreachable, "Connection refused");
}

#[tokio::test]
async fn unsupported_and_denied_calls_are_refused_with_the_next_step() {
    refused(
        put(Expect::Absent, error("501 No", "NotImplemented")).await,
        Reason::Unsupported,
        "conditional writes",
    );
    refused(
        put(Expect::Absent, error("400 No", "InvalidArgument")).await,
        Reason::Unsupported,
        "conditional writes",
    );
    refused(put(Expect::Absent, error("403 No", "AccessDenied")).await, Reason::Denied, "s3:PutObject");
    refused(
        put(Expect::Absent, error("403 No", "RequestTimeTooSkewed")).await,
        Reason::Denied,
        "this machine's clock is",
    );
    let moved = answer("301 Moved Permanently", "x-amz-bucket-region: eu-west-1\r\n", "");
    refused(put(Expect::Absent, moved).await, Reason::Invalid, "region=eu-west-1");
}

/// If the client followed it, it would become a read, whose success and ETag would count as those of the write.
#[tokio::test]
async fn no_redirect_is_followed() {
    for status in ["301 A", "302 B", "303 C", "307 D", "308 E"] {
        let elsewhere = answer(status, "location: /leases/other\r\n", "");
        assert!(matches!(put(version(), elsewhere).await, Err(StoreError::Refused(_))), "{status}");
    }
}

#[tokio::test]
async fn a_read_returns_the_value_or_its_absence() {
    let modified = "last-modified: Sun, 15 Nov 2026 12:16:36 GMT\r\n";
    let server = Scripted::start([
        answer("200 OK", &format!("etag: \"v7\"\r\n{modified}"), "value"),
        error("404 Not Found", "NoSuchKey"),
        answer("404 Not Found", "", "<html>no such page</html>"),
        Reply::SendAndCut(format!(
            "HTTP/1.1 200 OK\r\n{DATE}{modified}etag: \"v7\"\r\ncontent-length: 5\r\n\r\nval"
        )),
        Reply::Send(format!(
            "HTTP/1.1 200 OK\r\n{modified}etag: \"v7\"\r\ncontent-length: 99999999\r\n\r\nval"
        )),
    ])
    .await;
    let store = server.store();
    let there = store.get(&key()).await.unwrap();
    let entry = there.entry.unwrap();
    assert_eq!((entry.value.as_ref(), entry.version.as_str(), entry.age), (&b"value"[..], "\"v7\"", None));
    assert!(there.time.is_some());
    let missing = store.get(&key()).await.unwrap();
    assert!(missing.entry.is_none() && missing.time.is_some(), "whoever plants it has nothing else to go by");
    let foreign = store.get(&key()).await.unwrap_err().to_string();
    assert!(foreign.contains("does not speak S3"), "{foreign}");
    assert!(matches!(store.get(&key()).await, Err(StoreError::Unknown(_))), "half a value is none");
    assert!(matches!(store.get(&key()).await, Err(StoreError::Refused(_))), "no record has so many bytes");
    assert_eq!(store.requests().gets, 5);
}

#[tokio::test]
async fn a_second_read_is_conditional_and_an_unrequested_304_is_unknown() {
    let modified = "last-modified: Sun, 15 Nov 2026 12:16:36 GMT\r\n";
    let whole = answer("200 OK", &format!("etag: \"v7\"\r\n{modified}"), "value");
    let unchanged = answer("304 Not Modified", "etag: \"v7\"\r\n", "");
    let other = answer("304 Not Modified", "etag: \"v8\"\r\n", "");
    let script = [unchanged.clone(), whole.clone(), unchanged.clone(), other, unchanged, whole];
    let server = Scripted::start(script).await;
    let store = server.builder().bare_etags().open_in(&Environment::default()).unwrap();
    assert!(matches!(store.get(&key()).await, Err(StoreError::Unknown(_))), "nobody asked what has changed");
    let first = store.get(&key()).await.unwrap();
    assert_eq!(store.get(&key()).await.unwrap(), first);
    assert!(
        matches!(store.get(&key()).await, Err(StoreError::Unknown(_))),
        "another version than was asked for"
    );
    assert!(matches!(store.get(&key()).await, Err(StoreError::Unknown(_))), "nobody asked this time");
    assert_eq!(store.get(&key()).await.unwrap(), first);
    let conditions: Vec<bool> =
        server.heads().iter().map(|head| head.contains("\r\nif-none-match: v7\r\n")).collect();
    assert_eq!(conditions, [false, false, true, true, false, false]);
}

#[tokio::test]
async fn a_listing_follows_all_pages_and_skips_foreign_objects() {
    let object = |name: &str| {
        format!(
            "<Contents><Key>{name}</Key><LastModified>2026-11-15T12:16:36.000Z</LastModified><ETag>\"x\"</ETag>\
             <Size>1</Size></Contents>"
        )
    };
    let page = |objects: String, next: &str| {
        answer("200 OK", "", &format!("<ListBucketResult>{objects}{next}</ListBucketResult>"))
    };
    let first =
        object("locks/jobs.record") + &object("locks/jobs/readme.txt") + &object("locks/jobs-old.record");
    let server = Scripted::start([
        page(first, "<NextContinuationToken>t 1</NextContinuationToken>"),
        page(object("locks/jobs/a &amp; b.record"), ""),
        error("403 Forbidden", "AccessDenied"),
    ])
    .await;
    let store = server.store();
    let jobs = Prefix::parse("jobs").unwrap();
    let keys: Vec<_> = store.list(&jobs).map(|key| key.unwrap().to_string()).collect().await;
    assert_eq!(keys, ["jobs", "jobs/a & b"]);
    let heads = server.heads();
    assert!(heads[0].starts_with("get /leases?list-type=2&prefix=locks%2fjobs http/1.1"), "{}", heads[0]);
    assert!(
        heads[1].contains("continuation-token=t%201") || heads[1].contains("continuation-token=t+1"),
        "{}",
        heads[1]
    );
    let denied: Vec<_> = store.list(&jobs).collect().await;
    assert_eq!(denied.len(), 1, "an error ends it");
    assert!(denied[0].as_ref().unwrap_err().to_string().contains("s3:ListBucket"));
    assert_eq!(store.requests().lists, 3);
}

#[tokio::test]
async fn a_listing_that_repeats_its_continuation_token_ends_with_an_error() {
    let next = "<NextContinuationToken>again</NextContinuationToken>";
    let page = answer("200 OK", "", &format!("<ListBucketResult>{next}</ListBucketResult>"));
    let server = Scripted::start(vec![page; 5]).await;
    let listed: Vec<_> = server.store().list(&Prefix::all()).collect().await;
    let [Err(StoreError::Unknown(error))] = &listed[..] else { panic!("{listed:?}") };
    assert!(error.to_string().contains("returned the same page again"), "{error}");
    assert_eq!(server.heads().len(), 2, "the second page repeats the token, and no third is asked for");
}

/// A server may close it at the moment of its reuse, and then it is unknown whether the server read the call.
#[tokio::test]
async fn a_connection_that_was_idle_for_long_is_not_used_again() {
    let applied = answer("200 OK", "etag: \"v2\"\r\n", "");
    let server = Scripted::start([applied.clone(), applied.clone(), applied]).await;
    let store = server.store();
    assert!(store.put(&key(), Bytes::new(), version()).await.is_ok());
    for connections in [2, 3] {
        BootClock.sleep_until(BootClock.now() + Duration::from_millis(1500)).await;
        assert!(store.put(&key(), Bytes::new(), version()).await.is_ok());
        assert_eq!(server.connections(), connections);
    }
}

#[tokio::test]
async fn a_server_that_refuses_to_replace_the_version_it_shows_needs_another_form_of_etags() {
    let turn = [
        error("412 Precondition Failed", "PreconditionFailed"),
        answer("200 OK", "etag: \"v1\"\r\nlast-modified: Sun, 15 Nov 2026 12:16:36 GMT\r\n", "body"),
    ];
    for (bare, part) in [(false, "write etags=bare in the URL"), (true, "take etags=bare out of the URL")] {
        let server = Scripted::start([turn.clone(), turn.clone(), turn.clone()].concat()).await;
        let builder = if bare { server.builder().bare_etags() } else { server.builder() };
        let store = builder.open_in(&Environment::default()).unwrap();
        let mut shown = Vec::new();
        for _ in 0..3 {
            assert!(matches!(store.put(&key(), Bytes::new(), version()).await, Ok(Put::Conflict(_))));
            shown.push(store.get(&key()).await);
        }
        let last = shown.pop().unwrap();
        assert!(shown.iter().all(Result::is_ok), "{shown:?}");
        let Err(StoreError::Refused(refused)) = last else { panic!("{last:?}") };
        assert_eq!(refused.reason, Reason::Unsupported);
        assert!(refused.to_string().contains(part), "{refused}");
    }
}
