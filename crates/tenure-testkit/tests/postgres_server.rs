//! PostgreSQL servers of the kit.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

use tenure_testkit::{Authority, PgBouncer, PostgresKind, PostgresServer, PostgresSetup, is_alive};

#[test]
fn acknowledged_writes_survive_a_kill_and_not_a_restart_without_data() {
    let Some(server) = PostgresServer::start_or_skip(PostgresSetup::new()) else { return };
    server.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    server.restart();
    assert_eq!(server.sql("SELECT n, 'x' FROM t"), "7|x");
    server.stop();
    assert!(server.process_number().is_none());
    assert!(server.try_sql_in("postgres", "SELECT 1").is_err());
    server.restart_without_data();
    assert_eq!(server.sql("SELECT to_regclass('t') IS NULL"), "t");
}

#[test]
fn the_newest_server_runs_beside_that_of_debian() {
    let version = |kind| {
        let server = PostgresServer::start_or_skip(PostgresSetup::new().kind(kind))?;
        server.restart();
        Some(server.sql("SHOW server_version_num").parse::<u32>().unwrap() / 10_000)
    };
    let [debian, newest] = PostgresKind::ALL.map(version);
    assert!(debian.is_none_or(|debian| debian >= 15), "{debian:?}");
    assert!(newest.is_none_or(|newest| newest == 18), "{newest:?}");
}

#[test]
fn settings_are_applied_and_can_be_altered() {
    let setup = PostgresSetup::new().setting("synchronous_commit", "off").setting("application_name", "it's");
    let Some(server) = PostgresServer::start_or_skip(setup) else { return };
    assert_eq!(server.sql("SHOW synchronous_commit"), "off");
    server.sql("ALTER SYSTEM SET synchronous_commit = on");
    server.sql("SELECT pg_reload_conf()");
    tenure_testkit::wait_until("the setting is loaded", || server.sql("SHOW synchronous_commit") == "on");
}

#[test]
fn several_servers_run_at_once_and_are_different_clusters() {
    let Some(first) = PostgresServer::shared() else { return };
    let Some(second) = PostgresServer::start_or_skip(PostgresSetup::new()) else { return };
    assert_ne!(first.address(), second.address());
    let identifier = "SELECT system_identifier FROM pg_control_system()";
    assert_ne!(first.sql(identifier), second.sql(identifier));
}

#[test]
fn a_password_and_tls_are_demanded_over_tcp() {
    let certificate = Authority::new().certify(&["127.0.0.1"]);
    let setup = PostgresSetup::new().password("secret").encrypted(certificate);
    let Some(server) = PostgresServer::start_or_skip(setup) else { return };
    let url = server.url();
    assert_eq!(url, format!("postgres://postgres:secret@{}/postgres", server.address()));
    let connects = |url: &str| {
        let mut psql = std::process::Command::new("psql");
        psql.args(["-X", "-w", "-c", "SELECT 1", url]);
        psql.output().expect("psql is installed with the server").status.success()
    };
    assert!(connects(&format!("{url}?sslmode=require")));
    assert!(!connects(&format!("{url}?sslmode=disable")));
    assert!(!connects(&format!("{}?sslmode=require", url.replace("secret", "wrong"))));
}

#[test]
fn a_dropped_server_leaves_no_process() {
    let Some(server) = PostgresServer::start_or_skip(PostgresSetup::new()) else { return };
    let number = server.process_number().expect("it runs");
    let children = tenure_testkit::children_of(number);
    assert!(children.len() >= 4, "{children:?}");
    drop(server);
    assert!(!is_alive(number) && !children.into_iter().any(is_alive));
}

#[test]
fn a_paused_server_answers_when_it_is_resumed_and_an_old_snapshot_forgets() {
    let Some(server) = PostgresServer::start_or_skip(PostgresSetup::new()) else { return };
    server.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
    let snapshot = server.snapshot();
    server.sql("UPDATE t SET n = 2");
    server.pause();
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| server.sql("SELECT n FROM t"));
        tenure_testkit::sleep_ms(300);
        assert!(!answer.is_finished());
        server.resume();
        assert_eq!(answer.join().unwrap(), "2");
    });
    server.restart_from(&snapshot);
    assert_eq!(server.sql("SELECT n FROM t"), "1");
    server.restart_from(&snapshot);
    assert_eq!(server.sql("SELECT n FROM t"), "1");
}

#[test]
fn a_full_disk_crashes_the_server_and_a_freed_one_has_everything_acknowledged() {
    let Some(server) = PostgresServer::start_or_skip(PostgresSetup::new().disk(96)) else { return };
    server.sql("CREATE TABLE t (n int, filler text)");
    server.fill_disk();
    let acknowledged = (1..).take_while(|n| {
        let insert = format!("INSERT INTO t SELECT {n}, repeat('x', 1000) FROM generate_series(1, 100)");
        server.try_sql_in("postgres", &insert).is_ok()
    });
    let acknowledged = acknowledged.last().unwrap_or(0);
    server.free_disk();
    server.restart();
    assert_eq!(server.sql("SELECT coalesce(max(n), 0) FROM t"), acknowledged.to_string());
}

#[test]
fn a_replica_follows_is_read_only_and_can_be_promoted() {
    let Some(server) = PostgresServer::start_or_skip(PostgresSetup::new()) else { return };
    let replica = server.replica();
    server.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    tenure_testkit::wait_until("the replica follows", || {
        replica.try_sql_in("postgres", "SELECT n FROM t").is_ok_and(|n| n == "7")
    });
    assert_eq!(replica.sql("SELECT pg_is_in_recovery()"), "t");
    assert!(replica.try_sql_in("postgres", "INSERT INTO t VALUES (8)").unwrap_err().contains("read-only"));
    server.kill();
    replica.promote();
    replica.sql("INSERT INTO t VALUES (8)");
}

#[test]
fn pgbouncer_shares_one_connection_between_clients() {
    let Some(server) = PostgresServer::shared() else { return };
    let Some(pooler) = PgBouncer::start_or_skip(server) else { return };
    let connection = || {
        let mut psql = std::process::Command::new("psql");
        psql.args(["-X", "-A", "-t", "-c", "SELECT pg_backend_pid()", &pooler.url_to("postgres")]);
        let output = psql.output().expect("psql is installed with the server");
        assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), pooler.output());
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(connection(), connection());
}
