//! The property test of fences, on real servers: no admitted write is followed by an admitted one with a smaller token.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

mod support;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, cmd};
use support::Place;
use tenure_core::Token;
use tenure_fence::suite::{self, Counts, Plan, Resource, Shown, Writer};
use tenure_fence::{Fence, FenceError, FencingToken, Seal};
use tenure_redis::RedisFence;
use tenure_testkit::{Fault, RedisKind, RedisServer, RedisSetup, Rule, quota};

/// A list that a fence guards: it keeps all writes.
struct Ledger {
    place: Place,
    name: String,
    /// True if the writers connect through the proxy.
    is_proxied: bool,
}

impl Resource for Ledger {
    type Writer = LedgerWriter;

    async fn writer(&self) -> LedgerWriter {
        let address = if self.is_proxied { self.place.proxy.address() } else { self.place.server.address() };
        let store = tenure_redis::Redis::builder(&address.to_string()).accept_restart().open().unwrap();
        LedgerWriter {
            fence: RedisFence::new(&store, &self.name).unwrap(),
            list: format!("{{{}}}:list", self.name),
        }
    }

    async fn shown(&self) -> Vec<Shown> {
        shown(&self.place.server, &format!("{{{}}}:list", self.name))
    }
}

struct LedgerWriter {
    fence: RedisFence,
    list: String,
}

impl Writer for LedgerWriter {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let line = format!("{}:{number}", token.token());
        self.fence.write(token, &[Cmd::rpush(&self.list, line), Cmd::incr("count", 1)]).await.map(drop)
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(self.fence.seal(token).await)
    }
}

/// The lines of a list, each `TOKEN:NUMBER`.
fn shown(server: &RedisServer, list: &str) -> Vec<Shown> {
    let lines = server.command(&["LRANGE", list, "0", "-1"]);
    let parsed = lines.lines().map(|line| {
        let (token, number) = line.split_once(':').unwrap();
        Shown { token: Some(token.parse().unwrap()), number: number.parse().unwrap() }
    });
    parsed.collect()
}

async fn passes(kind: RedisKind, is_proxied: bool, runs: u64, calls: u32) -> Option<Counts> {
    let place = Place::start(kind, RedisSetup::new(), |builder| builder.accept_restart())?;
    let mut ledger = Ledger { place, name: String::new(), is_proxied };
    if is_proxied {
        // A late delivery brings an old write after newer ones.
        let late = Fault::CutThenDeliver(Duration::from_millis(20));
        for (seed, fault) in
            [(1, Fault::CutAfter), (2, Fault::CutBefore), (3, Fault::CutMidAnswer), (4, late)]
        {
            let rule = Rule::new(fault).method("EVALSHA").containing("fence:");
            ledger.place.proxy.install(rule.chance(0.03, seed));
        }
    }
    let mut total = Counts::default();
    for seed in 0..runs {
        ledger.name = format!("ledger-{seed}");
        let plan = Plan::new(seed).calls(calls).keeps_all();
        let counts =
            suite::run(&ledger, plan).await.unwrap_or_else(|why| panic!("{kind:?}, seed {seed}: {why}"));
        total.admitted += counts.admitted;
        total.refused += counts.refused;
        total.unknown += counts.unknown;
        total.crashes += counts.crashes;
    }
    println!("{kind:?}: {total}");
    Some(total)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tens_of_thousands_of_writes_never_go_back_on_redis() {
    let Some(counts) = passes(RedisKind::Redis, false, quota(40, 400), 100).await else { return };
    assert!(counts.admitted > 2_000 && counts.refused > 10_000 && counts.unknown == 0, "{counts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tens_of_thousands_of_writes_never_go_back_on_valkey() {
    let Some(counts) = passes(RedisKind::Valkey, false, quota(40, 400), 100).await else { return };
    assert!(counts.admitted > 2_000 && counts.refused > 10_000 && counts.unknown == 0, "{counts}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_with_lost_answers_and_late_deliveries_never_go_back() {
    for kind in RedisKind::ALL {
        let Some(counts) = passes(kind, true, quota(10, 80), 100).await else { return };
        assert!(counts.admitted > 300 && counts.refused > 500 && counts.unknown > 100, "{counts}");
    }
}

/// Reads the mark, compares, and writes: three commands, without a script.
struct CheckThenWrite {
    server: RedisServer,
    name: String,
}

impl Resource for CheckThenWrite {
    type Writer = CheckThenWriter;

    async fn writer(&self) -> CheckThenWriter {
        let client = redis::Client::open(self.server.url()).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        CheckThenWriter { connection, name: self.name.clone() }
    }

    async fn shown(&self) -> Vec<Shown> {
        shown(&self.server, &format!("{}:list", self.name))
    }
}

struct CheckThenWriter {
    connection: MultiplexedConnection,
    name: String,
}

impl Writer for CheckThenWriter {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let (mark, list) = (format!("{}:mark", self.name), format!("{}:list", self.name));
        let highest: Option<u64> = cmd("GET").arg(&mark).query_async(&mut self.connection).await.unwrap();
        let highest = Token::new(highest.unwrap_or_default()).unwrap();
        if token.token() < highest {
            return Err(FenceError::stale("r", token, highest));
        }
        let line = format!("{}:{number}", token.token());
        cmd("SET").arg(mark).arg(token.token().get()).exec_async(&mut self.connection).await.unwrap();
        cmd("RPUSH").arg(list).arg(line).exec_async(&mut self.connection).await.unwrap();
        Ok(())
    }

    async fn seal(&mut self, _: &FencingToken) -> Option<Result<(), FenceError>> {
        None
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_checks_before_it_writes_is_caught() {
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let mut broken = CheckThenWrite { server, name: String::new() };
    let mut found = Vec::new();
    for seed in 0..10 {
        broken.name = format!("broken-{seed}");
        found.extend(suite::run(&broken, Plan::new(seed).calls(100).keeps_all()).await.err());
    }
    println!("{} of 10: {:?}", found.len(), found.first());
    assert!(found.len() >= 5, "{found:?}");
}
