//! The safety check of a bucket runs before the first grant, once a day, and on request.

mod support;

use std::process::Command;

use support::{Did, Home, did};
use tenure_testkit::{Fault, FaultyProxy, Kind, Rule, Server};

/// The command, with a bucket behind a proxy that logs the requests.
struct Place {
    home: Home,
    server: &'static Server,
    proxy: FaultyProxy,
    url: String,
}

impl Place {
    fn on_minio(bucket: &str) -> Option<Self> {
        let server = Server::shared(Kind::Minio)?;
        server.create_bucket(bucket);
        let proxy = FaultyProxy::start(server.address());
        let url = format!("s3://{bucket}/locks?endpoint={}", proxy.endpoint());
        Some(Self { home: Home::new(bucket), server, proxy, url })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(&["--store", &self.url]);
        command.args(args).envs(self.server.environment()).env("PATH", "/usr/bin:/bin");
        command
    }

    /// The result of the command, and its GET and PUT requests: of the scratch key, and of other keys.
    fn asked(&self, args: &[&str]) -> (Did, [(usize, usize); 2]) {
        self.proxy.clear_log();
        let did = did(&mut self.command(args));
        let log = self.proxy.log();
        let count = |method: &str, scratch: bool| {
            let of = |target: &str| target.contains(".tenure") == scratch;
            log.iter().filter(|exchange| exchange.method == method && of(&exchange.target)).count()
        };
        let counts = [true, false].map(|scratch| (count("GET", scratch), count("PUT", scratch)));
        (did, counts)
    }
}

#[test]
fn the_safety_check_runs_once_and_again_on_request() {
    let Some(place) = Place::on_minio("verdict") else { return };
    let costs = |args: &[&str]| {
        let (did, [scratch, _]) = place.asked(args);
        assert!(did.code == 0 || did.code == 1, "{did:?}");
        scratch
    };
    assert_eq!(costs(&["status", "x"]), (0, 0), "reading writes nothing");
    assert_eq!(costs(&["run", "x", "--", "true"]), (4, 3), "the scratch key is made");
    for args in [["status", "x"].as_slice(), &["ls"], &["run", "x", "--", "true"], &["history", "x"]] {
        assert_eq!(costs(args), (0, 0), "{args:?}");
    }
    assert_eq!(costs(&["--check-store", "run", "x", "--", "true"]), (3, 2));
    assert_eq!(costs(&["status", "x", "--check-store"]), (3, 2), "the flag may come after the command");
    // A handle that separate commands renew and release.
    let handle = place.asked(&["acquire", "y"]).0.out.trim().to_owned();
    let (renewed, [scratch, others]) = place.asked(&["renew", &handle]);
    assert_eq!((renewed.code, scratch, others), (0, (0, 0), (1, 1)), "{renewed:?}");
    let (released, [scratch, others]) = place.asked(&["release", renewed.out.trim()]);
    assert_eq!((released.code, scratch, others), (0, (0, 0), (1, 1)), "{released:?}");
}

#[test]
fn an_unusable_verdict_is_silently_ignored() {
    let Some(place) = Place::on_minio("verdict-damaged") else { return };
    let costs = || {
        let (did, [scratch, _]) = place.asked(&["run", "x", "--", "true"]);
        assert_eq!((did.code, did.troubles().as_str()), (0, ""));
        scratch
    };
    assert_eq!((costs(), costs()), ((4, 3), (0, 0)));
    let directory = place.home.0.join(".local/state/tenure-verdicts");
    for entry in std::fs::read_dir(&directory).unwrap() {
        std::fs::write(entry.unwrap().path(), "{}\n").unwrap();
    }
    assert_eq!((costs(), costs()), ((3, 2), (0, 0)));
    std::fs::remove_dir_all(&directory).unwrap();
    std::fs::write(&directory, "in the way").unwrap();
    assert_eq!((costs(), costs()), ((3, 2), (3, 2)));
}

#[test]
fn a_failed_probe_removes_the_verdict_of_a_bucket() {
    let Some(place) = Place::on_minio("verdict-probed") else { return };
    let costs = || place.asked(&["run", "x", "--", "true"]).1[0];
    assert_eq!((costs(), costs()), ((4, 3), (0, 0)));
    let lie = place.proxy.install(Rule::new(Fault::ForgetCondition).method("PUT"));
    let probed = did(&mut place.command(&["probe", "--quiet", "--racers", "4", "--rounds", "2"]));
    assert_eq!(probed.code, 77, "{probed:?}");
    lie.remove();
    assert_eq!((costs(), costs()), ((3, 2), (0, 0)));
}
