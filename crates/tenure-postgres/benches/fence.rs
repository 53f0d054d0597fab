//! Cost of a fenced transaction on PostgreSQL, next to the same bare transaction on the same connection in the same run.
//!
//! Times depend on the machine; compare the ratios. A missed goal is printed, and does not fail the run.
//! `TENURE_BENCH_EFFORT=10` repeats everything ten times as often.
#![expect(clippy::disallowed_methods, reason = "it measures real time, and has its own runtime")]

use std::time::Duration;

use tenure_fence::{Fence, FencingToken};
use tenure_postgres::{FenceSchema, PostgresFence};
use tenure_testkit::{Effort, Pace, PostgresServer, PostgresSetup, Samples, SlowLink, block_on, print_ratio};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, Transaction};

fn main() {
    let Some(server) = PostgresServer::start_or_skip(PostgresSetup::new()) else { return };
    println!("on PostgreSQL {}", server.sql("SHOW server_version"));
    let rounds = Effort::from_environment().rounds;
    block_on(async {
        let mut client = connect(&server.url()).await;
        FenceSchema::usual().install(&client).await.unwrap();
        client.batch_execute(TABLES).await.unwrap();
        println!("{}", Samples::heading());
        for pace in [Pace::Lone, Pace::InARow] {
            println!("{pace:?}");
            Run::of(&mut client, pace, rounds).await.print(Some(1.3));
            println!();
        }
        println!("behind a network with a round trip of {ROUND_TRIP:?}\n{}", Samples::heading());
        let link = SlowLink::to(server.address(), ROUND_TRIP).await;
        let mut client = connect(&server.url_at(link.address())).await;
        Run::of(&mut client, Pace::Lone, rounds.div_ceil(8)).await.print(Some(1.3));
    });
}

/// Transactions of one connection, in turns, so that other load on the machine affects all of them equally.
struct Run {
    bare: Samples,
    fenced: Samples,
    together: Samples,
    granted: Samples,
    raised: Samples,
}

impl Run {
    async fn of(client: &mut Client, pace: Pace, rounds: usize) -> Self {
        let mut run = Self {
            bare: Samples::new("a bare transaction: begin, update, commit"),
            fenced: Samples::new("fenced, one statement after the other"),
            together: Samples::new("fenced, sent together with the update"),
            granted: Samples::new("the same, and the lease is in the same database"),
            raised: Samples::new("fenced, the first transaction of a new holder"),
        };
        let (held, here) = (PostgresFence::new("orders"), PostgresFence::new("invoices").lease_here());
        let (offered, granted) = (token(7), token(7));
        let taken = PostgresFence::new("taken");
        let first: i64 =
            client.query_one("SELECT coalesce(max(token), 0) FROM tenure.fence", &[]).await.unwrap().get(0);
        for round in 0..rounds {
            let bare = async {
                let transaction = client.transaction().await.unwrap();
                update(&transaction).await;
                transaction.commit().await.unwrap();
            };
            pace.take(&mut run.bare, bare).await;
            let fenced = async {
                let transaction = client.transaction().await.unwrap();
                held.write(&offered, &transaction).await.unwrap();
                update(&transaction).await;
                transaction.commit().await.unwrap();
            };
            pace.take(&mut run.fenced, fenced).await;
            pace.take(&mut run.together, together(client, &held, &offered)).await;
            pace.take(&mut run.granted, together(client, &here, &granted)).await;
            let newest = token(first.unsigned_abs() + 1 + round as u64);
            pace.take(&mut run.raised, together(client, &taken, &newest)).await;
        }
        run
    }

    fn print(&self, goal: Option<f64>) {
        let Self { bare, fenced, together, granted, raised } = self;
        for samples in [bare, fenced, together, granted, raised] {
            println!("{samples}");
        }
        println!();
        print_ratio("fenced transaction, to the bare one", together.at(50), bare.at(50), goal);
        print_ratio("the same, one statement after the other", fenced.at(50), bare.at(50), None);
        print_ratio("the same, with the lease in the same database", granted.at(50), bare.at(50), goal);
        print_ratio("the same, the first of a new holder", raised.at(50), bare.at(50), None);
    }
}

/// A fenced transaction whose first write does not wait for the answer of the fence.
async fn together(client: &mut Client, fence: &PostgresFence, offered: &FencingToken) {
    let transaction = client.transaction().await.unwrap();
    let (admitted, ()) = tokio::join!(fence.write(offered, &transaction), update(&transaction));
    admitted.unwrap();
    transaction.commit().await.unwrap();
}

async fn update(transaction: &Transaction<'_>) {
    let rows = transaction
        .query_typed(
            "UPDATE orders SET total = total + 1 WHERE id = $1 RETURNING total",
            &[(&1_i32, Type::INT4)],
        )
        .await;
    assert_eq!(rows.unwrap().len(), 1);
}

fn token(number: u64) -> FencingToken {
    format!("billing={number}").parse().unwrap()
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

const TABLES: &str = "CREATE TABLE orders (id int PRIMARY KEY, total bigint NOT NULL); INSERT INTO orders VALUES (1, 0); \
     CREATE TABLE tenure.token (key text COLLATE \"C\" PRIMARY KEY, token bigint NOT NULL, granted_at timestamptz NOT NULL); \
     INSERT INTO tenure.token VALUES ('billing', 7, now())";

const ROUND_TRIP: Duration = Duration::from_millis(20);
