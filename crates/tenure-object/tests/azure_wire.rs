//! Requests to Azure Blob Storage, and answers that no real server gives on demand.

mod scripted;

use bytes::Bytes;
use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use scripted::{Reply, Scripted, answer, date, date_at, error};
use tenure_object::{Azure, AzureBuilder, Environment};
use tenure_store::{Conflict, Expect, Key, Prefix, Put, Reason, Store, StoreError, Version};
use tenure_testkit::key;

fn builder(server: &Scripted) -> AzureBuilder {
    Azure::builder("leases").prefix("locks").account("acme").endpoint(&server.endpoint())
}

fn store(server: &Scripted) -> Azure {
    builder(server).access_key("aHVzaA==").open_in(&Environment::default()).unwrap()
}

/// An error as Azure sends it: the code is also in a header.
fn azure_error(status: &str, code: &str) -> Reply {
    let body = format!(
        "\u{feff}<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>Told so.\nRequestId:17A\nTime:2026-11-16T00:00:00Z</Message></Error>"
    );
    answer(status, &format!("x-ms-error-code: {code}\r\nx-ms-request-id: 17A\r\n"), &body)
}

fn version() -> Expect {
    Expect::Version(Version::new("\"0x1\""))
}

/// The result of one write for one reply. In every case one request was sent.
async fn put(expect: Expect, reply: Reply) -> Result<Put, StoreError> {
    let server = Scripted::start([reply]).await;
    let put = store(&server).put(&key("a/b"), Bytes::from_static(b"value"), expect).await;
    assert_eq!(server.heads().len(), 1, "it was sent once");
    put
}

#[tokio::test]
async fn a_write_is_sent_with_its_condition_to_the_blob_of_the_account() {
    let done = |etag: &str| answer("201 Created", &format!("etag: \"{etag}\"\r\n"), "");
    let server = Scripted::start([done("0x1"), done("0x2")]).await;
    let store = store(&server);
    for (expect, etag) in [(Expect::Absent, "\"0x1\""), (version(), "\"0x2\"")] {
        let Ok(Put::Applied(applied)) = store.put(&key("a/b"), Bytes::new(), expect).await else { panic!() };
        assert_eq!(applied.version.as_str(), etag);
        assert!(applied.time.is_some());
    }
    let heads = server.heads();
    assert!(heads[0].starts_with("put /acme/leases/locks/a/b.record http/1.1"), "{}", heads[0]);
    assert!(heads[0].contains("\r\nif-none-match: *\r\n"), "{}", heads[0]);
    assert!(heads[1].contains("\r\nif-match: \"0x1\"\r\n"), "{}", heads[1]);
    assert!(heads[1].contains("\r\nauthorization: sharedkey acme:"), "{}", heads[1]);
    assert!(!heads.concat().contains("ahvza"), "the key is never sent");
}

#[tokio::test]
async fn an_existing_blob_and_a_stale_version_are_conflicts() {
    let exists = azure_error("409 Conflict", "BlobAlreadyExists");
    assert_eq!(put(Expect::Absent, exists).await.unwrap(), Put::Conflict(Conflict));
    let stale = azure_error("412 Precondition Failed", "ConditionNotMet");
    assert_eq!(put(Expect::Absent, stale.clone()).await.unwrap(), Put::Conflict(Conflict));
    assert_eq!(put(version(), stale).await.unwrap(), Put::Conflict(Conflict));
    let deleted = azure_error("404 Not Found", "BlobNotFound");
    assert_eq!(put(version(), deleted).await.unwrap(), Put::Conflict(Conflict));
    // The code in the header counts, even if the body was cut off.
    let cut = Reply::SendAndCut(format!(
        "HTTP/1.1 412 Precondition Failed\r\n{}x-ms-error-code: ConditionNotMet\r\ncontent-length: 300\r\n\r\n<Er",
        date()
    ));
    assert_eq!(put(version(), cut).await.unwrap(), Put::Conflict(Conflict));
}

#[tokio::test]
async fn what_is_not_certainly_a_conflict_is_not_one() {
    for reply in [
        answer("412 Precondition Failed", "", ""),
        azure_error("409 Conflict", "PendingCopyOperation"),
        azure_error("500 Internal Server Error", "OperationTimedOut"),
        error("404 Not Found", "ResourceNotFound"),
    ] {
        let answer = put(version(), reply.clone()).await;
        assert!(matches!(answer, Err(StoreError::Unknown(_))), "{reply:?}: {answer:?}");
    }
    let busy = put(version(), azure_error("503 Busy", "ServerBusy")).await;
    assert!(matches!(busy, Err(StoreError::Throttled(_))), "{busy:?}");
    let Err(StoreError::Refused(leased)) = put(version(), azure_error("412 No", "LeaseIdMissing")).await
    else {
        panic!("a native lease is no conflict")
    };
    assert_eq!(leased.reason, Reason::Denied);
    let sentence = leased.to_string();
    assert!(sentence.contains("break that lease"), "{sentence}");
    assert!(sentence.ends_with("(it answered 412 LeaseIdMissing: Told so, request 17A)"), "{sentence}");
}

/// A SAS token ties no clocks: one front end with a wrong clock must not move the tokens into the far future.
#[tokio::test]
async fn a_date_that_does_not_fit_the_earlier_ones_is_believed_when_a_second_answer_agrees() {
    let at = |time: Timestamp| {
        let head = date_at(time);
        Reply::Send(format!(
            "HTTP/1.1 404 No\r\n{head}x-ms-error-code: BlobNotFound\r\ncontent-length: 0\r\n\r\n"
        ))
    };
    let now = Timestamp::now();
    let far = now + SignedDuration::from_hours(24 * 365 * 100);
    let server = Scripted::start([at(now), at(far), at(now), at(far), at(far), at(now)]).await;
    let store = builder(&server).sas_token("sv=1&sig=hush").open_in(&Environment::default()).unwrap();
    for (number, is_believed) in [true, false, true, false, true, false].into_iter().enumerate() {
        match store.get(&key("k")).await {
            Ok(reading) => assert!(is_believed && reading.time.is_some(), "{number}"),
            Err(error) => {
                let sentence = error.to_string();
                assert!(
                    !is_believed && sentence.contains("until a second answer agrees"),
                    "{number}: {sentence}"
                );
            }
        }
    }
    assert!(server.heads().iter().all(|head| head.contains("sig=hush")));
}

/// A SAS token is a part of every address.
#[tokio::test]
async fn no_error_repeats_a_sas_token() {
    let broken_list = answer("200 OK", "", "<EnumerationResults");
    let replies = [
        Reply::SendAndCut(String::new()),
        azure_error("500 Oops", "InternalError"),
        answer("200 OK", "etag: \"0x1\"\r\n", "no time of the write"),
        Reply::SendAndCut(format!(
            "HTTP/1.1 200 OK\r\n{}etag: \"0x1\"\r\nlast-modified: Sun, 15 Nov 2026 12:00:00 GMT\r\ncontent-length: 9\r\n\r\n<",
            date()
        )),
    ];
    let mut errors = Vec::new();
    for reply in replies {
        let server = Scripted::start([reply.clone(), reply.clone(), reply]).await;
        let store = builder(&server).sas_token("sv=1&sig=hush").open_in(&Environment::default()).unwrap();
        errors.extend(store.get(&key("k")).await.err());
        errors.extend(store.put(&key("k"), Bytes::new(), Expect::Absent).await.err());
        errors.extend(
            store.scratch().unwrap().sweep(&Key::from_stored(".tenure/probe/1/a").unwrap()).await.err(),
        );
    }
    let server = Scripted::start([broken_list]).await;
    let store = builder(&server).sas_token("sv=1&sig=hush").open_in(&Environment::default()).unwrap();
    let everything = Prefix::all();
    errors.extend(store.list(&everything).next().await.and_then(Result::err));
    assert!(errors.len() >= 8, "{errors:?}");
    for error in errors {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hush"), "{shown}");
    }
}
