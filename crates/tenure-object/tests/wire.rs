//! Results of calls for events on the wire, with the complete client in between.

mod scripted;

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use jiff::Timestamp;
use scripted::{Reply, Scripted, answer, date, date_at, error, http_date};
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
        let now = Timestamp::now().as_second();
        let time = applied.time.map(StoreTime::as_micros).unwrap() / 1_000_000;
        assert!((now - 60..=now).contains(&(time as i64)), "{time} s, at {now} s");
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
        Reason::Missing,
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
        Reply::SendAndCut(format!("HTTP/1.1 200 OK\r\n{}etag: \"v2\"\r\ncontent-length: 9\r\n\r\n", date()));
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

/// The client library reports it as a timeout, like that of a request that was sent.
#[tokio::test]
async fn a_connection_that_is_not_made_in_time_is_unreachable_too() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // The kernel does not complete further connections until the server accepts these.
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        let mut connecting = Box::pin(socket.connect(address));
        let _ = futures_util::poll!(&mut connecting);
        waiting.push(connecting);
    }
    let store =
        tenure_object::S3::builder("leases").endpoint(&format!("http://{address}")).keys("id", "hush");
    let store = store.open_in(&Environment::default()).unwrap();
    let write = store.put(&key(), Bytes::new(), version()).await;
    refused(write, Reason::Unreachable, "could not be reached");
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
    refused(put(Expect::Absent, moved).await, Reason::Missing, "region=eu-west-1");
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
            "HTTP/1.1 200 OK\r\n{}{modified}etag: \"v7\"\r\ncontent-length: 5\r\n\r\nval",
            date()
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
    assert!(missing.entry.is_none() && missing.time.is_some(), "a planted record has no other time");
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
    assert!(matches!(store.get(&key()).await, Err(StoreError::Unknown(_))), "the read had no condition");
    let first = store.get(&key()).await.unwrap();
    assert_eq!(store.get(&key()).await.unwrap(), first);
    assert!(
        matches!(store.get(&key()).await, Err(StoreError::Unknown(_))),
        "another version than was asked for"
    );
    assert!(matches!(store.get(&key()).await, Err(StoreError::Unknown(_))), "this read had no condition");
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

/// Such an answer comes from a load balancer, or from a server that is starting.
#[tokio::test]
async fn a_404_without_the_code_of_a_missing_object_says_nothing_about_it() {
    for (headers, body) in [
        ("", ""),
        ("", "<html>no such page</html>"),
        ("", "<Error><Code>NoSuchVersion</Code></Error>"),
        ("", "<Error><Code>NoSuchUpload</Code></Error>"),
    ] {
        let reply = answer("404 Not Found", headers, body);
        let server = Scripted::start([reply.clone()]).await;
        let read = server.store().get(&key()).await;
        assert!(matches!(read, Err(StoreError::Unknown(_))), "{body}: {read:?}");
        for expect in [Expect::Absent, version()] {
            let write = put(expect, reply.clone()).await;
            assert!(matches!(write, Err(StoreError::Unknown(_))), "{body}: {write:?}");
        }
    }
    let cut = "HTTP/1.1 404 Not Found\r\ncontent-length: 300\r\n\r\n<Error><Code>NoSuchKey</Code>";
    let write = put(version(), Reply::SendAndCut(cut.to_owned())).await;
    assert!(matches!(write, Err(StoreError::Unknown(_))), "{write:?}");
}

#[tokio::test]
async fn throttling_is_known_by_its_code_whatever_its_status() {
    for (status, code) in [
        ("400 Bad Request", "ThrottlingException"),
        ("400 Bad Request", "KMS.ThrottlingException"),
        ("403 Forbidden", "SlowDown"),
        ("503 Service Unavailable", "BandwidthThrottled"),
    ] {
        let write = put(version(), error(status, code)).await;
        assert!(matches!(write, Err(StoreError::Throttled(_))), "{status} {code}: {write:?}");
    }
    let key = put(version(), error("400 Bad Request", "KMS.DisabledException")).await;
    refused(key, Reason::Denied, "the key that encrypts the bucket");
    let server = Scripted::start([error("403 Forbidden", "InvalidObjectState")]).await;
    let archived = server.store().get(&Key::parse("k").unwrap()).await.unwrap_err().to_string();
    assert!(archived.contains("archived") && !archived.contains("s3:GetObject"), "{archived}");
}

#[tokio::test]
async fn an_answer_of_a_cache_is_refused_by_name() {
    let modified = format!("last-modified: {}\r\n", http_date(Timestamp::now()));
    let fresh = answer("200 OK", &format!("etag: \"v7\"\r\nage: 0\r\n{modified}"), "value");
    let cached = answer("200 OK", &format!("etag: \"v7\"\r\nage: 7\r\n{modified}"), "value");
    let unchanged = answer("304 Not Modified", "etag: \"v7\"\r\nage: 3\r\n", "");
    let server = Scripted::start([cached.clone(), fresh, unchanged, cached]).await;
    let store = server.store();
    let read = store.get(&key()).await.unwrap_err().to_string();
    assert!(read.contains("a cache on the way answered, with a state that is 7 s old"), "{read}");
    assert!(store.get(&key()).await.is_ok());
    let read = store.get(&key()).await.unwrap_err().to_string();
    assert!(read.contains("3 s old"), "{read}");
    let write = store.put(&key(), Bytes::new(), version()).await;
    assert!(matches!(write, Err(StoreError::Unknown(_))), "{write:?}");
    assert!(server.heads().iter().all(|head| head.contains("\r\ncache-control: no-cache\r\n")));
}

/// A token that is made from such a time stays above every later one.
#[tokio::test]
async fn a_date_far_from_the_time_of_the_signature_is_not_believed() {
    let hours = |hours: i64| Timestamp::now() + jiff::SignedDuration::from_hours(hours);
    let year_2199 = "2199-06-01T00:00:00Z".parse().unwrap();
    let whole = |date: String| {
        let modified = format!("last-modified: {}\r\n", http_date(Timestamp::now()));
        Reply::Send(format!(
            "HTTP/1.1 200 OK\r\n{date}{modified}etag: \"v7\"\r\ncontent-length: 5\r\n\r\nvalue"
        ))
    };
    for (date, part) in [
        (date_at(year_2199), "is dated 2199-06-01"),
        (date_at(hours(1)), "but it accepted a request that was signed at 20"),
        (date_at(hours(-1)), "but it accepted a request that was signed at 20"),
        (date_at("1970-01-01T00:00:09Z".parse().unwrap()), "its clock was never set"),
        (String::new(), "no Date that can be read"),
        ("date: yesterday\r\n".to_owned(), "no Date that can be read"),
    ] {
        let server = Scripted::start([whole(date.clone()), whole(date)]).await;
        let store = server.store();
        let read = store.get(&key()).await.unwrap_err();
        assert!(matches!(read, StoreError::Unknown(_)) && read.to_string().contains(part), "{read}");
        let Ok(Put::Applied(applied)) = store.put(&key(), Bytes::new(), version()).await else { panic!() };
        assert_eq!(applied.time, None, "the write counts, and its time does not");
    }
}

/// An object that was written again with equal bytes has the same ETag, and is younger.
#[tokio::test]
async fn an_age_needs_the_time_of_the_last_write_in_the_same_answer() {
    let minute_ago = http_date(Timestamp::now() - jiff::SignedDuration::from_secs(60));
    let now = http_date(Timestamp::now());
    let server = Scripted::start([
        answer("200 OK", &format!("etag: \"v7\"\r\nlast-modified: {minute_ago}\r\n"), "value"),
        answer("304 Not Modified", "etag: \"v7\"\r\n", ""),
        answer("304 Not Modified", &format!("etag: \"v7\"\r\nlast-modified: {now}\r\n"), ""),
    ])
    .await;
    let store = server.builder().accept_server_clock().open_in(&Environment::default()).unwrap();
    let mut ages = Vec::new();
    for _ in 0..3 {
        ages.push(store.get(&key()).await.unwrap().entry.unwrap().age);
    }
    assert!(ages[0] >= Some(Duration::from_secs(59)), "{ages:?}");
    assert!(ages[1].is_none() && ages[2] < Some(Duration::from_secs(30)), "{ages:?}");
}

#[tokio::test]
async fn a_retention_rule_that_is_added_later_costs_no_holder_of_a_slot_its_lease() {
    let locked = || answer("200 OK", "ETag: \"v1\"\r\nx-amz-object-lock-mode: GOVERNANCE\r\n", "value");
    let group = Key::parse("gpu").unwrap();
    for (key, is_refused) in [
        (Key::scratch(), true),
        (key(), false),
        (Key::group_size(&group).unwrap(), false),
        (Key::group_slot(&group, 0).unwrap(), false),
    ] {
        let server = Scripted::start([locked()]).await;
        assert_eq!(server.store().get(&key).await.is_err(), is_refused, "{key}");
    }
}
