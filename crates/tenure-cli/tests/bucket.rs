//! The command on a bucket of a real server.

mod support;

use std::process::Command;

use support::{Did, Home, did, refused};
use tenure_testkit::{Kind, Server};

/// The command, with a bucket for its leases and credentials in its environment.
struct Place {
    home: Home,
    server: &'static Server,
    url: String,
}

impl Place {
    fn on(kind: Kind, bucket: &str) -> Option<Self> {
        let server = Server::shared(kind)?;
        server.create_bucket(bucket);
        let url = format!("s3://{bucket}/locks?endpoint={}", server.endpoint());
        Some(Self { home: Home::new(bucket), server, url })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(&["--store", &self.url]);
        command.args(args).envs(self.server.environment()).env("PATH", "/usr/bin:/bin");
        command
    }

    fn tenure(&self, args: &[&str]) -> Did {
        did(&mut self.command(args))
    }
}

#[test]
fn a_command_runs_under_a_lease_in_a_bucket_and_its_token_grows() {
    let Some(place) = Place::on(Kind::Minio, "run") else { return };
    place.tenure(&["run", "x", "--", "echo", "hi"]).answered(0, "hi\n");
    let token = |did: Did| did.out.trim().parse::<u64>().unwrap_or_else(|error| panic!("{error}: {did:?}"));
    let first = token(place.tenure(&["run", "x", "--", "sh", "-c", "echo $TENURE_TOKEN"]));
    let second = token(place.tenure(&["run", "x", "--", "sh", "-c", "echo $TENURE_TOKEN"]));
    assert!(second > first, "{second} after {first}");
    let listed = place.tenure(&["ls", "--json"]).json();
    assert_eq!(listed["leases"].as_array().unwrap().len(), 1, "the scratch key is hidden: {listed}");
    assert_eq!(listed["leases"][0]["name"], "x");
    assert_eq!(place.tenure(&["status", "x"]).code, 1, "it is free");
    assert_eq!(place.tenure(&["run", "x", "--", "sh", "-c", "exit 7"]).code, 7);
}

/// The first grant waits for the next second of the bucket's clock, and for no holder.
#[test]
fn a_new_lease_is_granted_without_waiting_for_a_holder_and_with_a_wait_shorter_than_its_first_grant() {
    let Some(place) = Place::on(Kind::Minio, "first-grants") else { return };
    // Connecting counts too, so the store is checked before.
    place.tenure(&["run", "checked", "--", "true"]).answered(0, "");
    place.tenure(&["run", "new/no-wait", "--no-wait", "--", "echo", "hi"]).answered(0, "hi\n");
    place.tenure(&["run", "new/wait", "--wait", "700ms", "--", "echo", "hi"]).answered(0, "hi\n");
    assert_eq!(place.tenure(&["acquire", "new/handle", "--wait", "700ms"]).code, 0);
    place.tenure(&["steal", "new/stolen", "--wait", "700ms", "--reason", "x", "--", "true"]).answered(0, "");
}

#[test]
fn a_handle_finds_its_bucket_again_and_excludes_other_contenders() {
    let Some(place) = Place::on(Kind::Minio, "handles") else { return };
    let handle = |did: &Did| {
        assert_eq!((did.code, did.err.as_str()), (0, ""));
        did.out.trim().to_owned()
    };
    let first = handle(&place.tenure(&["acquire", "job", "--ttl", "60s"]));
    assert_eq!(place.tenure(&["run", "--no-wait", "job", "--", "true"]).code, 75);
    // The handle names its store, so the caller does not have to.
    let mut renew = place.home.command(&["renew", &first]);
    let second = handle(&did(renew.envs(place.server.environment())));
    let mut release = place.home.command(&["release", &second]);
    did(release.envs(place.server.environment())).answered(0, "");
    assert_eq!(place.tenure(&["status", "job"]).code, 1, "it is free");
}

#[test]
fn status_shows_the_requests_of_a_lease_and_no_money_without_a_known_price() {
    let Some(place) = Place::on(Kind::Minio, "cost") else { return };
    let text = place.tenure(&["status", "x", "--cost"]);
    assert_eq!(text.code, 1, "it is free");
    assert!(text.out.contains("the holder      758 PUT     545,685 PUT  ?\n"), "{text:?}");
    let told = place.tenure(&["status", "x", "--cost", "--json"]).json();
    assert_eq!(
        (&told["cost"]["waiting"]["per_hour"], &told["cost"]["prices"]),
        (&833.into(), &serde_json::Value::Null)
    );
    assert!(place.tenure(&["status", "x", "--json"]).json().get("cost").is_none());
}

/// The profile is not part of a store's name: it comes from the configured URL of the same store.
#[test]
fn a_handle_is_renewed_with_the_profile_of_the_configured_store() {
    let Some(place) = Place::on(Kind::Minio, "profiles") else { return };
    let (key, secret) = (place.server.access_key(), place.server.secret_key());
    let keys = format!("[ci]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    place.home.write(".aws/credentials", keys);
    place.home.write(".config/tenure/config.toml", format!("store = \"{}&profile=ci\"\n", place.url));
    let handle = place.home.tenure(&["acquire", "job", "--ttl", "60s"]);
    assert_eq!((handle.code, handle.err.as_str()), (0, ""));
    assert!(!handle.out.contains(secret));
    place.home.tenure(&["release", handle.out.trim()]).answered(0, "");
}

#[test]
fn a_server_that_ignores_conditions_is_refused_before_anything_runs() {
    let Some(place) = Place::on(Kind::Rclone, "liar") else { return };
    let did = place.tenure(&["run", "x", "--", "echo", "hi"]);
    refused(
        &did,
        77,
        &["it accepted a create over an existing entry", "nothing is granted on it: use another store"],
    );
}

#[test]
fn each_problem_of_a_bucket_has_its_own_message_and_code_and_shows_no_secret() {
    let Some(place) = Place::on(Kind::Minio, "wrong") else { return };
    let run = ["run", "x", "--", "echo", "hi"];
    let endpoint = place.server.endpoint();
    let missing = Place {
        home: Home::new("missing"),
        url: format!("s3://no-such-bucket/locks?endpoint={endpoint}"),
        ..place
    };
    refused(
        &missing.tenure(&run),
        78,
        &[
            "cannot be used: the store does not exist: there is no bucket \"no-such-bucket\": create it, or correct the URL",
        ],
    );

    let mut anonymous = missing.home.command(&["--store", &format!("s3://wrong/locks?endpoint={endpoint}")]);
    refused(&did(anonymous.args(run)), 69, &["there are no credentials: set AWS_ACCESS_KEY_ID"]);

    let mut stranger = missing.home.command(&["--store", &format!("s3://wrong/locks?endpoint={endpoint}")]);
    stranger.envs(missing.server.environment()).env("AWS_SECRET_ACCESS_KEY", "hush-hush");
    let answer = did(stranger.args(run));
    refused(&answer, 69, &["the access key is not known there, or its secret is wrong"]);
    assert!(!answer.err.contains("hush-hush"), "{answer:?}");

    // The port of a server that has exited.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut unreachable =
        missing.home.command(&["--store", &format!("s3://wrong/locks?endpoint=http://{closed}")]);
    refused(&did(unreachable.envs(missing.server.environment()).args(run)), 69, &["Connection refused"]);
}

/// Two users of one URL whose environments differ must see that they use different stores.
#[test]
fn messages_name_the_endpoint_that_the_environment_adds() {
    let Some(place) = Place::on(Kind::Minio, "named") else { return };
    let (endpoint, url) = (place.server.endpoint(), "s3://named/locks");
    let at = |variable: &str, endpoint: &str, args: &[&str]| {
        let mut command = place.home.command(&["--store", url]);
        did(command
            .args(args)
            .envs(place.server.environment())
            .env("PATH", "/usr/bin:/bin")
            .env(variable, endpoint))
    };
    let resolved = format!("{url}?endpoint={endpoint}&region=us-east-1");
    let told = at("AWS_ENDPOINT_URL_S3", &endpoint, &["run", "x", "--", "sh", "-c", "echo $TENURE_STORE"]);
    told.answered(0, &format!("{resolved}\n"));
    let listed = at("AWS_ENDPOINT_URL", &endpoint, &["ls", "--json"]).json();
    assert_eq!(listed["store"], resolved.as_str());

    let doubled = endpoint.replace("127.0.0.1", "named.localhost");
    let did = at("AWS_ENDPOINT_URL_S3", &doubled, &["run", "x", "--", "true"]);
    let server = endpoint.replace("127.0.0.1", "localhost");
    let parts = [
        format!("AWS_ENDPOINT_URL_S3={doubled} names the bucket \"named\""),
        format!("write endpoint={server}&path-style=false in the URL"),
    ];
    refused(&did, 64, &parts.each_ref().map(String::as_str));
}

#[test]
fn a_server_accepts_the_lifecycle_rules_of_the_documentation() {
    let Some(place) = Place::on(Kind::Minio, "lifecycle") else { return };
    let versioning = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
    place.server.configure("lifecycle", "versioning", versioning);
    let shipped: serde_json::Value =
        serde_json::from_str(include_str!("../../../docs/stores/s3-lifecycle.json")).unwrap();
    // The conversion that the command of AWS makes.
    let rules: String =
        shipped["Rules"].as_array().unwrap().iter().map(|rule| element("Rule", rule)).collect();
    let body = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
    place.server.configure("lifecycle", "lifecycle", &body);
    let kept = place.server.administer("GET", "/lifecycle?lifecycle", &[], "");
    for part in [
        "<Prefix>locks/</Prefix>",
        "<Prefix>locks/.tenure/probe/</Prefix>",
        "<ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker>",
        "<NewerNoncurrentVersions>1</NewerNoncurrentVersions>",
    ] {
        assert_eq!(kept.matches(part).count(), 1, "{part}: {kept}");
    }
    // The rules are for the prefix of the documentation, below which the probe works.
    let object =
        tenure_object::S3::builder("lifecycle").prefix("locks").keys("a", "b").region("here").open().unwrap();
    let scratch = tenure_store::Key::from_stored(".tenure/probe/1-a/first").unwrap();
    assert!(object.object_of(&scratch).starts_with("locks/.tenure/probe/"), "{}", object.object_of(&scratch));
}

/// A JSON value as an XML element.
fn element(name: &str, value: &serde_json::Value) -> String {
    let inside = match value {
        serde_json::Value::Object(fields) => {
            fields.iter().map(|(name, value)| element(name, value)).collect()
        }
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("<{name}>{inside}</{name}>")
}
