//! Real servers behind a forward proxy, which alone can resolve their names.

mod scripted;

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use scripted::{Scripted, answer};
use tenure::Coordinator;
use tenure_object::S3;
use tenure_object::{Environment, S3Builder};
use tenure_store::{Expect, Prefix, Reason, Store, StoreError};
use tenure_testkit::{Authority, ForwardProxy, Kind, Server, Setup, key};

fn bucket(server: &Server, endpoint: &str) -> S3Builder {
    let builder = S3::builder("leases").prefix("locks").endpoint(endpoint);
    builder.keys(server.access_key(), server.secret_key())
}

fn shared() -> Option<&'static Server> {
    let server = Server::shared(Kind::Minio)?;
    server.create_bucket("leases");
    Some(server)
}

fn variables(pairs: &[(&str, &str)]) -> Environment {
    pairs.iter().copied().collect()
}

async fn leases(store: S3) {
    let coordinator = Coordinator::connect(store.clone()).await.unwrap();
    let lease = coordinator.lease("job").unwrap().ttl(Duration::from_secs(15)).acquire().await.unwrap();
    lease.release().await.unwrap();
    let everything = Prefix::all();
    let listed: Vec<String> = store.list(&everything).map(|key| key.unwrap().to_string()).collect().await;
    assert!(listed.contains(&"job".to_owned()), "{listed:?}");
}

async fn refused(store: &S3) -> String {
    let write = store.put(&key("k"), Bytes::new(), Expect::Absent).await.unwrap_err();
    let StoreError::Refused(refused) = write else { panic!("it was certainly not passed on: {write}") };
    assert_eq!(refused.reason, Reason::Unreachable, "{refused}");
    assert!(!refused.to_string().contains("hush"));
    refused.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn encrypted_requests_go_through_a_tunnel() {
    let authority = Authority::new();
    let setup = Setup::new().encrypted(authority.certify(&["minio.example.org"]));
    let Some(server) = Server::start_with_or_skip(Kind::Minio, setup) else { return };
    server.create_bucket("leases");
    let ca = std::env::temp_dir().join(format!("tenure-object-tunnel-{}.pem", std::process::id()));
    std::fs::write(&ca, authority.pem()).unwrap();
    let builder = bucket(&server, "https://minio.example.org").ca(ca.to_str().unwrap());

    let proxy = ForwardProxy::start();
    proxy.route("minio.example.org", server.address());
    leases(builder.clone().proxy(&proxy.endpoint()).open_in(&Environment::default()).unwrap()).await;
    assert!(proxy.log().iter().all(|line| line == "CONNECT minio.example.org:443"), "{:?}", proxy.log());

    let guarded = ForwardProxy::start_for("Basic bWU6aHVzaA==");
    guarded.route("minio.example.org", server.address());
    let with_password = guarded.endpoint().replace("http://", "http://me:hush@");
    let store = builder.open_in(&variables(&[("HTTPS_PROXY", &with_password)])).unwrap();
    assert!(!format!("{store:?} {store}").contains("hush"));
    leases(store).await;
    assert!(!guarded.log().is_empty());

    // Without the password, with a wrong one, to an unreachable server, and without the proxy itself.
    let open = |proxy: &str| builder.open_in(&variables(&[("https_proxy", proxy)])).unwrap();
    let (shown, sentence) = (guarded.endpoint(), refused(&open(&guarded.endpoint())).await);
    assert!(
        sentence.contains(&format!("the proxy {shown} wants a name and a password: put them into")),
        "{sentence}"
    );
    let sentence = refused(&open(&shown.replace("http://", "http://me:hush-hush@"))).await;
    assert!(
        sentence.contains(&format!("the proxy {shown} does not take the name and password")),
        "{sentence}"
    );
    let lost = ForwardProxy::start();
    let sentence = refused(&open(&lost.endpoint())).await;
    let part = format!("the proxy {} cannot connect to minio.example.org", lost.endpoint());
    assert!(sentence.contains(&part), "{sentence}");
    let gone = lost.endpoint();
    drop(lost);
    let sentence = refused(&open(&gone.replace("http://", "http://me:hush@"))).await;
    assert!(
        sentence.contains(&format!("the proxy {gone} could not be reached: Connection refused")),
        "{sentence}"
    );
    let untrusted = bucket(&server, "https://minio.example.org").proxy(&proxy.endpoint());
    let sentence = refused(&untrusted.open_in(&Environment::default()).unwrap()).await;
    assert!(
        sentence.contains("not signed by an authority that this machine trusts"),
        "the proxy is not to blame: {sentence}"
    );
    std::fs::remove_file(&ca).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_proxy_forwards_unencrypted_requests() {
    let Some(server) = shared() else { return };
    let proxy = ForwardProxy::start();
    proxy.route("minio.example.org", server.address());
    let builder = bucket(server, "http://minio.example.org:9000").accept_http();
    let by_variable = |proxy: &str| builder.open_in(&variables(&[("HTTP_PROXY", proxy)])).unwrap();
    leases(by_variable(&proxy.endpoint())).await;
    let log = proxy.log();
    assert!(log.iter().all(|line| line.contains(" http://minio.example.org:9000/leases")), "{log:?}");

    let guarded = ForwardProxy::start_for("Basic bWU6aHVzaA==");
    let shown = guarded.endpoint();
    let sentence = refused(&by_variable(&shown)).await;
    assert!(sentence.contains(&format!("the proxy {shown} wants a name and a password")), "{sentence}");
    guarded.route("minio.example.org", server.address());
    leases(by_variable(&shown.replace("http://", "http://me:hush@"))).await;

    let lost = ForwardProxy::start();
    let error = by_variable(&lost.endpoint()).get(&key("k")).await.unwrap_err().to_string();
    let part = format!("the proxy {}, or the server behind it, does not speak S3", lost.endpoint());
    assert!(error.contains(&part), "{error}");
    let gone = lost.endpoint();
    drop(lost);
    let sentence = refused(&by_variable(&gone)).await;
    assert!(sentence.contains(&format!("the proxy {gone} could not be reached")), "{sentence}");
}

/// A proxy elsewhere could not reach this machine; one that was chosen for this store is expected to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_on_this_machine_is_reached_through_a_proxy_only_if_the_url_says_so() {
    let Some(server) = shared() else { return };
    let proxy = ForwardProxy::start();
    let builder = bucket(server, &server.endpoint());
    leases(builder.open_in(&variables(&[("ALL_PROXY", &proxy.endpoint())])).unwrap()).await;
    assert_eq!(proxy.log(), <[String; 0]>::default());
    leases(builder.proxy(&proxy.endpoint()).open_in(&Environment::default()).unwrap()).await;
    assert!(!proxy.log().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_is_named_in_front_of_the_host_or_in_the_path() {
    let setup = Setup::new().variable("MINIO_DOMAIN", "s3.example.org");
    let Some(server) = Server::start_with_or_skip(Kind::Minio, setup) else { return };
    server.create_bucket("leases");
    let proxy = ForwardProxy::start();
    for host in ["s3.example.org", "leases.s3.example.org"] {
        proxy.route(host, server.address());
    }
    let builder = bucket(&server, "http://s3.example.org").accept_http().proxy(&proxy.endpoint());
    let objects = |from: usize| {
        let log = proxy.log();
        log[from..]
            .iter()
            .filter_map(|line| Some(line.split_once(" http://")?.1.to_owned()))
            .collect::<Vec<_>>()
    };
    leases(builder.clone().path_style(false).open_in(&Environment::default()).unwrap()).await;
    let asked = objects(0);
    assert!(asked.contains(&"leases.s3.example.org/locks/job.record".to_owned()), "{asked:?}");
    assert!(asked.iter().all(|target| target.starts_with("leases.s3.example.org/")), "{asked:?}");
    let before = proxy.log().len();
    leases(builder.path_style(true).open_in(&Environment::default()).unwrap()).await;
    let asked = objects(before);
    assert!(asked.contains(&"s3.example.org/leases/locks/job.record".to_owned()), "{asked:?}");
    assert!(asked.iter().all(|target| target.starts_with("s3.example.org/leases")), "{asked:?}");
}

#[tokio::test]
async fn every_request_to_tigris_asks_for_a_consistent_answer() {
    let applied = answer("200 OK", "etag: \"v1\"\r\n", "");
    let missing = answer("404 Not Found", "", "<Error><Code>NoSuchKey</Code></Error>");
    let page = answer("200 OK", "", "<ListBucketResult></ListBucketResult>");
    // It answers in place of the proxy that leads there.
    let server = Scripted::start([missing, applied, page]).await;
    let builder =
        S3::builder("leases").endpoint("http://fly.storage.tigris.dev").accept_http().keys("id", "hush");
    let store = builder.proxy(&server.endpoint()).open_in(&Environment::default()).unwrap();
    store.get(&key("k")).await.unwrap();
    let _ = store.put(&key("k"), Bytes::new(), Expect::Absent).await.unwrap();
    let everything = Prefix::all();
    assert_eq!(store.list(&everything).count().await, 0);
    let heads = server.heads();
    assert_eq!(heads.len(), 3);
    for head in heads {
        assert!(head.contains(" http://fly.storage.tigris.dev/leases"), "{head}");
        assert!(head.contains("\r\nx-tigris-consistent: true\r\n"), "{head}");
    }
}
