//! `tenure fence` on objects of real servers.

mod support;

use std::process::{Command, Stdio};

use serde_json::json;

use support::{Did, Home, fed, refused};
use tenure_testkit::{Kind, Server};

/// The command as a holder of `billing`, with credentials in its environment.
struct Place {
    home: Home,
    server: &'static Server,
    bucket: &'static str,
}

impl Place {
    fn on(kind: Kind, bucket: &'static str) -> Option<Self> {
        let server = Server::shared(kind)?;
        server.create_bucket(bucket);
        Some(Self { home: Home::new(bucket), server, bucket })
    }

    fn url(&self, name: &str) -> String {
        format!("s3://{}/{name}?endpoint={}", self.bucket, self.server.endpoint())
    }

    fn command(&self, token: u64, args: &[&str]) -> Command {
        let mut command = self.home.command(&[&["fence"], args].concat());
        command.envs(self.server.environment()).env("PATH", "/usr/bin:/bin");
        command.env("TENURE_NAME", "billing").env("TENURE_TOKEN", token.to_string());
        command
    }

    fn fence(&self, token: u64, args: &[&str], input: &[u8]) -> Did {
        fed(&mut self.command(token, args), input)
    }
}

#[test]
fn an_object_is_put_sealed_checked_and_read_and_refuses_a_stale_token() {
    let Some(place) = Place::on(Kind::Minio, "fence-object") else { return };
    let url = place.url("reports/today.csv");
    place.fence(7, &["get", &url], b"").answered(1, "");
    place.fence(7, &["put", &url], b"a,1\n").answered(0, "");
    place.fence(7, &["get", &url], b"").answered(0, "a,1\n");
    place.fence(9, &["seal", &url], b"").answered(0, "");
    place.fence(9, &["get", &url], b"").answered(0, "a,1\n");
    for name in ["put", "seal", "check"] {
        refused(&place.fence(8, &[name, &url], b"late"), 76, &["token 8 of lease billing", "token 9"]);
    }
    assert_eq!(place.fence(9, &["check", &url], b"").code, 0);
    place.fence(9, &["put", &url], b"a,2\n").answered(0, "");
    let got = place.fence(9, &["get", &url, "--json"], b"").json();
    assert_eq!(got, json!({"target": url, "result": "found", "name": "billing", "token": 9, "length": 4}));
    refused(&place.fence(9, &["append", &url], b"x"), 64, &["cannot be appended to"]);
    refused(&place.fence(9, &["put", "--adopt", &url], b"x"), 64, &["--adopt is for files"]);
    let many = vec![b'x'; 5 << 20];
    place.fence(9, &["put", &url], &many).answered(0, "");
    assert_eq!(place.fence(9, &["get", &url], b"").out.len(), many.len());
}

#[test]
fn a_bucket_itself_and_missing_credentials_are_refused() {
    let Some(place) = Place::on(Kind::Minio, "fence-foreign") else { return };
    let bucket = format!("s3://fence-foreign?endpoint={}", place.server.endpoint());
    refused(&place.fence(7, &["put", &bucket], b"x"), 64, &["names no object"]);
    refused(&place.fence(7, &["put", "s3://"], b"x"), 64, &["s3"]);
    let url = place.url("a");
    let mut unknown = place.command(7, &["put", &url]);
    unknown.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY").stdin(Stdio::null());
    let unknown = support::did(&mut unknown);
    assert_eq!(unknown.code, 69, "{unknown:?}");
    assert_eq!(place.fence(7, &["get", &url], b"").code, 1);
}

/// The fence depends on the conditions of the server, so a server that ignores them is found before the first write.
#[test]
fn a_server_that_ignores_conditions_is_refused_before_anything_is_written() {
    let Some(place) = Place::on(Kind::Rclone, "fence-liar") else { return };
    let url = place.url("reports/today.csv");
    let did = place.fence(7, &["put", &url], b"a,1\n");
    assert_eq!((did.code, did.out.as_str()), (77, ""), "{did:?}");
    place.fence(7, &["get", &url], b"").answered(1, "");
}
