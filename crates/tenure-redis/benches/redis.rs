//! Cost of a lease on Redis, next to the bare script through the same client in the same run, and other locks on the same
//! server.
//!
//! Times depend on the machine; compare the ratios. A missed goal is printed, and does not fail the run.
//! `TENURE_BENCH_EFFORT=10` repeats everything ten times as often.
#![expect(clippy::disallowed_methods, reason = "it measures real time, and has its own runtime")]

mod peers;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use peers::{PEERS, connect, store};
use redis::Value;
use redis::aio::MultiplexedConnection;
use tenure::{Coordinator, Lease};
use tenure_testkit::{
    Effort, FaultyProxy, RedisKind, RedisServer, RedisSetup, Samples, SlowLink, block_on, print_ratio,
};

fn main() {
    PEERS.serve_holder();
    let Some(server) = RedisServer::start_or_skip(RedisKind::Redis, RedisSetup::new()) else { return };
    let effort = Effort::from_environment();
    println!("on Redis {}", server.info("redis_version"));
    block_on(async {
        let address = server.address().to_string();
        first_grant(&address).await;
        println!("{}", Samples::heading());
        let size = cost(&server, &address, effort.rounds).await;
        println!();
        throughput(&server, size, effort.rounds.div_ceil(40)).await;
        println!();
        hand_overs(&server, effort.hand_overs).await;
        println!();
        let proxy = FaultyProxy::start_redis(server.address());
        let proxied = server.url_at(proxy.address());
        let crashes = PEERS.run(&server.url(), &proxy, &proxied, effort).await;
        print_ratio(
            "takeover after kill -9, from the last renewal, to the ttl",
            crashes.at(90),
            TTL,
            Some(1.05),
        );
        print_ratio("the same, the median", crashes.at(50), TTL, None);
    });
}

/// Waits for the end of the quarantine of the new server.
async fn first_grant(address: &str) {
    let lease = leases(address).await.lease("first").unwrap().ttl(TTL).acquire().await.unwrap();
    lease.release().await.unwrap();
}

async fn leases(address: &str) -> Coordinator {
    Coordinator::connect(store(address)).await.unwrap()
}

/// Times each operation next to the bare script that it consists of. Returns the size of a record.
async fn cost(server: &RedisServer, address: &str, rounds: usize) -> usize {
    let coordinator = leases(address).await;
    let request = |name: &str| coordinator.lease(name).unwrap().ttl(TTL).manual();
    let renewed = request("renewed").acquire().await.unwrap();
    let size = server.command(&["HGET", "tenure:{renewed}", "d"]).len();
    let mut bare = Bare::connect(server, &server.url(), "bare", size).await;

    let mut set = Samples::new("a bare SET");
    let mut script = Samples::new("the bare script of a renewal");
    let mut renew = Samples::new("renew");
    let mut published = Samples::new("the bare script of a grant, which publishes");
    let mut warm = Samples::new("acquire, warm");
    let mut unseen = Samples::new("acquire, warm, without a witness");
    let mut release = Samples::new("release");
    for _ in 0..rounds {
        // Interleaved, so that other load on the machine affects all of them equally.
        set.take_lone(bare.set()).await;
        script.take_lone(bare.write(false)).await;
        renew.take_lone(renewed.renew()).await.unwrap();
        published.take_lone(bare.write(true)).await;
        let lease = warm.take_lone(request("warm").acquire()).await.unwrap();
        release.take_lone(lease.release()).await.unwrap();
        let lease = unseen.take_lone(request("warm").without_witness().acquire()).await.unwrap();
        lease.release().await.unwrap();
    }
    renewed.release().await.unwrap();
    for samples in [&set, &script, &renew, &published, &warm, &unseen, &release] {
        println!("{samples}");
    }
    println!();
    print_ratio("renew, to the bare script", renew.at(50), script.at(50), Some(1.1));
    print_ratio("acquire warm, to the bare script", warm.at(50), published.at(50), Some(1.2));
    print_ratio("acquire warm without a witness, to the same", unseen.at(50), published.at(50), None);
    print_ratio("release, to the same", release.at(50), published.at(50), None);
    print_ratio("the bare script of a renewal, to a bare SET", script.at(50), set.at(50), None);
    size
}

/// Renewals of many leases at once, next to as many bare scripts that the same client pipelines on one connection.
async fn throughput(server: &RedisServer, size: usize, rounds: usize) {
    let coordinator = leases(&server.address().to_string()).await;
    let held: Vec<Lease> = join_all((0..LEASES).map(async |number| {
        let request = coordinator.lease(format!("many/{number}")).unwrap().ttl(TTL);
        request.manual().without_witness().acquire().await.unwrap()
    }))
    .await;
    let connection = Bare::connect(server, &server.url(), "", size).await;
    let mut bare: Vec<Bare> =
        (0..LEASES).map(|number| Bare { name: format!("bare/{number}"), ..connection.clone() }).collect();
    join_all(bare.iter_mut().map(Bare::create)).await;
    let mut pipelined = Samples::new("1,000 bare scripts, pipelined");
    let mut renewed = Samples::new("1,000 renewals");
    for _ in 0..rounds {
        pipelined.take_async(join_all(bare.iter_mut().map(|bare| bare.write(false)))).await;
        let all = renewed.take_async(join_all(held.iter().map(Lease::renew))).await;
        all.into_iter().for_each(|renewed| renewed.unwrap());
    }
    join_all(held.iter().map(Lease::release)).await;
    println!("{pipelined}\n{renewed}");
    let per_second = |samples: &Samples| LEASES as f64 / samples.at(50).as_secs_f64();
    println!(
        "{:.0} renewals and {:.0} bare scripts per second",
        per_second(&renewed),
        per_second(&pipelined)
    );
    // 0.7 times as many in the same time.
    print_ratio(
        "time of 1,000 renewals, to that of bare scripts",
        renewed.at(50),
        pipelined.at(50),
        Some(1.0 / 0.7),
    );
}

/// Hand-overs to a waiting contender behind a network whose round trip is much longer than the work of the client.
async fn hand_overs(server: &RedisServer, rounds: usize) {
    let link = SlowLink::to(server.address(), ROUND_TRIP).await;
    let address = link.address().to_string();
    let mut client = Bare::connect(server, &server.url_at(link.address()), "slow", 100).await;
    let (mut holder, mut waiter) = (leases(&address).await, leases(&address).await);
    let request = |coordinator: &Coordinator| coordinator.lease("passed").unwrap().ttl(TTL).without_witness();
    let mut lease = request(&holder).acquire().await.unwrap();
    let mut bare = Samples::new("a bare SET on a slow network");
    let mut renew = Samples::new("renew on a slow network");
    let mut spans = Samples::new("from a release to the next grant, on a slow network");
    for _ in 0..rounds {
        let released = async {
            // The contender has read the record, and listens.
            tokio::time::sleep(ROUND_TRIP * 12).await;
            let released = Instant::now();
            lease.release().await.unwrap();
            released
        };
        let granted = async {
            let lease = request(&waiter).acquire().await.unwrap();
            (lease, Instant::now())
        };
        let (released, (next, granted)) = tokio::join!(released, granted);
        spans.add(granted - released);
        lease = next;
        bare.take_async(client.set()).await;
        renew.take_async(lease.renew()).await.unwrap();
        std::mem::swap(&mut holder, &mut waiter);
    }
    lease.release().await.unwrap();
    println!("{bare}\n{renew}\n{spans}");
    print_ratio("renew on a slow network, to the bare call", renew.at(50), bare.at(50), None);
    print_ratio("hand-over by notification, to a round trip", spans.at(50), bare.at(50), Some(3.0));
}

/// The client without a store.
#[derive(Clone)]
struct Bare {
    connection: MultiplexedConnection,
    hash: String,
    name: String,
    value: Vec<u8>,
    stamp: u64,
}

impl Bare {
    /// Opens a connection to the server at this URL, and creates a record of this size.
    async fn connect(server: &RedisServer, url: &str, name: &str, size: usize) -> Self {
        let hash = server.command(&["SCRIPT", "LOAD", WRITE]);
        let connection = connect(url).await;
        let mut bare = Self { connection, hash, name: name.to_owned(), value: vec![b'x'; size], stamp: 0 };
        bare.create().await;
        bare
    }

    async fn create(&mut self) {
        let stamp = self.stamp();
        let mut create = redis::cmd("HSET");
        create.arg(&self.name).arg("s").arg(stamp).arg("d").arg(&self.value);
        create.query_async::<i64>(&mut self.connection).await.unwrap();
    }

    /// Replaces the record if it is unchanged.
    async fn write(&mut self, publishes: bool) {
        let expected = self.stamp();
        self.stamp += 1;
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.hash).arg(1).arg(&self.name).arg(expected).arg(self.stamp()).arg(&self.value);
        call.arg("");
        if publishes {
            // The channels of the key, and of all keys.
            call.arg(&self.name).arg("bare:{}");
        }
        let answer: Vec<Value> = call.query_async(&mut self.connection).await.unwrap();
        assert_eq!(answer[0], Value::Int(1), "it is applied");
    }

    async fn set(&mut self) {
        let name = format!("{}:set", self.name);
        redis::cmd("SET").arg(name).arg(&self.value).query_async::<()>(&mut self.connection).await.unwrap();
    }

    fn stamp(&self) -> String {
        format!("{:032x}", self.stamp)
    }
}

const WRITE: &str = include_str!("../src/scripts/write.lua");

const TTL: Duration = Duration::from_secs(2);
const LEASES: usize = 1000;
const ROUND_TRIP: Duration = Duration::from_millis(20);
