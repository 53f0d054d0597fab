//! A real server over HTTPS, with a certificate signed by a test authority.

mod scripted;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use scripted::Scripted;
use tenure::Coordinator;
use tenure_object::S3;
use tenure_object::{Environment, OpenError, S3Builder};
use tenure_store::{Expect, Reason, Store, StoreError};
use tenure_testkit::{Authority, Kind, Server, Setup, key};

/// A server with TLS, and a file for clients that trust its authority.
struct Encrypted {
    server: Server,
    directory: PathBuf,
}

impl Encrypted {
    fn start(
        name: &str,
        certificate: impl FnOnce(&Authority) -> tenure_testkit::Certificate,
    ) -> Option<Self> {
        let authority = Authority::new();
        let setup = Setup::new().encrypted(certificate(&authority));
        let server = Server::start_with_or_skip(Kind::Minio, setup)?;
        server.create_bucket("leases");
        let directory = std::env::temp_dir().join(format!("tenure-object-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("ca.pem"), authority.pem()).unwrap();
        Some(Self { server, directory })
    }

    fn ca(&self) -> String {
        self.directory.join("ca.pem").to_str().unwrap().to_owned()
    }

    /// A builder for this name of the machine.
    fn at(&self, host: &str) -> S3Builder {
        let port = self.server.address().port();
        let builder = S3::builder("leases").prefix("locks").endpoint(&format!("https://{host}:{port}"));
        builder.keys(self.server.access_key(), self.server.secret_key())
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn open(builder: &S3Builder) -> S3 {
    builder.open_in(&Environment::default()).unwrap()
}

async fn leases(store: S3) {
    let coordinator = Coordinator::connect(store).await.unwrap();
    let lease = coordinator.lease("job").unwrap().ttl(Duration::from_secs(15)).acquire().await.unwrap();
    lease.release().await.unwrap();
}

/// The reason why nothing was sent.
async fn unreachable(store: &S3) -> String {
    let write = store.put(&key("k"), Bytes::new(), Expect::Absent).await.unwrap_err();
    let StoreError::Refused(refused) = write else { panic!("it was certainly not sent: {write}") };
    assert_eq!(refused.reason, Reason::Unreachable, "{refused}");
    refused.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_authority_is_trusted_once_it_is_named() {
    let Some(place) = Encrypted::start("trusted", |authority| authority.certify(&["localhost", "127.0.0.1"]))
    else {
        return;
    };
    leases(open(&place.at("localhost").ca(&place.ca()))).await;
    let variable = [("AWS_CA_BUNDLE", place.ca())].into_iter().collect();
    leases(place.at("127.0.0.1").open_in(&variable).unwrap()).await;
    let config = place.directory.join("config");
    std::fs::write(&config, format!("[default]\nca_bundle = {}\n", place.ca())).unwrap();
    let profile = [("AWS_CONFIG_FILE", config.to_str().unwrap())].into_iter().collect();
    leases(place.at("localhost").open_in(&profile).unwrap()).await;

    let stranger = open(&place.at("localhost"));
    let sentence = unreachable(&stranger).await;
    let part = "is not signed by an authority that this machine trusts: if its authority is your own, name that \
                authority's certificate with ca=/path/to/ca.pem in the URL, or in AWS_CA_BUNDLE";
    assert!(sentence.contains(part), "{sentence}");
    let error = Coordinator::connect(stranger).await.unwrap_err();
    assert_eq!(error.kind(), tenure::ErrorKind::Unavailable, "{error}");
    let other = Authority::new();
    std::fs::write(place.directory.join("other.pem"), other.pem()).unwrap();
    let other = open(&place.at("localhost").ca(place.directory.join("other.pem").to_str().unwrap()));
    assert!(unreachable(&other).await.contains("not signed by an authority that this machine trusts"));

    // A server with TLS tells an unencrypted client to use https.
    let port = place.server.address().port();
    let plain = place.at("localhost").endpoint(&format!("http://localhost:{port}"));
    let error = open(&plain).get(&key("k")).await.unwrap_err().to_string();
    assert!(error.contains("it is encrypted there: write https:// in the endpoint"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_reported_with_that_name() {
    let Some(place) = Encrypted::start("name", |authority| authority.certify(&["minio.example.org"])) else {
        return;
    };
    let sentence = unreachable(&open(&place.at("localhost").ca(&place.ca()))).await;
    let part = "is for another name (minio.example.org): write the endpoint with that name";
    assert!(sentence.contains(part), "{sentence}");
}

#[tokio::test]
async fn an_expired_certificate_is_reported_with_its_date() {
    let Some(place) = Encrypted::start("expired", |authority| authority.certify_expired(&["localhost"]))
    else {
        return;
    };
    let sentence = unreachable(&open(&place.at("localhost").ca(&place.ca()))).await;
    let part = "ran out on 2021-01-01: renew it, or set this machine's clock";
    assert!(sentence.contains(part), "{sentence}");
}

#[tokio::test]
async fn a_server_with_another_protocol_than_the_endpoint_is_reported() {
    let Some(server) = Server::shared(Kind::Minio) else { return };
    let encrypted =
        S3::builder("leases").endpoint(&server.endpoint().replace("http", "https")).keys("id", "hush");
    let sentence = unreachable(&open(&encrypted)).await;
    assert!(sentence.contains("does not speak TLS: write http:// if it is not encrypted"), "{sentence}");
    // A TLS alert, as a server with TLS sends it to an unencrypted request.
    let server =
        Scripted::start([scripted::Reply::SendAndCut("\x15\x03\x01\x00\x02\x02\x16".to_owned())]).await;
    let error = server.store().get(&key("k")).await.unwrap_err().to_string();
    assert!(error.contains("does not speak HTTP: write https:// if it is encrypted"), "{error}");
}

#[test]
fn an_invalid_file_of_certificates_is_reported_before_anything_is_sent() {
    let refused = |builder: &S3Builder, environment: &Environment| -> OpenError {
        let error = builder.open_in(environment).expect_err("there is no such file");
        assert_eq!(error.reason(), Reason::Unreachable, "{error}");
        error
    };
    let builder = S3::builder("leases").endpoint("https://localhost:9000").keys("id", "hush");
    let error = refused(&builder.clone().ca("/nowhere/ca.pem"), &Environment::default()).to_string();
    assert!(error.contains("the certificates in /nowhere/ca.pem cannot be read: No such file"), "{error}");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let variable: Environment = [("AWS_CA_BUNDLE", here.to_str().unwrap())].into_iter().collect();
    let error = refused(&builder, &variable).to_string();
    assert!(error.contains("Cargo.toml has no certificate in it"), "{error}");
    let plain = builder.endpoint("http://localhost:9000");
    assert!(plain.open_in(&variable).is_ok(), "the file is not read if nothing is encrypted");
}
