//! Credentials for Azure, from servers on this machine. No test contacts Microsoft or a metadata address.

mod scripted;

use scripted::{Reply, Scripted, answer};
use tenure_object::{Azure, AzureBuilder, Environment};
use tenure_store::{Expect, Put, Reason, Store, StoreError};
use tenure_testkit::key;

fn container(server: &Scripted) -> AzureBuilder {
    Azure::builder("leases").account("acme").endpoint(&server.endpoint())
}

async fn put(store: &Azure) -> Result<Put, StoreError> {
    store.put(&key("k"), "value".into(), Expect::Absent).await
}

fn applied() -> Reply {
    answer("201 Created", "etag: \"0x1\"\r\n", "")
}

fn token(token: &str) -> Reply {
    let body = format!(
        r#"{{"access_token":"{token}","expires_in":3599,"expires_on":"4000000000","token_type":"Bearer"}}"#
    );
    answer("200 OK", "content-type: application/json\r\n", &body)
}

fn application<'a>(login: &'a str, proof: (&'a str, &'a str)) -> Environment {
    [("AZURE_CLIENT_ID", "app"), ("AZURE_TENANT_ID", "tenant-1"), ("AZURE_AUTHORITY_HOST", login), proof]
        .into_iter()
        .collect()
}

#[tokio::test]
async fn a_store_without_credentials_asks_no_service() {
    let (server, other) = (Scripted::start([]).await, Scripted::start([]).await);
    let variables = [("IDENTITY_ENDPOINT", other.endpoint()), ("AZURE_AUTHORITY_HOST", other.endpoint())];
    let error = container(&server).open_in(&variables.into_iter().collect()).unwrap_err();
    assert_eq!(error.reason(), Reason::Denied, "{error}");
    assert_eq!((server.connections(), other.connections()), (0, 0));
}

#[tokio::test]
async fn an_application_logs_in_with_its_secret_once_for_many_calls() {
    let (server, login) =
        (Scripted::start([applied(), applied()]).await, Scripted::start([token("passing")]).await);
    let environment = application(&format!("{}/", login.endpoint()), ("AZURE_CLIENT_SECRET", "hush"));
    let store = container(&server).open_in(&environment).unwrap();
    assert_eq!(login.connections(), 0, "nothing is asked before the first call");
    for _ in 0..2 {
        let put = put(&store).await;
        assert!(matches!(put, Ok(Put::Applied(_))), "{put:?}");
    }
    let asked = login.heads();
    assert_eq!(asked.len(), 1, "the token is kept: {asked:?}");
    assert!(asked[0].starts_with("post /tenant-1/oauth2/v2.0/token http"), "{}", asked[0]);
    assert!(server.heads().iter().all(|head| head.contains("authorization: bearer passing")));
    assert_eq!((store.requests().gets, store.requests().puts), (0, 2), "those for tokens are not counted");
}

#[tokio::test]
async fn a_workload_proves_its_identity_with_the_token_in_its_file() {
    let path = std::env::temp_dir().join(format!("tenure-object-azure-{}", std::process::id()));
    let (server, login) =
        (Scripted::start([applied(), applied()]).await, Scripted::start([token("one"), token("two")]).await);
    let endpoint = login.endpoint();
    let open = || {
        let environment = application(&endpoint, ("AZURE_FEDERATED_TOKEN_FILE", path.to_str().unwrap()));
        container(&server).open_in(&environment).unwrap()
    };
    for proof in ["proof", "proof\n"] {
        std::fs::write(&path, proof).unwrap();
        assert!(matches!(put(&open()).await, Ok(Put::Applied(_))));
    }
    let lengths = login.heads().into_iter().map(|head| {
        head.lines().find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned)).unwrap()
    });
    let lengths: Vec<String> = lengths.collect();
    assert_eq!(lengths[0], lengths[1], "the line break at the end is not sent");

    std::fs::write(&path, "pro\nof").unwrap();
    let Err(StoreError::Refused(refused)) = put(&open()).await else { panic!("it must not be sent") };
    assert_eq!(refused.reason, Reason::Denied);
    assert!(refused.to_string().contains("(AZURE_FEDERATED_TOKEN_FILE) contains a line break"), "{refused}");
    std::fs::remove_file(&path).unwrap();
    let Err(StoreError::Refused(refused)) = put(&open()).await else { panic!("there is no file") };
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
    assert_eq!(login.heads().len(), 2, "and the service was not asked");
}

#[tokio::test]
async fn a_machine_takes_its_identity_from_the_platform_if_the_url_says_so() {
    let (server, platform) = (Scripted::start([applied()]).await, Scripted::start([token("passing")]).await);
    let address = format!("{}/msi/token", platform.endpoint());
    let variables = [("IDENTITY_ENDPOINT", address.as_str()), ("AZURE_CLIENT_ID", "app")];
    let store = container(&server).instance_credentials().open_in(&variables.into_iter().collect()).unwrap();
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    let asked = platform.heads();
    assert!(asked[0].starts_with("get /msi/token?") && asked[0].contains("client_id=app"), "{}", asked[0]);
    assert!(server.heads()[0].contains("authorization: bearer passing"));
}

/// The keeper tries again: the service may be back before the lease runs out.
#[tokio::test]
async fn a_service_that_fails_is_unreachable_and_one_that_refuses_is_denied() {
    let server = Scripted::start([]).await;
    for (reply, reason, words) in [
        (answer("503 Busy", "", ""), Reason::Unreachable, "it answered 503"),
        (
            answer(
                "401 No",
                "",
                r#"{"error":"invalid_client","error_description":"AADSTS7000215: Invalid secret."}"#,
            ),
            Reason::Denied,
            "invalid_client: AADSTS7000215: Invalid secret",
        ),
        (token("pass\\ning"), Reason::Unreachable, "contains a line break"),
    ] {
        let login = Scripted::start([reply]).await;
        let environment = application(&login.endpoint(), ("AZURE_CLIENT_SECRET", "hush"));
        let result = put(&container(&server).open_in(&environment).unwrap()).await;
        let Err(StoreError::Refused(refused)) = result else { panic!("{result:?}") };
        let sentence = refused.to_string();
        assert_eq!(refused.reason, reason, "{sentence}");
        assert!(sentence.contains(words) && !sentence.contains("hush"), "{sentence}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_refused_token_is_dropped_and_the_next_call_fetches_another() {
    let refused = answer("401 No", "x-ms-error-code: InvalidAuthenticationInfo\r\n", "");
    let (server, login) = (
        Scripted::start([applied(), refused, applied()]).await,
        Scripted::start([token("old"), token("new")]).await,
    );
    let environment = application(&login.endpoint(), ("AZURE_CLIENT_SECRET", "hush"));
    let store = container(&server).open_in(&environment).unwrap();
    assert!(put(&store).await.is_ok());
    assert!(put(&store).await.is_err());
    assert!(matches!(put(&store).await, Ok(Put::Applied(_))));
    let heads = server.heads();
    assert!(heads[1].contains("bearer old") && heads[2].contains("bearer new"), "{heads:?}");
}
