//! Cost of a lease on PostgreSQL, next to the bare statement through the same client in the same run, and other locks on
//! the same server.
//!
//! Times depend on the machine; compare the ratios. A missed goal is printed, and does not fail the run.
//! `TENURE_BENCH_EFFORT=10` repeats everything ten times as often.
#![expect(clippy::disallowed_methods, reason = "it measures real time, and has its own runtime")]

mod peers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use peers::{PEERS, Parameter, TABLES, connect, store};
use tenure::{Coordinator, Lease};
use tenure_testkit::{
    Effort, FaultyProxy, PostgresServer, PostgresSetup, Samples, SlowLink, block_on, print_ratio,
};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

fn main() {
    PEERS.serve_holder();
    // The benchmark reads the text of the store's statements from the server.
    let setup = PostgresSetup::new().setting("track_activity_query_size", "16384");
    let Some(server) = PostgresServer::start_or_skip(setup) else { return };
    server.sql(TABLES);
    let effort = Effort::from_environment();
    println!("on PostgreSQL {}", server.sql("SHOW server_version"));
    block_on(async {
        println!("{}", Samples::heading());
        let statements = cost(&server, effort.rounds).await;
        println!();
        throughput(&server, &statements, effort.rounds.div_ceil(100)).await;
        println!();
        hand_overs(&server, &statements, effort.hand_overs).await;
        println!();
        let proxy = FaultyProxy::start_postgres(server.address());
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

async fn leases(url: &str) -> Coordinator {
    Coordinator::connect(store(url)).await.unwrap()
}

/// Times each operation next to the bare statement that it consists of.
async fn cost(server: &PostgresServer, rounds: usize) -> BareStatements {
    let coordinator = leases(&server.url()).await;
    let request = |name: &str| coordinator.lease(name).unwrap().ttl(TTL).manual();
    let renewed = request("renewed").acquire().await.unwrap();
    // The first grant creates the record, and the second one replaces it.
    request("warm").acquire().await.unwrap().release().await.unwrap();
    let lease = request("warm").acquire().await.unwrap();
    let grant = last_statement(server, "WITH%");
    lease.release().await.unwrap();
    renewed.renew().await.unwrap();
    let renew = last_statement(server, "UPDATE%");
    let size = server.sql("SELECT length(value) FROM tenure.record WHERE key = 'renewed'").parse().unwrap();
    let running = server.sql("SELECT server FROM tenure.record WHERE key = 'renewed'");
    let statements = BareStatements { grant, renew, server: running, size };
    create_records(server, "SELECT 'bare'::text AS name");
    let mut bare = Bare::new(Arc::new(connect(&server.url()).await), "bare".to_owned(), &statements);

    let mut update = Samples::new("a bare UPDATE by primary key");
    let mut bare_renew = Samples::new("the bare statement of a renewal");
    let mut renew = Samples::new("renew");
    let mut bare_grant = Samples::new("the bare statement of a grant, which notifies");
    let mut warm = Samples::new("acquire, warm");
    let mut unseen = Samples::new("acquire, warm, without a witness");
    let mut release = Samples::new("release");
    for _ in 0..rounds {
        // Interleaved, so that other load on the machine affects all of them equally.
        update.take_lone(bare.update()).await;
        bare_renew.take_lone(bare.renew()).await;
        renew.take_lone(renewed.renew()).await.unwrap();
        bare_grant.take_lone(bare.grant()).await;
        let lease = warm.take_lone(request("warm").acquire()).await.unwrap();
        release.take_lone(lease.release()).await.unwrap();
        let lease = unseen.take_lone(request("warm").without_witness().acquire()).await.unwrap();
        lease.release().await.unwrap();
    }
    renewed.release().await.unwrap();
    for samples in [&update, &bare_renew, &renew, &bare_grant, &warm, &unseen, &release] {
        println!("{samples}");
    }
    println!();
    print_ratio("renew, to the bare statement", renew.at(50), bare_renew.at(50), Some(1.1));
    print_ratio("acquire warm, to the bare statement", warm.at(50), bare_grant.at(50), Some(1.2));
    print_ratio("acquire warm without a witness, to the same", unseen.at(50), bare_grant.at(50), None);
    print_ratio("release, to the bare statement of a renewal", release.at(50), bare_renew.at(50), None);
    print_ratio("the bare statement of a renewal, to a bare UPDATE", bare_renew.at(50), update.at(50), None);
    statements
}

/// Renewals of many leases at once, next to as many bare statements that the same client pipelines on one connection.
async fn throughput(server: &PostgresServer, statements: &BareStatements, rounds: usize) {
    let coordinator = leases(&server.url()).await;
    let held: Vec<Lease> = join_all((0..LEASES).map(async |number| {
        let request = coordinator.lease(format!("many/{number}")).unwrap().ttl(LONG_TTL);
        request.manual().without_witness().acquire().await.unwrap()
    }))
    .await;
    let client = Arc::new(connect(&server.url()).await);
    create_records(
        server,
        &format!("SELECT 'bare/' || n AS name FROM generate_series(0, {LEASES} - 1) AS n"),
    );
    let mut bare: Vec<Bare<'_>> = (0..LEASES)
        .map(|number| Bare::new(Arc::clone(&client), format!("bare/{number}"), statements))
        .collect();
    let mut pipelined = Samples::new("1,000 bare statements, pipelined");
    let mut renewed = Samples::new("1,000 renewals");
    for _ in 0..rounds {
        pipelined.take_async(join_all(bare.iter_mut().map(Bare::renew))).await;
        let all = renewed.take_async(join_all(held.iter().map(Lease::renew))).await;
        all.into_iter().for_each(|renewed| renewed.unwrap());
    }
    join_all(held.iter().map(Lease::release)).await;
    println!("{pipelined}\n{renewed}");
    let per_second = |samples: &Samples| LEASES as f64 / samples.at(50).as_secs_f64();
    println!(
        "{:.0} renewals and {:.0} bare statements per second",
        per_second(&renewed),
        per_second(&pipelined)
    );
    // 0.7 times as many in the same time.
    print_ratio(
        "time of 1,000 renewals, to that of bare statements",
        renewed.at(50),
        pipelined.at(50),
        Some(1.0 / 0.7),
    );
}

/// Hand-overs to a waiting contender behind a network whose round trip is much longer than the work of the client.
async fn hand_overs(server: &PostgresServer, statements: &BareStatements, rounds: usize) {
    let link = SlowLink::to(server.address(), ROUND_TRIP).await;
    let url = server.url_at(link.address());
    create_records(server, "SELECT 'slow'::text AS name");
    let mut client = Bare::new(Arc::new(connect(&url).await), "slow".to_owned(), statements);
    let (mut holder, mut waiter) = (leases(&url).await, leases(&url).await);
    let request = |coordinator: &Coordinator| coordinator.lease("passed").unwrap().ttl(TTL).without_witness();
    let mut lease = request(&holder).acquire().await.unwrap();
    let mut bare = Samples::new("the bare statement of a renewal on a slow network");
    let mut renew = Samples::new("renew on a slow network");
    let mut spans = Samples::new("from a release to the next grant, on a slow network");
    for _ in 0..rounds {
        let released = async {
            // The contender has read the record, and listens.
            tokio::time::sleep(ROUND_TRIP * 20).await;
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
        bare.take_async(client.renew()).await;
        renew.take_async(lease.renew()).await.unwrap();
        std::mem::swap(&mut holder, &mut waiter);
    }
    lease.release().await.unwrap();
    println!("{bare}\n{renew}\n{spans}");
    print_ratio("renew on a slow network, to the bare call", renew.at(50), bare.at(50), None);
    print_ratio("hand-over by notification, to a round trip", spans.at(50), bare.at(50), Some(3.0));
}

/// The statements of the store, as the server received them.
struct BareStatements {
    grant: String,
    renew: String,
    /// The start of the server process, which each version names.
    server: String,
    /// Size of a record.
    size: usize,
}

/// The statement that a connection of the store has executed last, if it is like this pattern.
fn last_statement(server: &PostgresServer, pattern: &str) -> String {
    let found = server.sql(&format!(
        "SELECT query FROM pg_stat_activity WHERE query LIKE '{pattern}' AND query LIKE '%tenure%' \
         AND pid <> pg_backend_pid() ORDER BY query_start DESC LIMIT 1"
    ));
    assert!(!found.is_empty(), "the store has sent a statement like {pattern}");
    found
}

/// Creates the rows of records with these names.
fn create_records(server: &PostgresServer, names: &str) {
    let stamp = stamp(0);
    server.sql(&format!(
        "INSERT INTO tenure.record (key, version, value, written_at, server) \
         SELECT name, '{stamp}', 'x', now(), '' FROM ({names}) AS n; \
         INSERT INTO tenure.token (key, token, granted_at) SELECT name, 0, now() FROM ({names}) AS n"
    ));
}

/// A stamp as long as one of the store.
fn stamp(number: i64) -> String {
    format!("{number:040x}")
}

/// The client without a store.
struct Bare<'s> {
    client: Arc<Client>,
    statements: &'s BareStatements,
    name: String,
    value: Vec<u8>,
    number: i64,
}

impl<'s> Bare<'s> {
    fn new(client: Arc<Client>, name: String, statements: &'s BareStatements) -> Self {
        Self { client, statements, name, value: vec![b'x'; statements.size], number: 0 }
    }

    /// Replaces the record if it is unchanged.
    async fn renew(&mut self) {
        let expected = format!("{}:{}", self.statements.server, stamp(self.number));
        self.number += 1;
        let next = stamp(self.number);
        let parameters: [Parameter<'_>; 4] = [
            (&self.name, Type::TEXT),
            (&next, Type::TEXT),
            (&self.value, Type::BYTEA),
            (&expected, Type::TEXT),
        ];
        let rows = self.client.query_typed(&self.statements.renew, &parameters).await.unwrap();
        assert_eq!(rows.len(), 1, "it is applied");
    }

    /// The same, and replaces its token.
    async fn grant(&mut self) {
        let expected = format!("{}:{}", self.statements.server, stamp(self.number));
        self.number += 1;
        let next = stamp(self.number);
        let parameters: [Parameter<'_>; 5] = [
            (&self.name, Type::TEXT),
            (&next, Type::TEXT),
            (&self.value, Type::BYTEA),
            (&expected, Type::TEXT),
            (&self.number, Type::INT8),
        ];
        let rows = self.client.query_typed(&self.statements.grant, &parameters).await.unwrap();
        assert!(rows[0].get::<_, Option<i64>>(0).is_some(), "it is applied");
    }

    async fn update(&mut self) {
        let sql = "UPDATE tenure.record SET value = $2 WHERE key = $1";
        let parameters: [Parameter<'_>; 2] = [(&self.name, Type::TEXT), (&self.value, Type::BYTEA)];
        assert_eq!(self.client.execute_typed(sql, &parameters).await.unwrap(), 1);
    }
}

const TTL: Duration = Duration::from_secs(2);

/// Long enough for a thousand commits on a slow disk.
const LONG_TTL: Duration = Duration::from_secs(60);

const LEASES: usize = 1000;
const ROUND_TRIP: Duration = Duration::from_millis(20);
