//! Cost of a lease in a bucket, compared with the bare requests through the same client in the same run, on a server of
//! each cloud. Also measures, on MinIO, the time until a contender is granted a lease that its holder releases, and the time
//! from a crash to the next grant, with contenders that read in phase with the holder and at random phases.
//!
//! Times depend on the machine; compare the ratios: requests at p50, hand-overs at p90. A missed goal is printed, and
//! does not fail the run. An argument `failover` measures the crashes alone.

#[path = "bucket/mortal.rs"]
mod mortal;
#[path = "bucket/takeovers.rs"]
mod takeovers;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use tenure::clock::{BootClock, Clock};
use tenure::{Coordinator, Timing};
use tenure_object::{Azure, Environment, Google, S3};
use tenure_store::{Expect, Key, Put, Store, Version};
use tenure_testkit::{Dialect, Kind, Samples, Server, key, print_ratio};

fn main() {
    let only_takeovers = std::env::args().any(|argument| argument == "failover");
    for kind in [Kind::Minio, Kind::Azurite, Kind::FakeGcs] {
        let Some(server) = Server::start_or_skip(kind) else { continue };
        server.create_bucket("bench");
        println!("on {} {}", kind.program(), kind.version());
        tenure_testkit::block_on(async {
            if only_takeovers {
                return takeovers::measure(&server).await;
            }
            println!("{}", Samples::heading());
            let bare = requests(&server).await;
            println!();
            // Their times come from the protocol, and are the same on every server.
            if kind == Kind::Minio {
                hand_overs(&server, bare).await;
                println!();
                takeovers::measure(&server).await;
                println!();
            }
        });
        if only_takeovers {
            return;
        }
    }
}

/// Opens a separate connection.
fn open(server: &Server) -> Arc<dyn Store> {
    let (endpoint, environment) = (server.endpoint(), Environment::default());
    match server.kind().dialect() {
        Dialect::S3 => {
            let store = S3::builder("bench").endpoint(&endpoint).region(server.region());
            let store = store.keys(server.access_key(), server.secret_key()).write_interval(Duration::ZERO);
            Arc::new(store.open_in(&environment).unwrap())
        }
        Dialect::Azure => {
            let store = Azure::builder("bench").endpoint(&endpoint).access_key(server.account_key());
            Arc::new(store.write_interval(Duration::ZERO).open_in(&environment).unwrap())
        }
        Dialect::Google => {
            let store = Google::builder("bench").endpoint(&endpoint).token(server.bearer_token());
            Arc::new(store.write_interval(Duration::ZERO).open_in(&environment).unwrap())
        }
    }
}

/// Times each operation next to the bare requests that it consists of. Returns the usual upper bound for the two
/// requests of a hand-over.
async fn requests(server: &Server) -> Duration {
    let bare = Bare { store: open(server), key: key("bare") };
    let coordinator = Coordinator::connect(open(server)).await.unwrap();
    let wanted = |coordinator: &Coordinator, name: &str| coordinator.lease(name).unwrap().manual();
    let renewed = wanted(&coordinator, "renewed").acquire().await.unwrap();
    let mut version = bare.put(Expect::Absent).await;

    let mut put = Samples::new("a bare conditional PUT");
    let mut get = Samples::new("a bare GET");
    let mut renew = Samples::new("renew");
    let mut warm = Samples::new("acquire, warm");
    let mut unseen = Samples::new("acquire, warm, without a witness");
    let mut release = Samples::new("release");
    let mut cold = Samples::new("acquire, cold");
    for round in 0..ROUNDS {
        // Interleaved, so that other load on the machine affects all of them equally.
        version = put.take_async(bare.put(Expect::Version(version))).await;
        renew.take_async(renewed.renew()).await.unwrap();
        get.take_async(bare.store.get(&bare.key)).await.unwrap();
        let lease = warm.take_async(wanted(&coordinator, "warm").acquire()).await.unwrap();
        release.take_async(lease.release()).await.unwrap();
        let lease =
            unseen.take_async(wanted(&coordinator, "warm").without_witness().acquire()).await.unwrap();
        lease.release().await.unwrap();
        if round % 5 == 0 {
            // This coordinator has never seen the key.
            let stranger = Coordinator::connect(open(server)).await.unwrap();
            let lease = cold.take_async(wanted(&stranger, "warm").acquire()).await.unwrap();
            lease.release().await.unwrap();
        }
    }
    renewed.release().await.unwrap();
    for samples in [&put, &get, &renew, &warm, &unseen, &release, &cold] {
        println!("{samples}");
    }
    println!();
    let (one, two) = (put.at(50), get.at(50) + put.at(50));
    print_ratio("renew, to a bare conditional PUT", renew.at(50), one, Some(1.1));
    print_ratio("acquire warm, to a bare conditional PUT", warm.at(50), one, Some(1.1));
    print_ratio("acquire warm without a witness, to the same", unseen.at(50), one, None);
    print_ratio("acquire cold, to a bare GET and a conditional PUT", cold.at(50), two, None);
    print_ratio("release, to a bare conditional PUT", release.at(50), one, None);
    get.at(90) + put.at(90)
}

/// Times a waiting contender on another machine, after a release. Both are coordinators of this process, each with a
/// separate connection.
async fn hand_overs(server: &Server, calls: Duration) {
    let holder = Coordinator::connect(open(server)).await.unwrap();
    let waiter = Coordinator::connect(open(server)).await.unwrap();
    let timing = Timing::new(TTL).unwrap();
    // The remainder of the longest outage: the time between two polls of a contender.
    let poll = timing.worst_write_outage() - timing.timeout() * 2 - timing.drift().lengthen(TTL);

    let mut released = Samples::new("from a release to the next grant");
    for round in 0..HAND_OVERS {
        let spans = join_all((0..AT_ONCE).map(|number| {
            // The latest renewal comes at any time since a poll, and the end at any time since that renewal.
            let (renewed, late) = (TTL / 2 * (number * 7 % AT_ONCE) / AT_ONCE, TTL / 3 * number / AT_ONCE);
            hand_over(&holder, &waiter, format!("release/{round}-{number}"), [renewed, late])
        }));
        spans.await.into_iter().for_each(|span| released.add(span));
    }
    println!("{released}\n");
    println!("a waiter looks every {poll:?} at most, with a ttl of {TTL:?}");
    print_ratio(
        "hand-over, to the ttl (goal: one poll and its calls)",
        released.at(90),
        TTL,
        Some((poll + calls).as_secs_f64() / TTL.as_secs_f64()),
    );
}

/// Time from the release of a holder until a waiting contender is granted the lease.
async fn hand_over(
    holder: &Coordinator,
    waiter: &Coordinator,
    name: String,
    [renewed, late]: [Duration; 2],
) -> Duration {
    let request =
        |coordinator: &Coordinator| coordinator.lease(name.as_str()).unwrap().ttl(TTL).without_witness();
    let lease = request(holder).manual().acquire().await.unwrap();
    let mut waiting = pin!(request(waiter).acquire());
    let pause = |span| BootClock.sleep_until(BootClock.now() + span);
    let settle = async {
        pause(renewed).await;
        lease.renew().await.unwrap();
        pause(late).await;
    };
    tokio::select! {
        _ = &mut waiting => unreachable!("it is held"),
        () = settle => {}
    }
    let ended = BootClock.now();
    let (released, granted) = futures_util::join!(lease.release(), async {
        let lease = waiting.await.unwrap();
        (lease, BootClock.now())
    });
    released.unwrap();
    let (lease, granted) = granted;
    lease.release().await.unwrap();
    granted.since(ended)
}

/// The store without a coordinator.
struct Bare {
    store: Arc<dyn Store>,
    key: Key,
}

impl Bare {
    /// Writes as many bytes as a record has.
    async fn put(&self, expect: Expect) -> Version {
        match self.store.put(&self.key, Bytes::from_static(&[b'x'; 600]), expect).await {
            Ok(Put::Applied(applied)) => applied.version,
            other => panic!("{other:?}"),
        }
    }
}

const ROUNDS: usize = 300;
const TTL: Duration = Duration::from_secs(2);
const HAND_OVERS: usize = 4;
const AT_ONCE: u32 = 12;
