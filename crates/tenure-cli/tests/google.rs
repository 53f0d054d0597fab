//! The command on a bucket of a stand-in for Google Cloud Storage.

mod support;

use std::process::Command;

use support::{Did, Home, did, refused};
use tenure_testkit::{Kind, Server};

/// The command, with a bucket for its leases and a token in its environment.
struct Place {
    home: Home,
    server: &'static Server,
    url: String,
}

impl Place {
    fn on(kind: Kind, bucket: &str) -> Option<Self> {
        let server = Server::shared(kind)?;
        server.create_bucket(bucket);
        let url = format!("gs://{bucket}/locks?endpoint={}", server.endpoint());
        Some(Self { home: Home::new(bucket), server, url })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("TENURE_STORE", &self.url).envs(self.server.environment()).env("PATH", "/usr/bin:/bin");
        command
    }

    fn tenure(&self, args: &[&str]) -> Did {
        did(&mut self.command(args))
    }
}

const RUN: [&str; 5] = ["run", "x", "--", "echo", "hi"];

#[test]
fn a_command_runs_under_a_lease_in_a_bucket_of_google_and_its_token_grows() {
    let Some(place) = Place::on(Kind::FakeGcs, "run") else { return };
    place.tenure(&RUN).answered(0, "hi\n");
    let token = |did: Did| did.out.trim().parse::<u64>().unwrap_or_else(|error| panic!("{error}: {did:?}"));
    let first = token(place.tenure(&["run", "x", "--", "sh", "-c", "echo $TENURE_TOKEN"]));
    let second = token(place.tenure(&["run", "x", "--", "sh", "-c", "echo $TENURE_TOKEN"]));
    assert!(second > first, "{second} after {first}");
    let listed = place.tenure(&["ls", "--json"]).json();
    assert_eq!(listed["leases"].as_array().unwrap().len(), 1, "the scratch key is hidden: {listed}");
    let handle = place.tenure(&["acquire", "job", "--ttl", "60s"]);
    assert_eq!((handle.code, handle.err.as_str()), (0, ""));
    assert_eq!(place.tenure(&["run", "--no-wait", "job", "--", "true"]).code, 75);
    place.tenure(&["release", handle.out.trim()]).answered(0, "");
}

#[test]
fn each_problem_of_a_bucket_of_google_has_its_own_message_and_code_and_shows_no_secret() {
    let Some(place) = Place::on(Kind::FakeGcs, "wrong") else { return };
    let with = |name: &str, value: &str| did(place.command(&RUN).env(name, value));
    refused(
        &with("TENURE_STORE", &place.url.replace("wrong", "no-such-bucket")),
        78,
        &[
            "cannot be used: the store does not exist: there is no bucket \"no-such-bucket\": create it, or correct the URL",
        ],
    );
    let answer = with("GOOGLE_OAUTH_ACCESS_TOKEN", "hush-hush");
    refused(&answer, 69, &["the access token is not valid or has expired"]);
    assert!(!answer.err.contains("hush-hush"), "{answer:?}");
    let mut anonymous = place.command(&RUN);
    anonymous.env_remove("GOOGLE_OAUTH_ACCESS_TOKEN");
    refused(&did(&mut anonymous), 69, &["there are no credentials: name the file of a service account key"]);
    let short = place.tenure(&["run", "--ttl", "5s", "x", "--", "true"]);
    refused(&short, 78, &["accepts one write of a key every 1.1s", "use a ttl of 11s or longer"]);
    place.tenure(&["run", "--ttl", "11s", "x", "--", "true"]).answered(0, "");
}

#[test]
fn an_emulator_that_ignores_conditions_is_refused_before_anything_runs() {
    let Some(place) = Place::on(Kind::GcpEmulator, "liar") else { return };
    refused(
        &place.tenure(&RUN),
        77,
        &["it accepted a create over an existing entry", "nothing is granted on it: use another store"],
    );
}

#[test]
fn the_probe_names_google_by_its_address() {
    let home = Home::new("google-name");
    // The proxy does not exist, so nothing leaves this machine.
    let mut probe = home.command(&["probe", "gs://bucket/locks?proxy=http://127.0.0.1:1"]);
    let probed = did(probe.env("GOOGLE_OAUTH_ACCESS_TOKEN", "t"));
    assert_eq!(probed.code, 69, "{probed:?}");
    assert!(probed.err.contains(" of Google Cloud Storage in its own scratch area"), "{probed:?}");
}
