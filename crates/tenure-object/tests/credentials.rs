//! Fetched credentials, from servers on this machine that answer as the platforms do.

mod scripted;

use bytes::Bytes;
use scripted::{Scripted, answer};
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
    let (token, ca) = (file("identity", "who-i-am".to_owned()), file("ca", authority.pem()));
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
        asked.starts_with("post /?action=assumerolewithwebidentity") && asked.contains("who-i-am"),
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

#[tokio::test]
async fn a_write_whose_credentials_cannot_be_fetched_was_certainly_not_sent() {
    let server = Scripted::start([answer("500 Oops", "", "")]).await;
    let environment = [("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.endpoint())].into_iter().collect();
    let store = bucket(&server).instance_credentials().open_in(&environment).unwrap();
    let Err(StoreError::Refused(refused)) = put(&store).await else { panic!() };
    assert_eq!(refused.reason, Reason::Denied, "{refused}");
    assert!(refused.to_string().contains("no credentials to sign with"), "{refused}");
    assert_eq!(store.requests().puts, 0);
}
