//! Credentials for Google, from servers on this machine. No test contacts Google or a metadata address.

mod scripted;

use scripted::{Reply, Scripted, answer, error};
use tenure_object::{Environment, Google, GoogleBuilder};
use tenure_store::{Expect, Put, Reason, Store, StoreError};
use tenure_testkit::key;

fn bucket(server: &Scripted) -> GoogleBuilder {
    Google::builder("leases").endpoint(&server.endpoint())
}

async fn put(store: &Google) -> Result<Put, StoreError> {
    store.put(&key("k"), "value".into(), Expect::Absent).await
}

fn applied() -> Reply {
    answer("200 OK", "etag: \"e\"\r\nx-goog-generation: 7\r\n", "")
}

fn token(token: &str) -> Reply {
    answer("200 OK", "", &format!(r#"{{"access_token":"{token}","expires_in":3599,"token_type":"Bearer"}}"#))
}

/// All variables that could lead a client elsewhere.
fn elsewhere(other: &Scripted) -> Vec<(&'static str, String)> {
    let host = other.endpoint().replace("http://", "");
    vec![("GCE_METADATA_HOST", host), ("HTTP_PROXY", other.endpoint()), ("HTTPS_PROXY", other.endpoint())]
}

#[tokio::test]
async fn a_store_without_credentials_asks_no_metadata_server_and_no_proxy() {
    let (server, other) = (Scripted::start([]).await, Scripted::start([]).await);
    let environment: Environment = elsewhere(&other).into_iter().collect();
    for builder in [bucket(&server), Google::builder("leases")] {
        let error = builder.open_in(&environment).unwrap_err();
        assert_eq!(error.reason(), Reason::Denied, "{error}");
    }
    assert_eq!((server.connections(), other.connections()), (0, 0));
}

#[tokio::test]
async fn a_known_token_is_sent_and_nothing_else_is_asked() {
    let (server, other) = (Scripted::start([applied()]).await, Scripted::start([]).await);
    let mut variables = elsewhere(&other);
    variables.push(("GOOGLE_OAUTH_ACCESS_TOKEN", "let-me-in".to_owned()));
    let store = bucket(&server).open_in(&variables.into_iter().collect()).unwrap();
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    assert!(server.heads()[0].contains("authorization: bearer let-me-in"), "{:?}", server.heads());
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_machine_takes_a_token_from_its_metadata_server_if_the_url_says_so() {
    let (server, other) =
        (Scripted::start([applied(), applied()]).await, Scripted::start([token("passing")]).await);
    let store =
        bucket(&server).instance_credentials().open_in(&elsewhere(&other).into_iter().collect()).unwrap();
    assert_eq!(other.connections(), 0, "nothing is asked before the first call");
    for _ in 0..2 {
        assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    }
    let asked = other.heads();
    assert_eq!(asked.len(), 1, "the token is kept: {asked:?}");
    let path = "get /computemetadata/v1/instance/service-accounts/default/token http";
    assert!(asked[0].starts_with(path) && asked[0].contains("metadata-flavor: google"), "{}", asked[0]);
    assert!(server.heads().iter().all(|head| head.contains("authorization: bearer passing")));
    assert_eq!((store.requests().gets, store.requests().puts), (0, 2), "those for tokens are not counted");
}

#[tokio::test]
async fn a_token_that_is_refused_is_fetched_again_and_no_lease_is_lost_by_it() {
    let expired = error("401 Unauthorized", "ExpiredToken");
    let server = Scripted::start([expired, applied()]).await;
    let other = Scripted::start([token("old"), token("new")]).await;
    let store =
        bucket(&server).instance_credentials().open_in(&elsewhere(&other).into_iter().collect()).unwrap();
    let Err(StoreError::Refused(refused)) = put(&store).await else { panic!() };
    assert_eq!(refused.reason, Reason::Unreachable, "the next call may succeed: {refused}");
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    assert!(server.heads()[1].contains("bearer new"), "{:?}", server.heads());
}

#[tokio::test]
async fn a_write_whose_token_cannot_be_fetched_was_certainly_not_sent() {
    let server = Scripted::start([]).await;
    let none = answer("404 Not Found", "", "no service account");
    let other = Scripted::start([none, answer("200 OK", "", "{}"), token("line\\nbreak")]).await;
    let store =
        bucket(&server).instance_credentials().open_in(&elsewhere(&other).into_iter().collect()).unwrap();
    for part in ["it answered 404", "contains no credentials", "a line break"] {
        let Err(StoreError::Refused(refused)) = put(&store).await else { panic!() };
        assert_eq!(refused.reason, Reason::Unreachable, "{refused}");
        assert!(refused.to_string().contains(part), "{refused}");
    }
    assert_eq!((server.connections(), store.requests().puts), (0, 0));
}

#[tokio::test]
async fn a_service_account_key_signs_its_tokens_without_a_request() {
    let (server, other) = (Scripted::start([applied()]).await, Scripted::start([]).await);
    // The last two settings are the client library's own, for its tests. They must not move the store.
    let account = serde_json::json!({
        "type": "service_account",
        "client_email": "leases@my-project.iam.gserviceaccount.com",
        "private_key_id": "17",
        "private_key": KEY,
        "gcs_base_url": other.endpoint(),
    });
    let mut variables = elsewhere(&other);
    variables.push(("GOOGLE_SERVICE_ACCOUNT_KEY", account.to_string()));
    let store = bucket(&server).open_in(&variables.into_iter().collect()).unwrap();
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    let head = &server.heads()[0];
    let token = head.lines().find_map(|line| line.strip_prefix("authorization: bearer ")).unwrap();
    assert_eq!(token.split('.').count(), 3, "a header, the claims and a signature: {token}");
    assert_eq!(other.connections(), 0);
}

/// The file of a workload identity, with the services on this machine.
fn workload(services: &Scripted, source: &serde_json::Value, impersonates: bool) -> Environment {
    let mut account = serde_json::json!({
        "type": "external_account",
        "audience": "//iam.googleapis.com/a&b",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("{}/v1/token", services.endpoint()),
        "credential_source": source,
    });
    if impersonates {
        account["service_account_impersonation_url"] = format!("{}/impersonate", services.endpoint()).into();
    }
    [("GOOGLE_SERVICE_ACCOUNT_KEY", account.to_string())].into_iter().collect()
}

#[tokio::test]
async fn a_workload_exchanges_the_token_of_its_platform() {
    let server = Scripted::start([applied()]).await;
    let services = Scripted::start([token("federated")]).await;
    let path = std::env::temp_dir().join(format!("tenure-object-subject-{}", std::process::id()));
    std::fs::write(&path, "who-i-am\n").unwrap();
    let source = serde_json::json!({ "file": path.to_str().unwrap() });
    let store = bucket(&server).open_in(&workload(&services, &source, false)).unwrap();
    let done = put(&store).await;
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(done, Ok(Put::Applied(_))), "{done:?}");
    assert!(services.heads()[0].starts_with("post /v1/token http"), "{:?}", services.heads());
    assert!(server.heads()[0].contains("authorization: bearer federated"), "{:?}", server.heads());

    let missing =
        put(&bucket(&server).open_in(&workload(&services, &source, false)).unwrap()).await.unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
}

#[tokio::test]
async fn a_workload_gets_the_rights_of_a_service_account() {
    let server = Scripted::start([applied()]).await;
    let services = Scripted::start([
        answer("200 OK", "", r#"{"value":"who-i-am"}"#),
        token("federated"),
        answer("200 OK", "", r#"{"accessToken":"impersonated","expireTime":"2099-01-01T00:00:00Z"}"#),
    ])
    .await;
    let source = serde_json::json!({
        "url": format!("{}/identity?audience=google", services.endpoint()),
        "headers": { "Authorization": "Bearer of-the-platform" },
        "format": { "type": "json", "subject_token_field_name": "value" },
    });
    let store = bucket(&server).open_in(&workload(&services, &source, true)).unwrap();
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    let heads = services.heads();
    assert!(heads[0].starts_with("get /identity?audience=google") && heads[0].contains("of-the-platform"));
    assert!(heads[2].starts_with("post /impersonate") && heads[2].contains("bearer federated"), "{heads:?}");
    assert!(server.heads()[0].contains("authorization: bearer impersonated"), "{:?}", server.heads());
}

#[tokio::test]
async fn a_platform_that_refuses_is_named_and_the_write_was_not_sent() {
    let server = Scripted::start([]).await;
    let refusal = r#"{"error":"invalid_grant","error_description":"The audience is wrong."}"#;
    let services =
        Scripted::start([answer("200 OK", "", "who-i-am"), answer("400 Bad Request", "", refusal)]).await;
    let source = serde_json::json!({ "url": format!("{}/identity", services.endpoint()) });
    let store = bucket(&server).open_in(&workload(&services, &source, false)).unwrap();
    let Err(StoreError::Refused(refused)) = put(&store).await else { panic!() };
    assert_eq!(refused.reason, Reason::Denied, "{refused}");
    assert!(refused.to_string().contains("400 invalid_grant: The audience is wrong"), "{refused}");
    assert_eq!(server.connections(), 0);
}

/// Made for this test.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDC/+7qeQr2ffA1\n\
wFIX+JamYaHh4jmlvgs+6moO/dJbomQjhAEEhSafACS09qOx8YQO8SefemMsy/V9\n\
EFkNTimTc/taHbZCwX8PNCZeoOPD7XmtBvWc01zrDM4l33W4z1meh9RovCIBMM7u\n\
ByvScQcbWnYXN7OcOV2UsfT92pzj3FSshCHaBVR2j6nDr4N+xceTEJRSeQJMMNvZ\n\
XQ6si7yARP27idvtDBHJ+JkQm0z/aH3gdQiHfivXvGFhdcgfRoXvv7CnKqloyivU\n\
NutvZPG4pMgNGHTvMh2jvbbFlVM3oldChrzP0Xur7ysm9n6QfRyCJ0YPMxTMeOZv\n\
L0Y6lWa1AgMBAAECggEACF5s5d9ABd2DJlYUr+FZWywBg0JERcVm530EBD9cfID3\n\
BJcxEVKYRRFVLKG723KJamLAgpWsFUtuQ78kiJpRf887JbOfaN9eZqFPAZdXbxyN\n\
W6GwKi+KuK5vV9duo/nc13LuPiMk38w1H/4VdrinHMNrIgqf82p627DaL4g8XNhl\n\
aYtmaifpp6wxkZf9be6LT5mGs9yeA04UUjWaZPzV2amDzQV983auUFhBab2Ly5Ne\n\
S3DH2Q/52hBtxvwgt9S0hXeEAZW5xpMQ8ZmKBnRl6w9bc1rbjXsI3pFfmCg31ohJ\n\
tpaqb4P4IG7r0Wj0ha/IqjCHtfKHmWYlmRAP2RGW2QKBgQDg8WsGpvVpD2m2iBJw\n\
zv9bFQuPJHbEnCPHPjEwga9/P9lDlgiBxezApz2yU6jwJHti5rlWMtdeIAOw5b/U\n\
1bGSuP+nltDzlAkyXWnp1lHNRZnejtcT/HXF31o2BftsABYs3vQqpJoXZB841IO2\n\
SErgPfydwu0umPnFm+q9bEFKkwKBgQDd7CxYSCX2e+nytMRMlJgDchx5nZi7yI56\n\
0nSv4IoQ2c/F7gykCD2OBgnN+1uPTDotlzc9qVAxlv2SvmeFV8Wz+MtuHR4AMeDf\n\
zCFxfRBRN+MPmEIVvMzgRJQ2Zmv4cR6PGFuvhTm65FOYPvYI5/5x9/fB+14XHTCz\n\
zGGjOCQulwKBgHNniGg+ShPfg3XRM9zKZjn9fxOuOny+OqDi6GuhbT9Uq4vAMpcZ\n\
y1A/vSh7QWYK4X6pLpbpuJKizCH6jUONavACl68MciE1Zs5/HHKKsScmOT30fKXV\n\
VTryTx7+TLJpDPdyX0RtdFzh0h7e8MAZMMkBJFRwCC1q8GIQjwslug2fAoGAcnpV\n\
OckmBCtRuIi1RkfUzto7hCTe1+eSUBtmZB+xORYSzyiITsmNb0kAH8iNJ7OLw17g\n\
+SbxHlOkROGBp1BqxPcPgaL1ieYw+WFk0xVPqIXq1G2XkX0ONpZJ2nIlOkioGerX\n\
yQgxio4j7UJ1SozaPdJLdT6E/+ln6SgCKd9ZEssCgYEAohIMAbJuwA2/+Z0Azpx2\n\
geq244N5hhQRVGGFksJ+X4cZX2Vz5GamelWBh31nwlXsGEf1dbckPMTCs2MV3NdU\n\
EWHVxGnGS5zBrAlRQ8oQk6A0XLgp+XrqEdN2vTl2egN4YsvxukBsf+RFRk4XZ296\n\
8bZcZ41Av3DpkjXBb7gT6lU=\n\
-----END PRIVATE KEY-----\n";
