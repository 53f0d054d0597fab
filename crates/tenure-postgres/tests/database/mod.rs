//! A test's own database on a real server.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure_conformance::{CheckOutcome, Harness, Suite, Supported};
use tenure_postgres::{Environment, Postgres, PostgresBuilder};
use tenure_store::{BoxFuture, Key, Store};
use tenure_testkit::{Fault, FaultyProxy, PostgresServer, PostgresSetup, Rule};

/// A database behind a proxy, so that answers and requests can be lost.
pub(crate) struct Database {
    server: Running,
    proxy: FaultyProxy,
    name: &'static str,
}

enum Running {
    /// Shared by all tests of the process.
    Shared(&'static PostgresServer),
    /// Owned by one test, which may stop and start it.
    Own(Box<PostgresServer>),
}

impl Deref for Running {
    type Target = PostgresServer;

    fn deref(&self) -> &PostgresServer {
        match self {
            Self::Shared(server) => server,
            Self::Own(server) => server,
        }
    }
}

impl Database {
    /// Creates a database on the server that all tests share.
    pub(crate) fn on_shared(name: &'static str) -> Option<Self> {
        Some(Self::new(Running::Shared(PostgresServer::shared()?), name))
    }

    /// Creates a database on a separate server.
    pub(crate) fn alone(name: &'static str) -> Option<Self> {
        Self::alone_with(PostgresSetup::new(), name)
    }

    /// The same, with other settings.
    pub(crate) fn alone_with(setup: PostgresSetup, name: &'static str) -> Option<Self> {
        Some(Self::new(Running::Own(Box::new(PostgresServer::start_or_skip(setup)?)), name))
    }

    fn new(server: Running, name: &'static str) -> Self {
        server.sql(&format!("CREATE DATABASE {name}"));
        let proxy = FaultyProxy::start_postgres(server.address());
        Self { server, proxy, name }
    }

    pub(crate) fn server(&self) -> &PostgresServer {
        &self.server
    }

    pub(crate) fn proxy(&self) -> &FaultyProxy {
        &self.proxy
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Executes SQL as the superuser in this database.
    #[track_caller]
    pub(crate) fn sql(&self, statements: &str) -> String {
        self.server.sql_in(self.name, statements)
    }

    /// A builder whose statements pass the proxy.
    pub(crate) fn builder(&self) -> PostgresBuilder {
        self.builder_at(self.proxy.address())
    }

    /// A builder for another address of the server.
    pub(crate) fn builder_at(&self, address: SocketAddr) -> PostgresBuilder {
        let builder = Postgres::builder().host_at(&address.ip().to_string(), address.port());
        builder.user("postgres").database(self.name)
    }

    /// Opens a separate store, with its own connections.
    pub(crate) fn store(&self) -> Postgres {
        open(&self.builder())
    }

    /// Runs the complete contract, without skipping anything that the store promises.
    pub(crate) async fn keeps_the_contract(&self, racers: usize, rounds: usize) {
        let suite = Suite::new(1).only_contract().versions_name_the_run();
        let report = suite.racers(racers).rounds(rounds).run(self).await;
        println!("{report}");
        report.assert_passed();
        for skip in report.skips() {
            let CheckOutcome::Skipped(why) = &skip.verdict else { unreachable!("it is a skip") };
            assert!(why.starts_with("not promised: "), "the harness can do everything: {report}");
        }
    }

    /// Runs the lease checks on the machine's own clock, because the speed of the server is real.
    pub(crate) async fn carries_leases(&self, contenders: usize, ttl: Duration) {
        let report = Suite::new(1).only_leases().ttl(ttl).contenders(contenders).turns(2).run(self).await;
        println!("{report}");
        report.assert_passed();
        let skipped: Vec<_> = report.skips().map(|finding| finding.check).collect();
        assert_eq!(skipped, ["tokens grow though the record was forgotten"], "nothing can be forgotten here");
    }

    /// Runs the checks of the primitives on the machine's own clock, all of them at the same time.
    pub(crate) async fn carries_primitives(&self, ttl: Duration) {
        let report = Suite::new(1).only_primitives().ttl(ttl).run(self).await;
        println!("{report}");
        report.assert_passed();
        assert_eq!(report.skips().count(), 0, "{report}");
    }
}

/// Opens a store without the variables of this process.
pub(crate) fn open(builder: &PostgresBuilder) -> Postgres {
    builder.open_in(&Environment::default()).unwrap()
}

impl Harness for Database {
    fn name(&self) -> String {
        self.store().to_string()
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async { Arc::new(self.store()) as Arc<dyn Store> })
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        BootClock.sleep_until(BootClock.now() + wait)
    }

    fn race(&self, racers: Vec<BoxFuture<'static, ()>>) -> BoxFuture<'_, ()> {
        tenure_testkit::race(racers)
    }

    fn restart(&self) -> BoxFuture<'_, Supported> {
        Box::pin(async {
            match &self.server {
                Running::Own(server) => server.restart(),
                Running::Shared(_) => return Supported::No("others use this server".into()),
            }
            Supported::Yes
        })
    }

    fn lose_next_answer(&self) -> BoxFuture<'_, Supported> {
        self.proxy.install(Rule::new(Fault::CutAfter).containing(WRITE).times(1));
        Box::pin(async { Supported::Yes })
    }

    fn lose_next_request(&self) -> BoxFuture<'_, Supported> {
        self.proxy.install(Rule::new(Fault::CutBefore).containing(WRITE).times(1));
        Box::pin(async { Supported::Yes })
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        Box::pin(async move {
            let key = key.as_str().replace('\'', "''");
            self.sql(&format!("DELETE FROM tenure.record WHERE key = '{key}'"));
            Supported::Yes
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Supported> {
        Box::pin(async {
            self.sql(
                "DROP TABLE IF EXISTS record_backup, token_backup; CREATE TABLE record_backup AS TABLE tenure.record; \
                 CREATE TABLE token_backup AS TABLE tenure.token",
            );
            Supported::Yes
        })
    }

    fn restore(&self) -> BoxFuture<'_, Supported> {
        Box::pin(async {
            self.sql(
                "TRUNCATE tenure.record, tenure.token; INSERT INTO tenure.record TABLE record_backup; \
                 INSERT INTO tenure.token TABLE token_backup",
            );
            Supported::Yes
        })
    }
}

/// A part of every statement that writes, and of no other.
pub(crate) const WRITE: &str = "synchronous_commit";
