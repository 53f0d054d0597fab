//! The faulty proxy in front of real databases: it cuts connections after the server has applied a command.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tenure_testkit::{
    Fault, FaultyProxy, PostgresServer, RedisKind, RedisServer, Rule, sleep_ms, wait_until,
};

/// A connection that sends commands as a person types them.
struct RedisClient(TcpStream);

impl RedisClient {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self(stream)
    }

    /// The complete reply of one line.
    fn ask(&mut self, command: &str) -> io::Result<String> {
        self.0.write_all(format!("{command}\r\n").as_bytes())?;
        self.line()
    }

    fn line(&mut self) -> io::Result<String> {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !line.ends_with(b"\r\n") {
            if self.0.read(&mut byte)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            line.push(byte[0]);
        }
        Ok(String::from_utf8(line).unwrap().trim_end().to_owned())
    }
}

fn redis() -> Option<(&'static RedisServer, FaultyProxy)> {
    let server = RedisServer::shared(RedisKind::Redis)?;
    Some((server, FaultyProxy::start_redis(server.address())))
}

fn postgres(table: &str) -> Option<(&'static PostgresServer, FaultyProxy)> {
    let server = PostgresServer::shared()?;
    server.sql(&format!("CREATE TABLE {table} (n int)"));
    Some((server, FaultyProxy::start_postgres(server.address())))
}

/// Runs SQL through the proxy, with a simple query.
fn psql(server: &PostgresServer, proxy: &FaultyProxy, sql: &str) -> Output {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-A", "-t", "-c", sql, &server.url_at(proxy.address())]);
    psql.output().expect("psql is installed with the server")
}

#[test]
fn a_cut_after_a_command_of_redis_leaves_it_applied_and_one_before_does_not() {
    let Some((server, proxy)) = redis() else { return };
    let after = proxy.install(Rule::new(Fault::CutAfter).method("INCR").containing("after").nth(2));
    let before = proxy.install(Rule::new(Fault::CutBefore).containing("before"));
    let mut client = RedisClient::new(proxy.address());
    assert_eq!(client.ask("INCR after").unwrap(), ":1");
    assert_eq!(client.ask("INCR other").unwrap(), ":1");
    client.ask("INCR after").unwrap_err();
    RedisClient::new(proxy.address()).ask("incr before").unwrap_err();
    proxy.settle(LONG);
    assert_eq!(server.command(&["GET", "after"]), "2");
    assert_eq!(server.command(&["GET", "before"]), "");
    assert_eq!((after.counts().installed, after.counts().applied), (1, 1));
    assert_eq!((before.counts().installed, before.counts().applied), (1, 0));
    let log: Vec<_> = proxy.log().into_iter().map(|each| (each.method, each.target, each.answered)).collect();
    assert_eq!(log[2], ("INCR".to_owned(), "after".to_owned(), None));
    assert_eq!(log[1], ("INCR".to_owned(), "other".to_owned(), Some(200)));
}

#[test]
fn a_command_of_redis_is_delivered_after_its_client_has_gone() {
    let Some((server, proxy)) = redis() else { return };
    proxy.install(Rule::new(Fault::CutThenDeliver(SHORT)).containing("late-a"));
    proxy.install(Rule::new(Fault::HangThenDeliver(SHORT)).containing("late-b"));
    proxy.install(Rule::new(Fault::DelayRequest(SHORT)).containing("late-c"));
    for key in ["late-a", "late-b", "late-c"] {
        let mut client = RedisClient::new(proxy.address());
        client.0.write_all(format!("SET {key} 1\r\n").as_bytes()).unwrap();
        // It gives up at once.
        sleep_ms(20);
        drop(client);
        assert_eq!(server.command(&["EXISTS", key]), "0", "{key}");
    }
    proxy.settle(LONG);
    assert_eq!(server.command(&["EXISTS", "late-a", "late-b", "late-c"]), "3");
    assert!(proxy.counts().iter().all(|(_, counts)| counts.applied == 1), "{:?}", proxy.counts());
}

#[test]
fn replies_of_redis_are_late_lost_or_cut_in_the_middle() {
    let Some((_, proxy)) = redis() else { return };
    proxy.install(Rule::new(Fault::DelayAnswer(SHORT)).containing("slow"));
    proxy.install(Rule::new(Fault::CutMidAnswer).containing("middle"));
    proxy.install(Rule::new(Fault::SwallowAnswer(SHORT)).containing("lost"));
    proxy.install(Rule::new(Fault::SwallowRequest(SHORT)).containing("hole"));
    let began = Instant::now();
    assert_eq!(RedisClient::new(proxy.address()).ask("ECHO slow").unwrap(), "$4");
    assert!(began.elapsed() >= SHORT);
    let mut client = RedisClient::new(proxy.address());
    assert_eq!(client.ask("ECHO middle").unwrap(), "$6");
    client.line().unwrap_err();
    for word in ["lost", "hole"] {
        let began = Instant::now();
        RedisClient::new(proxy.address()).ask(&format!("ECHO {word}")).unwrap_err();
        assert!(began.elapsed() >= SHORT, "{word}");
    }
    proxy.settle(LONG);
    assert!(proxy.counts().iter().all(|(_, counts)| counts.installed == 1), "{:?}", proxy.counts());
}

#[test]
fn a_pipeline_of_redis_gets_the_replies_before_the_cut() {
    let Some((server, proxy)) = redis() else { return };
    proxy.install(Rule::new(Fault::CutAfter).method("INCR").containing("pipeline").nth(3).orderly());
    let mut client = RedisClient::new(proxy.address());
    assert_eq!(client.ask("INCR pipeline\r\nINCR pipeline\r\nINCR pipeline").unwrap(), ":1");
    assert_eq!(client.line().unwrap(), ":2");
    client.line().unwrap_err();
    assert_eq!(server.command(&["GET", "pipeline"]), "3");
}

#[test]
fn subscriptions_of_redis_pass_in_both_versions_of_the_protocol() {
    let Some((server, proxy)) = redis() else { return };
    for version in ["2", "3"] {
        let mut client = RedisClient::new(proxy.address());
        client.ask(&format!("HELLO {version}")).unwrap();
        client.0.write_all(b"SUBSCRIBE news\r\n").unwrap();
        wait_until("the subscription is there", || server.command(&["PUBLISH", "news", "today"]) == "1");
        while client.line().unwrap() != "today" {}
    }
}

#[test]
fn a_cut_after_a_query_of_postgres_leaves_it_applied_and_one_before_does_not() {
    let Some((server, proxy)) = postgres("cut") else { return };
    let after = proxy.install(Rule::new(Fault::CutAfter).method("QUERY").containing("VALUES (7)"));
    let before = proxy.install(Rule::new(Fault::CutBefore).containing("VALUES (8)").orderly());
    assert!(psql(server, &proxy, "INSERT INTO cut VALUES (6)").status.success());
    for number in [7, 8] {
        assert!(!psql(server, &proxy, &format!("INSERT INTO cut VALUES ({number})")).status.success());
    }
    proxy.settle(LONG);
    assert_eq!(server.sql("SELECT n FROM cut ORDER BY n"), "6\n7");
    assert_eq!((after.counts().installed, after.counts().applied), (1, 1));
    assert_eq!((before.counts().installed, before.counts().applied), (1, 0));
    assert!(!psql(server, &proxy, "SELECT nonsense").status.success());
    assert_eq!(proxy.log().last().unwrap().served, [400]);
}

#[test]
fn a_query_of_postgres_is_delivered_after_its_client_has_gone() {
    let Some((server, proxy)) = postgres("late") else { return };
    let late = proxy.install(Rule::new(Fault::CutThenDeliver(Duration::from_secs(1))).containing("VALUES"));
    assert!(!psql(server, &proxy, "INSERT INTO late VALUES (1)").status.success());
    assert_eq!(server.sql("SELECT n FROM late"), "");
    proxy.settle(LONG);
    assert_eq!(server.sql("SELECT n FROM late"), "1");
    assert_eq!(late.counts().applied, 1);
}

#[test]
fn prepared_statements_of_postgres_are_matched_by_their_sql_and_parameters() {
    let Some((server, proxy)) = postgres("prepared") else { return };
    let script = std::env::temp_dir().join(format!("tenure-proxy-databases-{}.sql", std::process::id()));
    std::fs::write(&script, "\\set number 12345\nINSERT INTO prepared VALUES (:number);\n").unwrap();
    let bench = |mode: &str| {
        let program = std::fs::read_dir("/usr/lib/postgresql").unwrap().flatten().map(|each| each.path());
        let mut bench = Command::new(program.max().unwrap().join("bin/pgbench"));
        bench.args(["-n", "-t", "2", "-M", mode, "-f"]).arg(&script);
        bench.arg(server.url_at(proxy.address()));
        bench.output().expect("pgbench is installed with the server").status.success()
    };
    assert!(bench("extended") && bench("prepared"));
    assert_eq!(server.sql("SELECT count(*) FROM prepared"), "4");
    let log = proxy.log();
    let executed = log.iter().filter(|each| each.method == "EXECUTE");
    assert_eq!(executed.filter(|each| each.target == "INSERT INTO prepared VALUES ($1);\n12345").count(), 4);
    for mode in ["extended", "prepared"] {
        let cut = proxy.install(Rule::new(Fault::CutAfter).method("EXECUTE").containing("12345").times(1));
        bench(mode);
        proxy.settle(LONG);
        assert_eq!(cut.counts().applied, 1);
        cut.remove();
    }
    assert_eq!(server.sql("SELECT count(*) FROM prepared"), "6");
    std::fs::remove_file(script).unwrap();
}

#[test]
#[should_panic(expected = "cannot happen on a connection to a database")]
fn a_fault_of_http_is_refused() {
    let nowhere = ([127, 0, 0, 1], 9).into();
    FaultyProxy::start_redis(nowhere).install(Rule::new(Fault::TwiceFirstAnswer));
}

/// Long enough for a step on a busy machine.
const SHORT: Duration = Duration::from_millis(400);

/// Longer than any step takes.
const LONG: Duration = Duration::from_secs(30);
