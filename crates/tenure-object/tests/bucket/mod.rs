//! A test's own bucket on a real server.
#![allow(dead_code, reason = "each test binary uses a part of it")]

mod cloud;
mod hand_over;
mod keys;

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tenure::clock::{BootClock, Clock};
use tenure_conformance::{CheckOutcome, Harness, Suite, Supported};
use tenure_store::{BoxFuture, Key, Store};
use tenure_testkit::{Fault, FaultyProxy, Kind, Rule, Server};

pub(crate) use cloud::{Cloud, OnAzure, OnGoogle, OnS3};

/// A bucket of S3.
pub(crate) type Bucket = BucketOf<OnS3>;

/// A container of Azure.
pub(crate) type Container = BucketOf<OnAzure>;

/// A bucket of Google.
pub(crate) type GoogleBucket = BucketOf<OnGoogle>;

/// A bucket behind a proxy, so that answers and requests can be lost.
pub(crate) struct BucketOf<C: Cloud> {
    server: Running,
    proxy: FaultyProxy,
    name: &'static str,
    /// Client of an administrator, who acts without the store's knowledge.
    administrator: Arc<dyn ObjectStore>,
    backup: Mutex<Vec<(Path, Bytes)>>,
    cloud: PhantomData<C>,
}

enum Running {
    /// Shared by all tests of the process.
    Shared(&'static Server),
    /// Owned by one test, which may stop and start it.
    Own(Box<Server>),
}

impl Deref for Running {
    type Target = Server;

    fn deref(&self) -> &Server {
        match self {
            Self::Shared(server) => server,
            Self::Own(server) => server,
        }
    }
}

impl<C: Cloud> BucketOf<C> {
    /// Creates a bucket on the server that all tests share.
    pub(crate) fn on(kind: Kind, name: &'static str) -> Option<Self> {
        Some(Self::new(Running::Shared(Server::shared(kind)?), name))
    }

    /// Creates a bucket on a separate server.
    pub(crate) fn alone_on(kind: Kind, name: &'static str) -> Option<Self> {
        Some(Self::new(Running::Own(Box::new(Server::start_or_skip(kind)?)), name))
    }

    fn new(server: Running, name: &'static str) -> Self {
        server.create_bucket(name);
        let proxy = FaultyProxy::start(server.address());
        // Opening it installs the cryptography of TLS, which the administrator's client needs.
        C::open(&C::builder(&server, name, &server.endpoint()));
        let administrator = C::administrator(&server, name);
        Self { server, proxy, name, administrator, backup: Mutex::default(), cloud: PhantomData }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn proxy(&self) -> &FaultyProxy {
        &self.proxy
    }

    pub(crate) fn builder_at_the_top(&self) -> C::Builder {
        self.builder_through(&self.proxy)
    }

    pub(crate) fn builder(&self) -> C::Builder {
        C::prefix(self.builder_at_the_top(), "some/locks")
    }

    /// A builder whose requests do not pass the proxy.
    pub(crate) fn builder_beside_the_proxy(&self) -> C::Builder {
        C::prefix(C::builder(&self.server, self.name, &self.server.endpoint()), "some/locks")
    }

    /// Opens a separate connection.
    pub(crate) fn store(&self) -> C::Store {
        self.store_through(&self.proxy)
    }

    /// Opens a separate connection, through another proxy.
    pub(crate) fn store_through(&self, proxy: &FaultyProxy) -> C::Store {
        let builder = C::prefix(self.builder_through(proxy), "some/locks");
        // A private server tolerates any rate that the machine can produce.
        C::open(&C::write_interval(builder, Duration::ZERO))
    }

    fn builder_through(&self, proxy: &FaultyProxy) -> C::Builder {
        C::builder(&self.server, self.name, &self.server.endpoint_at(proxy.address()))
    }

    /// Runs the complete contract, without skipping anything that the store promises.
    pub(crate) async fn keeps_the_contract(&self, racers: usize, rounds: usize) {
        let report = Suite::new(1).only_contract().racers(racers).rounds(rounds).run(self).await;
        println!("{report}");
        report.assert_passed();
        for skip in report.skips() {
            let CheckOutcome::Skipped(why) = &skip.verdict else { unreachable!("it is a skip") };
            assert!(why.starts_with("not promised: "), "the harness can do everything: {report}");
        }
    }

    /// Runs the lease checks on the machine's own clock, because the speed of the server is real.
    pub(crate) async fn carries_leases(&self, contenders: usize, ttl: Duration) {
        let suite = Suite::new(1).only_leases().ttl(ttl).contenders(contenders).turns(2);
        let report = suite.run(self).await;
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

    /// Deletes the object of a key without the store's knowledge.
    pub(crate) async fn remove(&self, key: &Key) {
        let path = Path::parse(C::object_of(&self.store(), key)).unwrap();
        self.administrator.delete(&path).await.unwrap();
    }

    async fn everything(&self) -> Vec<(Path, Bytes)> {
        let objects: Vec<_> = self.administrator.list(None).try_collect().await.unwrap();
        let reads = objects.into_iter().map(async |object| {
            let got = self.administrator.get(&object.location).await.unwrap();
            (object.location, got.bytes().await.unwrap())
        });
        futures_util::stream::iter(reads).buffered(16).collect().await
    }
}

impl<C: Cloud> Harness for BucketOf<C> {
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
        self.proxy.install(Rule::new(Fault::CutAfter).method("PUT").times(1));
        Box::pin(async { Supported::Yes })
    }

    fn lose_next_request(&self) -> BoxFuture<'_, Supported> {
        self.proxy.install(Rule::new(Fault::CutBefore).method("PUT").times(1));
        Box::pin(async { Supported::Yes })
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        Box::pin(async {
            self.remove(key).await;
            Supported::Yes
        })
    }

    fn snapshot(&self) -> BoxFuture<'_, Supported> {
        Box::pin(async {
            let everything = self.everything().await;
            *self.backup.lock().unwrap() = everything;
            Supported::Yes
        })
    }

    fn restore(&self) -> BoxFuture<'_, Supported> {
        Box::pin(async {
            let backup = self.backup.lock().unwrap().clone();
            for (path, _) in self.everything().await {
                if !backup.iter().any(|(kept, _)| *kept == path) {
                    self.administrator.delete(&path).await.unwrap();
                }
            }
            for (path, bytes) in backup {
                self.administrator.put(&path, bytes.into()).await.unwrap();
            }
            Supported::Yes
        })
    }
}
