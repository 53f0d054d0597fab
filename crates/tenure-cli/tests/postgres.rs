//! The command on a PostgreSQL server.

mod support;

use std::process::Command;

use support::{Did, Home, did, refused};
use tenure_testkit::{PostgresServer, PostgresSetup};

/// The command, with a server for its leases.
struct Place {
    home: Home,
    server: PostgresServer,
    url: String,
}

impl Place {
    fn on(name: &str, setup: PostgresSetup) -> Option<Self> {
        let server = PostgresServer::start_or_skip(setup)?;
        let url = format!("postgres://postgres@{}/postgres", server.address());
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
fn a_command_runs_under_a_lease_in_postgresql_and_its_token_grows() {
    let Some(place) = Place::on("postgres-run", PostgresSetup::new()) else { return };
    let empty = place.tenure(&["ls"]);
    assert_eq!((empty.code, empty.out.as_str()), (0, ""), "a listing creates no table: {empty:?}");
    assert_eq!(place.server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'tenure'"), "0");
    place.tenure(&RUN).answered(0, "hi\n");
    let token = |did: Did| did.out.trim().parse::<u64>().unwrap_or_else(|error| panic!("{error}: {did:?}"));
    let first = token(place.tenure(&["run", "x", "--", "sh", "-c", "echo $TENURE_TOKEN"]));
    let second = token(place.tenure(&["run", "x", "--", "sh", "-c", "echo $TENURE_TOKEN"]));
    assert!(second > first, "{second} after {first}");
    assert_eq!(place.server.sql("SELECT token FROM tenure.token WHERE key = 'x'"), second.to_string());
    let listed = place.tenure(&["ls", "--json"]).json();
    assert_eq!(listed["leases"].as_array().unwrap().len(), 1, "the scratch key is hidden: {listed}");
    let handle = place.tenure(&["acquire", "job", "--ttl", "60s"]);
    assert_eq!((handle.code, handle.err.as_str()), (0, ""));
    assert_eq!(place.tenure(&["run", "--no-wait", "job", "--", "true"]).code, 75);
    place.tenure(&["release", handle.out.trim()]).answered(0, "");

    let probe = place.tenure(&["probe", "--quiet", "--rounds", "2", "--samples", "10"]);
    assert_eq!(probe.code, 0, "{probe:?}");
}

#[test]
fn an_administrator_creates_the_tables_for_a_role_that_may_not() {
    let Some(place) = Place::on("postgres-init", PostgresSetup::new()) else { return };
    place.server.sql("CREATE ROLE app LOGIN");
    let url = place.url.replace("postgres@", "app@");
    let as_app = |args: &[&str]| did(place.command(args).env("TENURE_STORE", &url));
    refused(
        &as_app(&RUN),
        78,
        &["the store does not exist: the tables", "may not create them", "`tenure store init --print`"],
    );
    assert_eq!(as_app(&["status", "x"]).code, 1, "no lease was ever granted");
    let printed = as_app(&["store", "init", "--print"]);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    let done = place.tenure(&["store", "init"]);
    assert!(done.code == 0 && done.err.contains("is ready for leases"), "{done:?}");
    refused(&as_app(&RUN), 69, &["the role \"app\" may not use the tables"]);
    place.server.sql(&printed.out);
    as_app(&RUN).answered(0, "hi\n");
}

#[test]
fn an_administrator_installs_the_fences_that_the_command_prints() {
    let Some(place) = Place::on("postgres-fences", PostgresSetup::new()) else { return };
    place.server.sql("CREATE ROLE app LOGIN");
    let url = place.url.replace("postgres@", "app@");
    let as_app = |args: &[&str]| did(place.command(args).env("TENURE_STORE", &url));
    assert_eq!(place.tenure(&["store", "init"]).code, 0);
    let printed = as_app(&["store", "init", "--print", "--fences"]);
    assert_eq!((printed.code, printed.err.as_str()), (0, ""));
    for _ in 0..2 {
        place.server.sql(&format!("BEGIN; {} COMMIT", printed.out));
    }
    let call = |token: u32| format!("SET ROLE app; SELECT tenure.fence('orders', 'billing', {token})");
    place.server.sql(&call(7));
    let refusal = place.server.try_sql_in("postgres", &call(6)).unwrap_err();
    assert!(refusal.contains("orders refused token 6 of lease billing: token 7 has been there"), "{refusal}");

    let elsewhere = ["store", "init", "--print", "--fences", "file:///srv/leases"];
    refused(&place.tenure(&elsewhere), 64, &["file:///srv/leases is not a PostgreSQL database"]);
    refused(&place.tenure(&["store", "init", "--fences"]), 64, &["--print"]);
}

#[test]
fn each_problem_of_a_server_has_its_own_message_and_code_and_shows_no_password() {
    let setup = PostgresSetup::new().password("hush-hush");
    let Some(place) = Place::on("postgres-wrong", setup) else { return };
    refused(&place.tenure(&RUN), 69, &["asks for the password of the role \"postgres\", and none was found"]);
    let wrong = did(place.command(&RUN).env("PGPASSWORD", "hush"));
    refused(&wrong, 69, &["the password of the role \"postgres\" is wrong"]);
    assert!(!wrong.err.contains("hush"), "{wrong:?}");
    did(place.command(&RUN).env("PGPASSWORD", "hush-hush")).answered(0, "hi\n");
    let in_url = did(place.command(&RUN).env("TENURE_STORE", "postgres://me:hush@localhost/app"));
    refused(&in_url, 64, &["the URL of a store carries no password"]);
    assert!(!in_url.err.contains("hush"), "{in_url:?}");

    let nowhere = format!("postgres://postgres@{}/nowhere", place.server.address());
    let at_nowhere =
        |args: &[&str]| did(place.command(args).env("PGPASSWORD", "hush-hush").env("TENURE_STORE", &nowhere));
    let words =
        ["the store does not exist", "there is no database \"nowhere\": create it, or correct the URL"];
    refused(&at_nowhere(&["run", "--wait", "1h", "x", "--", "true"]), 78, &words);
    for args in [&["status", "x"][..], &["ls"], &["store", "init"], &["probe", "--quiet"]] {
        refused(&at_nowhere(args), 78, &words);
    }

    let Some(place) = Place::on("postgres-fsync", PostgresSetup::new().setting("fsync", "off")) else {
        return;
    };
    refused(&place.tenure(&RUN), 77, &["fsync = off", "accept=fsync-off"]);
    let probe = place.tenure(&["probe"]);
    assert!(probe.code != 0 && probe.err.contains("fsync = off"), "{probe:?}");
    let accepted = format!("{}?accept=fsync-off", place.url);
    did(place.command(&RUN).env("TENURE_STORE", &accepted)).answered(0, "hi\n");
    let promises = place.tenure(&["store", "guarantees", &accepted, "--json"]).json();
    let kept =
        promises["guarantees"].as_array().unwrap().iter().find(|row| row["name"] == "keeps_acknowledged");
    assert_eq!(kept.unwrap()["answer"], "no, accepted by accept=fsync-off", "{promises}");
    let kv = ["kv", "create", "greeting", "hello"];
    assert_eq!(did(place.command(&kv).env("TENURE_STORE", &accepted)).code, 0, "its loss is accepted, too");

    let replica = place.server.replica();
    let standby = format!("postgres://postgres@{}/postgres", replica.address());
    refused(&did(place.command(&RUN).env("TENURE_STORE", &standby)), 77, &["the server is a standby"]);
    let probe = did(place.command(&["probe"]).env("TENURE_STORE", &standby));
    assert!(probe.code != 0 && probe.err.contains("the server is a standby"), "{probe:?}");
    replica.promote();
    let promoted = format!("{standby}?accept=fsync-off");
    let probe = ["probe", "--quiet", "--rounds", "2", "--samples", "10"];
    let probe = did(place.command(&probe).env("TENURE_STORE", &promoted));
    assert!(probe.code == 0 && probe.err.contains("its timeline is 2"), "{probe:?}");
}
