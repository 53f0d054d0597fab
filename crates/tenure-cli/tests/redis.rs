//! The command on a Redis server.

#![allow(clippy::disallowed_methods, reason = "a thread restarts the server while the command waits")]

mod support;

use std::process::Command;

use support::{Did, Home, did, refused};
use tenure_testkit::{RedisKind, RedisServer, RedisSetup};

/// The command, with a server for its leases.
struct Place {
    home: Home,
    server: RedisServer,
    url: String,
}

impl Place {
    fn on(name: &str, setup: RedisSetup, options: &str) -> Option<Self> {
        let server = RedisServer::start_or_skip(RedisKind::Redis, setup)?;
        let url = format!("redis://{}{options}", server.address());
        Some(Self { home: Home::new(name), server, url })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("TENURE_STORE", &self.url).env("PATH", "/usr/bin:/bin");
        command
    }

    fn tenure(&self, args: &[&str]) -> Did {
        did(&mut self.command(args))
    }
}

const RUN: [&str; 5] = ["run", "x", "--", "echo", "hi"];

#[test]
fn a_command_runs_under_a_lease_on_redis_and_its_token_grows() {
    let Some(place) = Place::on("redis-run", RedisSetup::new(), "?accept=restart") else { return };
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
fn a_server_that_has_just_started_grants_nothing_until_its_quarantine_is_over() {
    let Some(place) = Place::on("redis-quarantine", RedisSetup::new(), "?quarantine=2s") else { return };
    let run = |wait: &str| place.tenure(&["run", wait, "--ttl", "2s", "x", "--", "echo", "hi"]);
    refused(
        &run("--no-wait"),
        75,
        &["may have forgotten leases: nothing is granted for", "with --wait DURATION"],
    );
    let waited = run("--wait=10s");
    assert_eq!((waited.code, waited.out.as_str()), (0, "hi\n"), "{waited:?}");
    // Standard error is no terminal here. One line says what it waits for, how long at most, and why.
    let troubles = waited.troubles();
    let [line] = troubles.lines().collect::<Vec<_>>()[..] else { panic!("{waited:?}") };
    for part in [
        "standing by for at most 10s: lease x on redis://",
        "may have forgotten leases: nothing is granted for",
    ] {
        assert!(line.contains(part), "{line}");
    }
    run("--no-wait").answered(0, "hi\n");
    place.server.restart();
    assert_eq!(run("--no-wait").code, 75);
    let long = place.tenure(&RUN);
    refused(&long, 78, &["a ttl of 15s lasts longer: use a ttl of 2s or shorter"]);
}

/// It loads its data for longer than the safety check tries, and begins a quarantine.
#[test]
fn a_limited_wait_lasts_while_the_server_loads_its_data_and_during_the_quarantine_after_that() {
    let slowly = RedisSetup::new()
        .setting("key-load-delay", "1200")
        .setting("loading-process-events-interval-bytes", "1024");
    let Some(place) = Place::on("redis-loading", slowly, "?quarantine=1s") else { return };
    let fill = "for number = 1, 5000 do redis.call('SET', number, string.rep('x', 64)) end";
    place.server.command(&["EVAL", fill, "0"]);
    place.server.command(&["SAVE"]);
    std::thread::scope(|scope| {
        place.server.kill();
        let restart = scope.spawn(|| place.server.restart());
        let did = place.tenure(&["run", "--wait=30s", "--ttl", "1s", "x", "--", "echo", "hi"]);
        assert_eq!((did.code, did.out.as_str()), (0, "hi\n"), "{did:?}");
        let troubles = did.troubles();
        let said: Vec<_> = troubles.lines().collect();
        assert!(
            said[0].contains("waiting for at most 30s for redis://")
                && said[0].contains("it is loading its data"),
            "{did:?}"
        );
        assert!(said[1].contains("forgotten leases: nothing is granted for") && said.len() == 2, "{did:?}");
        restart.join().unwrap();
    });
    place.server.kill();
    let late = place.tenure(&["--check-store", "run", "--wait=6s", "--ttl", "1s", "x", "--", "echo", "hi"]);
    let end = late.err.lines().last().unwrap_or_default();
    assert_eq!((late.code, late.out.as_str()), (69, ""), "{late:?}");
    for part in ["took longer than --wait 6s", "cannot connect to 127.0.0.1:", ", or wait longer"] {
        assert!(end.contains(part), "{late:?}");
    }
}

#[test]
fn each_problem_of_a_server_has_its_own_message_and_code_and_shows_no_password() {
    let setup = RedisSetup::new().password("hush-hush");
    let Some(place) = Place::on("redis-wrong", setup, "?accept=restart") else { return };
    refused(&place.tenure(&RUN), 69, &["it requires a password: put it into REDISCLI_AUTH"]);
    let wrong = did(place.command(&RUN).env("REDISCLI_AUTH", "hush"));
    refused(&wrong, 69, &["the password of the user \"default\" is wrong"]);
    assert!(!wrong.err.contains("hush"), "{wrong:?}");
    did(place.command(&RUN).env("REDISCLI_AUTH", "hush-hush")).answered(0, "hi\n");
    let in_url = did(place.command(&RUN).env("TENURE_STORE", "redis://me:hush@localhost"));
    refused(&in_url, 64, &["the URL of a store carries no password"]);
    assert!(!in_url.err.contains("hush"), "{in_url:?}");

    let nowhere = format!("{}&db=99", place.url);
    let at_nowhere = |args: &[&str]| {
        did(place.command(args).env("REDISCLI_AUTH", "hush-hush").env("TENURE_STORE", &nowhere))
    };
    for args in [&["run", "--wait", "1h", "x", "--", "true"][..], &["status", "x"], &["probe", "--quiet"]] {
        refused(
            &at_nowhere(args),
            78,
            &["the store does not exist", "it has no database 99: correct db= in the URL"],
        );
    }

    let evicting = RedisSetup::new().setting("maxmemory", "50mb").setting("maxmemory-policy", "allkeys-lru");
    let Some(place) = Place::on("redis-evicting", evicting, "?accept=restart") else { return };
    let words = ["evicts keys when its memory is full (maxmemory-policy allkeys-lru)", "accept=eviction"];
    refused(&place.tenure(&RUN), 77, &words);
    let probe = place.tenure(&["probe"]);
    assert!(probe.code != 0 && words.iter().all(|word| probe.err.contains(word)), "{probe:?}");

    let Some(place) = Place::on("redis-replica", RedisSetup::new(), "?accept=restart") else { return };
    let replica = place.server.replica();
    let url = format!("redis://{}?accept=restart", replica.address());
    refused(
        &did(place.command(&RUN).env("TENURE_STORE", &url)),
        77,
        &["is a replica, which accepts no writes"],
    );
    refused(&place.tenure(&RUN), 77, &["has 1 replica,", "accept=failover"]);
    let probe = did(place.command(&["probe"]).env("TENURE_STORE", &url));
    assert!(probe.code != 0 && probe.err.contains("is a replica"), "{probe:?}");
    let url = format!("redis://{}?accept=failover", place.server.address());
    let probe = did(place.command(&["probe"]).env("TENURE_STORE", &url));
    let risks = ["it has 1 replica: a failover may lose", "min-replicas-to-write is 0"];
    assert!(probe.code == 0 && risks.iter().all(|risk| probe.err.contains(risk)), "{probe:?}");
}
