//! A store on a real server, for tests and for the conformance suite.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure_conformance::{CheckOutcome, Harness, Suite, Supported};
use tenure_redis::{Redis, RedisBuilder};
use tenure_store::{BoxFuture, Key, Store};
use tenure_testkit::{Fault, FaultyProxy, RedisKind, RedisServer, RedisSetup, Rule};

/// A server of its own behind a proxy, and the way in which its store is opened.
pub(crate) struct Place {
    pub(crate) server: RedisServer,
    pub(crate) proxy: FaultyProxy,
    configure: fn(RedisBuilder) -> RedisBuilder,
}

impl Place {
    /// A server with this setup, whose stores are opened with `configure`.
    pub(crate) fn start(
        kind: RedisKind,
        setup: RedisSetup,
        configure: fn(RedisBuilder) -> RedisBuilder,
    ) -> Option<Self> {
        let server = RedisServer::start_or_skip(kind, setup)?;
        let proxy = FaultyProxy::start_redis(server.address());
        Some(Self { server, proxy, configure })
    }

    pub(crate) fn builder(&self) -> RedisBuilder {
        (self.configure)(Redis::builder(&self.proxy.address().to_string()))
    }

    /// A store with its own connections.
    pub(crate) fn store(&self) -> Redis {
        self.builder().open().unwrap()
    }

    /// Loses the next write, or its answer.
    pub(crate) fn lose_next_write(&self, fault: Fault) {
        self.proxy.install(Rule::new(fault).method("EVALSHA").containing(&write_hash()).times(1));
    }

    /// Runs the suite. A check may be skipped only for one of these reasons.
    pub(crate) async fn passes(&self, suite: Suite, skips: &[&str]) {
        let report = suite.run(self).await;
        println!("{report}");
        report.assert_passed();
        for finding in &report.findings {
            if let CheckOutcome::Skipped(why) = &finding.verdict {
                assert!(skips.iter().any(|skip| why.contains(skip)), "{}: {why}", finding.check);
            }
        }
    }
}

/// The hash of the script that writes.
pub(crate) fn write_hash() -> String {
    redis::Script::new(include_str!("../../src/scripts/write.lua")).get_hash().to_owned()
}

impl Harness for Place {
    fn name(&self) -> String {
        format!("{:?}", self.server.kind())
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
        self.server.restart();
        Box::pin(async { Supported::Yes })
    }

    fn lose_next_answer(&self) -> BoxFuture<'_, Supported> {
        self.lose_next_write(Fault::CutAfter);
        Box::pin(async { Supported::Yes })
    }

    fn lose_next_request(&self) -> BoxFuture<'_, Supported> {
        self.lose_next_write(Fault::CutBefore);
        Box::pin(async { Supported::Yes })
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        self.server.command(&["DEL", &self.store().record_of(key)]);
        Box::pin(async { Supported::Yes })
    }
}

/// An address that drops packets, until the second part is dropped: its queue of connections is full.
pub(crate) fn silent() -> (SocketAddr, impl Sized) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
    let queue: Vec<_> = std::iter::from_fn(connect).collect();
    (address, (listener, queue))
}

/// Serves the handshake like a server, and gives this answer to every other command.
pub(crate) fn answering(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut lines = BufReader::new(client.try_clone().unwrap()).lines().map_while(Result::ok);
            while let Some(head) = lines.next() {
                // An array of texts, each with a line for its length.
                let words = head[1..].parse::<usize>().unwrap();
                let words: Vec<_> = (0..words).filter_map(|_| lines.nth(1)).collect();
                let text = match words[0].as_str() {
                    "INFO" => "$0\r\n\r\n",
                    "CONFIG" => "*0\r\n",
                    _ => answer,
                };
                if client.write_all(text.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    address
}
