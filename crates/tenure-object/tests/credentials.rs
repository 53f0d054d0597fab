//! Fetched credentials, from servers on this machine that answer as the platforms do.

mod scripted;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use scripted::{Reply, Scripted, answer, date_at, error};
use tenure::clock::{BootClock, Clock};
use tenure_object::S3;
use tenure_object::{Environment, S3Builder};
use tenure_store::{Expect, Key, Put, Reason, Store, StoreError};
use tenure_testkit::Authority;

const FETCHED: &str = r#"{"AccessKeyId":"AKIAFETCHED","SecretAccessKey":"hush","Token":"passing","Expiration":"2099-01-01T00:00:00Z"}"#;

fn bucket(server: &Scripted) -> S3Builder {
    S3::builder("leases").endpoint(&server.endpoint())
}

async fn put(store: &S3) -> Result<Put, StoreError> {
    store.put(&Key::parse("k").unwrap(), Bytes::new(), Expect::Absent).await
}

fn applied() -> scripted::Reply {
    answer("200 OK", "etag: \"v1\"\r\n", "")
}

#[tokio::test]
async fn a_container_fetches_them_from_the_address_in_its_environment() {
    let server = Scripted::start([answer("200 OK", "", FETCHED), applied()]).await;
    let token = std::env::temp_dir().join(format!("tenure-object-token-{}", std::process::id()));
    std::fs::write(&token, "let-me-in").unwrap();
    let environment: Environment = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/credentials", server.endpoint())),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap().to_owned()),
    ]
    .into_iter()
    .collect();
    let store = bucket(&server).open_in(&environment).unwrap();
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    std::fs::remove_file(&token).unwrap();
    let heads = server.heads();
    assert!(heads[0].starts_with("get /credentials") && heads[0].contains("let-me-in"), "{}", heads[0]);
    assert!(
        heads[1].contains("credential=akiafetched/") && heads[1].contains("x-amz-security-token: passing")
    );
    assert_eq!(
        (store.requests().gets, store.requests().puts),
        (0, 1),
        "those for credentials are not counted"
    );
}

#[tokio::test]
async fn a_role_fetches_them_with_the_token_of_its_platform() {
    let expiration = "2099-01-01T00:00:00Z";
    let fetched = format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>AKIAFETCHED\
         </AccessKeyId><SecretAccessKey>hush</SecretAccessKey><SessionToken>passing</SessionToken><Expiration>{expiration}\
         </Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    );
    let authority = Authority::new();
    let exchange = Scripted::start_encrypted([answer("200 OK", "", &fetched)], &authority).await;
    let server = Scripted::start([applied()]).await;
    let file = |name: &str, text: String| {
        let path = std::env::temp_dir().join(format!("tenure-object-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (token, ca) = (file("identity", "who-i-am\n".to_owned()), file("ca", authority.pem()));
    let environment: Environment = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.clone()),
        ("AWS_CA_BUNDLE", ca.clone()),
        ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/leases".to_owned()),
        ("AWS_ENDPOINT_URL_STS", exchange.endpoint()),
    ]
    .into_iter()
    .collect();
    let store = bucket(&server).open_in(&environment).unwrap();
    let done = put(&store).await;
    [token, ca].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(matches!(done, Ok(Put::Applied(_))), "{done:?}");
    let asked = &exchange.heads()[0];
    assert!(
        asked.starts_with("post /?action=assumerolewithwebidentity")
            && asked.contains("webidentitytoken=who-i-am http/1.1"),
        "{asked}"
    );
    let sent = &server.heads()[0];
    assert!(
        sent.contains("credential=akiafetched/") && sent.contains("x-amz-security-token: passing"),
        "{sent}"
    );
    assert_eq!(store.requests().puts, 1, "those for credentials are not counted");
}

#[tokio::test]
async fn a_machine_fetches_them_from_its_metadata_address_if_the_url_says_so() {
    let server = Scripted::start([
        answer("200 OK", "", "session"),
        answer("200 OK", "", "my-role"),
        answer("200 OK", "", FETCHED),
        applied(),
    ])
    .await;
    let environment = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.endpoint())].into_iter().collect();
    let store = bucket(&server).instance_credentials().open_in(&environment).unwrap();
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    assert!(server.heads()[3].contains("credential=akiafetched/"), "{:?}", server.heads());
}

/// A file with a token, which is removed at the end.
struct TokenFile(PathBuf);

impl TokenFile {
    fn new(text: &str) -> Self {
        let unique = BootClock::new().now().as_nanos();
        let path = std::env::temp_dir().join(format!("tenure-object-token-{}-{unique}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).unwrap();
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Credentials of a container with this key, which expire after a number of seconds.
fn handed_out(key: &str, seconds: i64) -> Reply {
    let now = jiff::Timestamp::now();
    let expiration = (now + jiff::SignedDuration::from_secs(seconds)).strftime("%Y-%m-%dT%H:%M:%SZ");
    let body = format!(
        r#"{{"AccessKeyId":"{key}","SecretAccessKey":"hush","Token":"passing","Expiration":"{expiration}"}}"#
    );
    let (date, length) = (date_at(now), body.len());
    Reply::Send(format!("HTTP/1.1 200 OK\r\n{date}content-length: {length}\r\n\r\n{body}"))
}

/// Credentials that expire after [`SHORT`], and whose refresh is due after [`DUE`].
fn short_lived() -> Reply {
    handed_out("AKIAFIRST", SHORT)
}

const SHORT: i64 = 8;
const DUE: Duration = Duration::from_millis(6_600);

/// A store whose credentials come from this service.
fn container(server: &Scripted, service: &Scripted, token: &TokenFile) -> S3 {
    let environment: Environment = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/credentials", service.endpoint())),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.0.to_str().unwrap().to_owned()),
    ]
    .into_iter()
    .collect();
    bucket(server).open_in(&environment).unwrap()
}

#[track_caller]
fn refused(result: Result<Put, StoreError>, reason: Reason, words: &str) {
    let Err(StoreError::Refused(refused)) = result else { panic!("{result:?}") };
    let sentence = refused.to_string();
    assert!(sentence.contains(words), "{sentence}");
    assert_eq!(refused.reason, reason, "{sentence}");
    assert!(!sentence.contains("hush") && !sentence.contains("let-me"), "{sentence}");
}

async fn pass(time: Duration) {
    let clock = BootClock::new();
    clock.sleep_until(clock.now() + time).await;
}

#[tokio::test]
async fn a_write_whose_credentials_cannot_be_fetched_was_not_sent_and_may_be_tried_again() {
    let (server, token) = (Scripted::start([applied()]).await, TokenFile::new("let-me-in"));
    let service = Scripted::start([answer("500 Oops", "", ""), handed_out("AKIAFIRST", 3600)]).await;
    let store = container(&server, &service, &token);
    refused(put(&store).await, Reason::Unreachable, "no credentials to sign with");
    assert_eq!(store.requests().puts, 0);
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unreachable() {
    let (server, token) = (Scripted::start([]).await, TokenFile::new("let-me-in"));
    // It closes every connection.
    let service = Scripted::start([]).await;
    let store = container(&server, &service, &token);
    refused(put(&store).await, Reason::Unreachable, "the credentials service at 127.0.0.1");
}

#[tokio::test]
async fn a_service_that_refuses_in_words_denies() {
    let (server, token) = (Scripted::start([]).await, TokenFile::new("let-me-in"));
    let service = Scripted::start([error("403 Forbidden", "AccessDenied")]).await;
    let store = container(&server, &service, &token);
    refused(put(&store).await, Reason::Denied, "it answered 403 AccessDenied: Told so");
}

#[tokio::test]
async fn a_refresh_that_fails_costs_no_call() {
    let (server, token) = (Scripted::start([applied(), applied()]).await, TokenFile::new("let-me-in"));
    let failure = error("403 Forbidden", "AccessDenied");
    let service = Scripted::start([short_lived(), failure]).await;
    let store = container(&server, &service, &token);
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    pass(DUE).await;
    let done = put(&store).await;
    assert!(matches!(done, Ok(Put::Applied(_))), "{done:?}");
    assert_eq!(service.heads().len(), 2);
    assert!(server.heads()[1].contains("credential=akiafirst/"), "{:?}", server.heads());
}

#[tokio::test]
async fn a_refresh_that_is_not_answered_holds_no_call_up() {
    let (server, token) = (Scripted::start([applied(), applied()]).await, TokenFile::new("let-me-in"));
    let service = Scripted::start([short_lived(), Reply::Send(String::new())]).await;
    let store = container(&server, &service, &token);
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    pass(DUE).await;
    let clock = BootClock::new();
    let began = clock.now();
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    assert!(clock.now().since(began) < Duration::from_secs(2), "it waited");
    assert_eq!(service.heads().len(), 2);
}

#[tokio::test]
async fn credentials_that_the_server_calls_expired_are_replaced_for_the_next_call() {
    let replies = [error("400 Bad Request", "ExpiredToken"), applied()];
    let (server, token) = (Scripted::start(replies).await, TokenFile::new("let-me-in"));
    let service = Scripted::start([handed_out("AKIAFIRST", 3600), handed_out("AKIASECOND", 3600)]).await;
    let store = container(&server, &service, &token);
    refused(put(&store).await, Reason::Unreachable, "the next call fetches new ones");
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    assert!(server.heads()[1].contains("credential=akiasecond/"), "{:?}", server.heads());
}

#[tokio::test]
async fn new_credentials_that_the_server_does_not_know_are_wrong() {
    let (server, token) =
        (Scripted::start([error("403 Forbidden", "InvalidAccessKeyId")]).await, TokenFile::new("let-me-in"));
    let service = Scripted::start([handed_out("AKIAFIRST", 3600)]).await;
    let store = container(&server, &service, &token);
    refused(put(&store).await, Reason::Denied, "the access key is not known there");
}

#[tokio::test]
async fn known_keys_that_have_expired_are_denied_as_nothing_replaces_them() {
    let server = Scripted::start([error("400 Bad Request", "ExpiredToken")]).await;
    refused(put(&server.store()).await, Reason::Denied, "get new credentials");
}

#[tokio::test]
async fn calls_at_once_share_one_fetch() {
    let server = Scripted::start((0..10).map(|_| applied())).await;
    let (service, token) =
        (Scripted::start([handed_out("AKIAFIRST", 3600)]).await, TokenFile::new("let-me-in"));
    let store = container(&server, &service, &token);
    for done in join_all((0..10).map(|_| put(&store))).await {
        assert!(matches!(done, Ok(Put::Applied(_))), "{done:?}");
    }
    assert_eq!(service.heads().len(), 1);
}

#[tokio::test]
async fn a_token_file_may_end_with_a_line_break_and_contain_no_other() {
    let (server, token) = (Scripted::start([applied()]).await, TokenFile::new("let-me-in\n"));
    let service = Scripted::start([handed_out("AKIAFIRST", 3600)]).await;
    let store = container(&server, &service, &token);
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    assert!(service.heads()[0].contains("authorization: let-me-in\r\n"), "{:?}", service.heads());
    token.write("let-me\nin");
    let store = container(&server, &service, &token);
    refused(
        put(&store).await,
        Reason::Denied,
        "(AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE) contains a line break",
    );
    assert_eq!(service.heads().len(), 1, "it was not sent");
}

#[tokio::test]
async fn a_token_file_that_goes_bad_leaves_the_credentials_that_are_there() {
    let (server, token) = (Scripted::start([applied(), applied()]).await, TokenFile::new("let-me-in"));
    let service = Scripted::start([short_lived()]).await;
    let store = container(&server, &service, &token);
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    token.write("let-me\nin");
    pass(DUE).await;
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    pass(Duration::from_secs(2)).await;
    refused(put(&store).await, Reason::Denied, "contains a line break");
}

#[tokio::test]
async fn credentials_with_a_line_break_are_refused_and_not_sent() {
    let (server, token) = (Scripted::start([]).await, TokenFile::new("let-me-in"));
    let secret = FETCHED.replace("hush", "hu\\nsh");
    for handed_out in [handed_out("AKIA\\nFIRST", 3600), answer("200 OK", "", &secret)] {
        let service = Scripted::start([handed_out]).await;
        let store = container(&server, &service, &token);
        refused(put(&store).await, Reason::Unreachable, "what it sent contains a line break");
    }
}

#[tokio::test]
async fn the_answers_of_a_metadata_address_may_end_with_a_line_break_and_contain_no_other() {
    let first = |role| [answer("200 OK", "", "session\n"), answer("200 OK", "", role)];
    let replies = first("my-role\n").into_iter().chain([answer("200 OK", "", FETCHED), applied()]);
    let replies = replies.chain(first("my\nrole"));
    let server = Scripted::start(replies).await;
    let environment: Environment =
        [("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.endpoint())].into_iter().collect();
    let open = || bucket(&server).instance_credentials().open_in(&environment).unwrap();
    assert!(matches!(put(&open()).await, Ok(Put::Applied(_))));
    assert!(server.heads()[2].contains("/security-credentials/my-role http"), "{:?}", server.heads());
    refused(put(&open()).await, Reason::Unreachable, "its answer is not one word");
}
