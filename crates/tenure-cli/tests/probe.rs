//! `tenure probe`: on a directory, on real servers, on a server that ignores conditions, and through a faulty proxy.

mod support;

use std::process::{Command, Stdio};

use support::{Did, Home, did, refused};
use tenure_probe::{Clause, Weight};
use tenure_testkit::wait_until;

#[test]
fn a_directory_is_fit_for_one_machine_and_nothing_is_left_in_it() {
    let home = Home::new("probe-file");
    let probed = home.tenure(&["probe", "--racers", "8", "--rounds", "2", "--samples", "20"]);
    assert_eq!(probed.code, 0, "{probed:?}");
    assert!(probed.out.ends_with("fit, for all processes of one machine\n"), "{}", probed.out);
    for part in [
        "CHECKED",
        "races",
        "kept",
        "a replace",
        "p99",
        "A ttl of ",
        "and that is within ttl − drift − margin",
    ] {
        assert!(probed.out.contains(part), "{part:?} is not in {}", probed.out);
    }
    let lines: Vec<_> = probed.err.lines().collect();
    assert!(
        lines[0].starts_with(&format!("tenure: probing {} in its own scratch area", home.url())),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.ends_with(": races")), "{lines:?}");
    assert_eq!(names(&home), ["tenure.mark", "tenure.tried"]);
    assert_eq!(home.tenure(&["ls"]).out, "");
}

#[test]
fn json_output_is_one_object_and_nothing_else() {
    let home = Home::new("probe-json");
    let probed = home.tenure(&["probe", "--json", "--racers", "4", "--rounds", "1", "--samples", "10"]);
    assert_eq!((probed.code, probed.err.as_str()), (0, ""));
    let json = probed.json();
    assert_eq!((&json["fitness"], &json["reach"]), (&"fit".into(), &"one machine".into()), "{json}");
    assert_eq!(json["store"], home.url());
    assert!(json["checks"].as_array().unwrap().iter().all(|check| check["verdict"] != "broken"), "{json}");
    assert_eq!(json["measured"]["replace"]["samples"], 10);
    assert!(json["ttl"]["recommended_ms"].as_u64().unwrap() >= 2_000, "{json}");
    assert_eq!((&json["cleaned"]["left"], &json["etags"]), (&0.into(), &serde_json::Value::Null));
    assert!(json["calls"]["total"].as_u64().unwrap() > 1_000);
}

#[test]
fn absurd_numbers_and_impossible_stores_are_refused_in_one_sentence() {
    let home = Home::new("probe-wrong");
    for (args, part) in [
        (["--racers", "1"], "racers must be from 2 to 512, not 1"),
        (["--racers", "100000"], "racers must be from 2 to 512"),
        (["--rounds", "0"], "rounds must be from 1 to 10000"),
        (["--samples", "5"], "samples must be from 10 to 10000"),
        (["--rounds", "many"], "invalid digit"),
        (["--quiet", "memory:"], "ends with this command"),
        (["--quiet", "nonsense"], "not the URL of a store"),
    ] {
        refused(&home.tenure(&["probe", args[0], args[1]]), 64, &[part]);
    }
    assert!(!home.leases().exists(), "nothing was made");
}

#[test]
fn a_signal_aborts_the_probe_which_cleans_up() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let home = Home::new("probe-signal");
        let probe = home.command(&["probe", "--rounds", "10000"]);
        // A shell that runs the tests in the background may ignore INT, and the command would inherit that.
        let mut command = Command::new("env");
        command.env_clear().envs(probe.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.arg("--default-signal=INT,TERM").arg(probe.get_program()).args(probe.get_args());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("a probe is under way", || home.leases().exists() && names(&home).len() >= 50);
        let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        wait_until("it ends", || child.try_wait().unwrap().is_some());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "there is no verdict");
        assert_eq!(
            names(&home),
            ["tenure.mark", "tenure.tried"],
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_page_has_the_table_of_clauses() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/command/probe.md");
    let page = std::fs::read_to_string(page).unwrap();
    for clause in Clause::ALL {
        let follows = match clause.weight {
            Weight::Refuses => "refused",
            Weight::Limits => "a limit",
        };
        let row = format!("\n| {} | {follows} | {} |\n", clause.title, clause.because);
        assert!(page.contains(&row), "docs/reference/command/probe.md lacks {row}");
    }
}

/// Names in the directory of the store, without temporary files.
/// The proxy does not exist, so nothing leaves this machine.
#[test]
fn a_provider_is_named_by_the_address_of_its_endpoint() {
    let home = Home::new("probe-provider");
    let at = |endpoint: &str| {
        let url = format!("s3://bucket/locks?endpoint={endpoint}&proxy=http://127.0.0.1:1");
        let mut command = home.command(&["probe", &url]);
        command.envs([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_REGION", "auto")]);
        let probed = did(&mut command);
        assert_eq!(probed.code, 69, "{probed:?}");
        probed.err.lines().next().unwrap().to_owned()
    };
    let named = at("https://account.r2.cloudflarestorage.com");
    assert!(named.contains(" of Cloudflare R2 in its own scratch area"), "{named}");
    let own = at("https://minio.example.org");
    assert!(own.contains("proxy=http://127.0.0.1:1 in its own scratch area"), "{own}");
}

fn names(home: &Home) -> Vec<String> {
    let names = std::fs::read_dir(home.leases()).unwrap().flatten();
    let mut names: Vec<_> = names.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with(".tmp"));
    names.sort();
    names
}

mod buckets {

    use tenure_testkit::{ErrorAnswer, Fault, FaultyProxy, Kind, Rule, Server};

    use super::*;

    /// Runs the command with credentials for a server.
    fn tenure(home: &Home, server: &Server, args: &[&str]) -> Did {
        did(home.command(args).envs(server.environment()))
    }

    fn url(bucket: &str, endpoint: &str) -> String {
        format!("s3://{bucket}/locks?endpoint={endpoint}")
    }

    #[test]
    fn minio_is_fit_and_nothing_is_left_in_it() {
        let Some(server) = Server::shared(Kind::Minio) else { return };
        server.create_bucket("probed");
        let (home, url) = (Home::new("probe-minio"), url("probed", &server.endpoint()));
        assert_eq!(tenure(&home, server, &["--store", &url, "run", "mine", "--", "true"]).code, 0);
        let probed = tenure(&home, server, &["probe", &url]);
        assert_eq!(probed.code, 0, "{probed:?}");
        assert!(probed.out.contains(": fit, for any number of machines\n"), "{}", probed.out);
        assert!(probed.out.contains("ETags              ETags work with quotes"), "{}", probed.out);
        assert!(probed.out.contains("have an equal version, which does no harm"), "{}", probed.out);
        assert!(probed.out.contains("32 racers in 10 rounds"), "{}", probed.out);
        assert!(probed.out.contains("A ttl of "), "{}", probed.out);
        assert!(!probed.err.contains("are left"), "{}", probed.err);
        assert_eq!(left(server, "probed"), ["locks/.tenure/scratch.record", "locks/mine.record"]);
    }

    /// Ages are in whole seconds, and a value that was just written has none. So an age is never too high, and no
    /// reason to refuse a server.
    #[test]
    fn minio_is_also_fit_with_its_server_clock() {
        let Some(server) = Server::shared(Kind::Minio) else { return };
        server.create_bucket("probed-ages");
        let home = Home::new("probe-ages");
        let url = url("probed-ages", &server.endpoint()) + "&accept=server-clock";
        let args = ["probe", "--quiet", "--racers", "4", "--rounds", "1", "--samples", "10", &url];
        let probed = tenure(&home, server, &args);
        assert_eq!(probed.code, 0, "{probed:?}");
        assert!(probed.out.contains("ages                 kept       2 of 2 checks"), "{}", probed.out);
    }

    #[test]
    fn a_server_that_ignores_every_condition_fails_the_probe() {
        let Some(server) = Server::shared(Kind::Rclone) else { return };
        server.create_bucket("probed");
        let (home, url) = (Home::new("probe-rclone"), url("probed", &server.endpoint()));
        let args = ["probe", "--quiet", "--racers", "8", "--rounds", "2", "--samples", "10", &url];
        let probed = tenure(&home, server, &args);
        assert_eq!(probed.code, 77, "{probed:?}");
        assert!(probed.out.contains("conditional create   BROKEN"), "{}", probed.out);
        assert!(probed.out.contains(": refused\n"), "{}", probed.out);
        assert!(!probed.out.contains("A ttl of "), "{}", probed.out);
        assert_eq!(probed.err.lines().count(), 1, "{}", probed.err);
        assert!(
            probed.err.contains("is refused: conditional create: a create over an entry was applied"),
            "{}",
            probed.err
        );
    }

    #[test]
    fn a_server_that_sometimes_ignores_a_condition_fails_the_probe_with_the_rate() {
        let Some(server) = Server::shared(Kind::Minio) else { return };
        server.create_bucket("forgetful");
        let proxy = FaultyProxy::start(server.address());
        let lie = proxy.install(Rule::new(Fault::ForgetCondition).method("PUT").chance(0.02, 7));
        let (home, url) = (Home::new("probe-forgetful"), url("forgetful", &proxy.endpoint()));
        let probed = tenure(&home, server, &["probe", "--quiet", "--json", "--rounds", "20", &url]);
        assert_eq!(probed.code, 77, "{probed:?}");
        let json = probed.json();
        assert_eq!(json["fitness"], "refused");
        let races: Vec<_> =
            json["checks"].as_array().unwrap().iter().filter(|check| check["clause"] == "races").collect();
        let told = races[0]["seen"].as_str().unwrap_or_else(|| panic!("{races:#?}"));
        let bad: usize = told.split(' ').next().unwrap().parse().unwrap();
        assert!((1..20).contains(&bad), "{told}");
        assert!(told.contains("of 20 rounds were not won by exactly one"), "{told}");
        assert!(lie.counts().applied > 10, "{:?}", lie.counts());
        assert_eq!(left(server, "forgetful"), Vec::<String>::new());
    }

    #[test]
    fn a_store_without_permission_to_delete_is_fit_and_the_probe_lists_what_it_left() {
        let Some(server) = Server::shared(Kind::Minio) else { return };
        server.create_bucket("kept");
        let proxy = FaultyProxy::start(server.address());
        let denied = ErrorAnswer::new(403, "AccessDenied");
        proxy.install(Rule::new(Fault::AnswerInstead(denied)).method("DELETE"));
        let (home, url) = (Home::new("probe-kept"), url("kept", &proxy.endpoint()));
        let args = ["probe", "--quiet", "--racers", "4", "--rounds", "1", "--samples", "10", &url];
        let probed = tenure(&home, server, &args);
        assert_eq!(probed.code, 0, "{probed:?}");
        let objects = left(server, "kept");
        assert!(
            objects.len() > 100 && objects.iter().all(|name| name.starts_with("locks/.tenure/probe/")),
            "{objects:?}"
        );
        for part in [
            "entries are left in s3://kept/locks",
            "may not delete",
            "which ls hides",
            "aws s3 rm --recursive s3://kept/locks/.tenure/probe/",
        ] {
            assert!(probed.err.contains(part), "{part:?} is not in {}", probed.err);
        }
        let listed = tenure(&home, server, &["--store", &url, "ls", "--json"]).json();
        assert_eq!(listed["leases"].as_array().unwrap().len(), 0, "ls hides it: {listed}");
    }

    #[test]
    fn a_probe_of_an_unreachable_forbidden_or_missing_bucket_fails() {
        let Some(server) = Server::shared(Kind::Minio) else { return };
        server.create_bucket("unreachable");
        let home = Home::new("probe-unreachable");
        let proxy = FaultyProxy::start(server.address());
        proxy.refuse_connections();
        let unreachable = tenure(&home, server, &["probe", "-q", &url("unreachable", &proxy.endpoint())]);
        refused(&unreachable, 69, &["could not be probed", "could not be reached"]);
        let mut stranger = home.command(&["probe", "-q", &url("unreachable", &server.endpoint())]);
        let stranger = did(stranger.envs(server.environment()).env("AWS_SECRET_ACCESS_KEY", "wrong"));
        refused(&stranger, 69, &["could not be probed", "secret is wrong"]);
        let missing = tenure(&home, server, &["probe", "-q", &url("no-such-bucket", &server.endpoint())]);
        refused(&missing, 78, &["could not be probed: the store does not exist: there is no bucket"]);
    }

    /// Names of all objects in a bucket, as an administrator sees them: at most a thousand.
    fn left(server: &Server, bucket: &str) -> Vec<String> {
        let answer = server.administer("GET", &format!("/{bucket}"), &[], "");
        answer.split("<Key>").skip(1).map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }

    fn google(bucket: &str, server: &Server) -> String {
        server.create_bucket(bucket);
        format!("gs://{bucket}/locks?endpoint={}", server.endpoint())
    }

    #[test]
    fn an_emulator_of_google_that_ignores_conditions_fails_the_probe() {
        let Some(server) = Server::shared(Kind::GcpEmulator) else { return };
        let (home, url) = (Home::new("probe-liar"), google("liar", server));
        let args = ["probe", "--quiet", "--racers", "4", "--rounds", "1", "--samples", "10", &url];
        let probed = tenure(&home, server, &args);
        assert_eq!(probed.code, 77, "{probed:?}");
        assert!(probed.out.contains("conditional create   BROKEN"), "{}", probed.out);
    }

    /// Writes of one key are 1.1 s apart, so the probe is a small one.
    #[test]
    fn the_stand_in_for_google_is_fit_and_nothing_is_left_in_it() {
        let Some(server) = Server::shared(Kind::FakeGcs) else { return };
        let (home, url) = (Home::new("probe-google"), google("probed", server));
        let args = ["probe", "--racers", "8", "--rounds", "1", "--samples", "10", &url];
        let probed = tenure(&home, server, &args);
        assert_eq!(probed.code, 0, "{probed:?}");
        assert!(probed.out.contains(": fit, for any number of machines\n"), "{}", probed.out);
        assert!(probed.out.contains("the store wants 1.1s between two writes of one key"), "{}", probed.out);
        assert!(!probed.err.contains("are left"), "{}", probed.err);
    }
}
