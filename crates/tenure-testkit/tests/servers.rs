//! Each server starts, serves, restarts with its data, and ends with its test.
#![allow(clippy::disallowed_methods, reason = "other processes are given time")]

mod support;

use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use support::client::Client;
use support::objects::{Condition, Objects};
use tenure_testkit::{Kind, Server, is_alive, wait_until};

#[test]
fn minio_checks_conditions_and_restarts_with_its_data() {
    let Some(server) = Server::start_or_skip(Kind::Minio) else { return };
    restarts_with_its_data(&server, 412);
}

#[test]
fn seaweedfs_checks_conditions_and_restarts_with_its_data() {
    let Some(server) = Server::start_or_skip(Kind::SeaweedFs) else { return };
    restarts_with_its_data(&server, 412);
}

#[test]
fn rclone_ignores_conditions_and_restarts_with_its_data() {
    let Some(server) = Server::start_or_skip(Kind::Rclone) else { return };
    restarts_with_its_data(&server, 200);
}

#[test]
#[ignore = "only with TENURE_SERVERS=ceph"]
fn ceph_rgw_checks_conditions_and_its_gateway_restarts_with_its_data() {
    let Some(server) = Server::start_or_skip(Kind::CephRgw) else { return };
    restarts_with_its_data(&server, 412);
}

#[test]
fn azurite_checks_conditions_and_restarts_with_its_data() {
    let Some(server) = Server::start_or_skip(Kind::Azurite) else { return };
    restarts_with_its_data(&server, 409);
}

#[test]
fn fake_gcs_checks_conditions_and_restarts_with_its_data() {
    let Some(server) = Server::start_or_skip(Kind::FakeGcs) else { return };
    restarts_with_its_data(&server, 412);
}

#[test]
fn the_google_emulator_ignores_conditions_and_restarts_with_its_data() {
    let Some(server) = Server::start_or_skip(Kind::GcpEmulator) else { return };
    restarts_with_its_data(&server, 200);
}

/// `second` is the status of a second create.
fn restarts_with_its_data(server: &Server, second: u16) {
    let objects = Objects::of(server);
    assert_eq!(objects.put("/missing/key", "one", Condition::Always).status, 404, "there is no such bucket");
    server.create_bucket("leases");
    server.create_bucket("leases");
    let created = objects.put("/leases/key", "one", Condition::Absent);
    assert!(matches!(created.status, 200 | 201), "{created:?}");
    assert_eq!(objects.put("/leases/key", "one", Condition::Absent).status, second);
    let mut stranger = Client::new(server.address());
    let refused = stranger.put(&objects.path("/leases/key"), "two").unwrap();
    assert!(matches!(refused.status, 400 | 401 | 403), "it asks for credentials: {refused:?}");

    // Only Azurite forgets when it is killed.
    if server.kind() != Kind::Azurite {
        server.kill();
        assert!(is_closed(server.address()));
        server.restart();
        assert_eq!(objects.get("/leases/key").body.unwrap(), "one");
    }

    let process = server.process_number().unwrap();
    server.stop();
    assert!(is_closed(server.address()));
    assert!(!is_alive(process) && server.process_number().is_none());
    server.restart();
    server.restart();
    assert_eq!(objects.get("/leases/key").body.unwrap(), "one");
}

#[test]
fn fake_gcs_keeps_an_object_that_is_written_while_the_server_is_killed() {
    let Some(server) = Server::start_or_skip(Kind::FakeGcs) else { return };
    server.create_bucket("leases");
    let objects = Objects::of(&server);
    let mut version = objects.version(&objects.put("/leases/key", "one", Condition::Absent));
    for _ in 0..20 {
        std::thread::scope(|scope| {
            // Writes until the server is killed.
            let writer = scope.spawn(move || {
                let mut version = version;
                while let Ok(answer) = objects.try_put("/leases/key", "two", Condition::Version(&version)) {
                    version = objects.version(&answer);
                }
            });
            std::thread::sleep(Duration::from_millis(10));
            server.kill();
            writer.join().unwrap();
        });
        server.restart();
        assert_eq!(objects.put("/leases/key", "three", Condition::Absent).status, 412, "it exists");
        version = objects.version(&objects.get("/leases/key"));
    }
}

#[test]
fn a_dropped_server_stops_and_its_directory_is_deleted() {
    let Some(server) = Server::start_or_skip(Kind::Rclone) else { return };
    let address = server.address();
    wait_until("the log is written", || homes_of(std::process::id(), address).len() == 1);
    drop(server);
    assert!(is_closed(address));
    assert_eq!(homes_of(std::process::id(), address).len(), 0);
}

#[test]
fn a_server_stops_when_its_test_panics() {
    let Some(server) = Server::start_or_skip(Kind::Rclone) else { return };
    let address = server.address();
    let test = std::thread::spawn(move || {
        let _server = server;
        panic!("on purpose");
    });
    test.join().unwrap_err();
    assert!(is_closed(address));
}

#[test]
fn a_shared_server_outlives_the_test_that_started_it() {
    let first = std::thread::spawn(|| Server::shared(Kind::Rclone).map(Server::address));
    let Some(address) = first.join().unwrap() else { return };
    assert_eq!(Server::shared(Kind::Rclone).unwrap().address(), address);
    assert!(!is_closed(address));
}

const KILLED: &str = "TENURE_TEST_KILLED";

/// A process with a server that waits to be killed.
#[test]
#[ignore = "a process of other tests"]
fn waits_to_be_killed_with_its_server() {
    if std::env::var_os(KILLED).is_none() {
        return;
    }
    let Some(server) = Server::start_or_skip(Kind::Rclone) else { return };
    println!("serves at {}", server.address());
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_server_stops_when_its_process_is_killed() {
    use std::io::{BufRead, BufReader};

    if Server::start_or_skip(Kind::Rclone).is_none() {
        return;
    }
    let mut other = Command::new(std::env::current_exe().unwrap());
    other
        .args(["--ignored", "--exact", "--nocapture", "waits_to_be_killed_with_its_server"])
        .env(KILLED, "yes");
    let mut other = other.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| line.split_once("serves at ")?.1.parse().ok()).unwrap();
    assert!(!is_closed(address));

    other.kill().unwrap();
    other.wait().unwrap();
    wait_until("the server has ended", || is_closed(address));
    wait_until("its home is removed", || homes_of(other.id(), address).is_empty());
}

#[test]
fn a_missing_server_is_skipped_with_a_note_and_fails_in_ci() {
    let skips = std::env::temp_dir().join(format!("tenure-testkit-skips-{}", std::process::id()));
    let test = |ci| {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "--nocapture", "a_dropped_server_stops_and_its_directory_is_deleted"]);
        let done = test
            .env("XDG_CACHE_HOME", "/nonexistent")
            .env("CI", ci)
            .env("TENURE_SKIPS", &skips)
            .output()
            .unwrap();
        (done.status.success(), String::from_utf8(done.stderr).unwrap())
    };
    let (passed, said) = test("false");
    assert!(passed && said.starts_with("SKIPPED: rclone "), "{said}");
    assert!(said.contains("is not installed") && said.contains("servers/install"), "{said}");
    let noted = std::fs::read_to_string(&skips).unwrap();
    assert!(noted.contains("tests/servers.rs:") && noted.contains(": rclone "), "{noted}");
    assert!(!test("true").0);
    assert_eq!(std::fs::read_to_string(&skips).unwrap().lines().count(), 2, "both were noted");
    std::fs::remove_file(&skips).unwrap();
}

fn is_closed(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_err()
}

/// The directories of a process's servers whose log names this address.
fn homes_of(process: u32, address: SocketAddr) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().path());
    let ours = format!("-rclone-{process}-");
    let homes = entries.filter(|path| path.to_string_lossy().contains(&ours));
    let knows = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("log")).is_ok_and(|log| log.contains(&address.to_string()))
    };
    homes.filter(knows).collect()
}
