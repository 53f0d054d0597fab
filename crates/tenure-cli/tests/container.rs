//! The command on a container of Azure, on Microsoft's emulator.

mod support;

use std::process::Command;

use support::{Did, Home, did, refused};
use tenure_testkit::{Kind, Server};

/// The command, with a container for its leases and credentials in its environment.
struct Place {
    home: Home,
    server: &'static Server,
    url: String,
}

impl Place {
    fn new(container: &str) -> Option<Self> {
        let server = Server::shared(Kind::Azurite)?;
        server.create_bucket(container);
        let url = format!("az://{container}/locks?endpoint={}", server.endpoint());
        Some(Self { home: Home::new(&format!("az-{container}")), server, url })
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
fn a_command_runs_under_a_lease_in_a_container_and_its_token_grows() {
    let Some(place) = Place::new("run") else { return };
    place.tenure(&["run", "x", "--", "echo", "hi"]).answered(0, "hi\n");
    let token = |did: Did| did.out.trim().parse::<u64>().unwrap_or_else(|error| panic!("{error}: {did:?}"));
    let first = token(place.tenure(&["run", "x", "--", "sh", "-c", "echo $TENURE_TOKEN"]));
    let second = token(place.tenure(&["run", "x", "--", "sh", "-c", "echo $TENURE_TOKEN"]));
    assert!(second > first, "{second} after {first}");
    let listed = place.tenure(&["ls", "--json"]).json();
    assert_eq!(listed["leases"].as_array().unwrap().len(), 1, "the scratch key is hidden: {listed}");
    assert_eq!(place.tenure(&["run", "x", "--", "sh", "-c", "exit 7"]).code, 7);
}

#[test]
fn a_handle_finds_its_container_again_and_excludes_other_contenders() {
    let Some(place) = Place::new("handles") else { return };
    let handle = place.tenure(&["acquire", "job", "--ttl", "60s"]);
    assert_eq!((handle.code, handle.err.as_str()), (0, ""));
    assert_eq!(place.tenure(&["run", "--no-wait", "job", "--", "true"]).code, 75);
    // The handle names its store, so the caller does not have to.
    let mut release = place.home.command(&["release", handle.out.trim()]);
    did(release.envs(place.server.environment())).answered(0, "");
    assert_eq!(place.tenure(&["status", "job"]).code, 1, "it is free");
}

#[test]
fn each_problem_of_a_container_has_its_own_message_and_code_and_shows_no_secret() {
    let Some(place) = Place::new("wrong") else { return };
    let run = ["run", "x", "--", "echo", "hi"];
    let missing = Place {
        home: Home::new("az-missing"),
        url: place.url.replace("az://wrong/", "az://no-such-container/"),
        ..place
    };
    refused(
        &missing.tenure(&run),
        78,
        &[
            "cannot be used: the store does not exist: there is no container \"no-such-container\": create it, or correct \
             the URL",
        ],
    );
    let place = Place { url: missing.url.replace("no-such-container", "wrong"), ..missing };
    let with = |name: &str, value: &str| {
        let mut command = place.command(&run);
        did(command.env_remove("AZURE_STORAGE_ACCOUNT_KEY").env(name, value))
    };
    refused(&with("AZURE_STORAGE_KEY", "aHVzaA=="), 69, &["the access key is not one of this account"]);
    refused(&with("AZURE_STORAGE_KEY", "hush!"), 69, &["AZURE_STORAGE_KEY is not an access key"]);
    let broken = with("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=hush\nX: y");
    refused(&broken, 69, &["AZURE_STORAGE_SAS_TOKEN contains a line break"]);
    assert!(!broken.err.contains("hush"), "{broken:?}");
    refused(&with("NOTHING", ""), 69, &["there are no credentials: set AZURE_STORAGE_KEY"]);
}

#[test]
fn a_probe_finds_azurite_fit_for_any_number_of_machines() {
    let Some(place) = Place::new("probe") else { return };
    let did = place.tenure(&["probe", "--rounds", "2"]);
    assert_eq!(did.code, 0, "{did:?}");
    assert!(did.out.contains(": fit, for any number of machines"), "{did:?}");
    assert!(did.out.contains("have another version with each write"), "{did:?}");
}
