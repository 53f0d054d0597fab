//! The fence in transactions of sqlx.

use std::net::SocketAddr;
use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgPool, Row};
use tenure_fence::suite::{self, Resource, Shown, Writer};
use tenure_fence::{Fence, FenceError, FencingToken, Seal};
use tenure_postgres::PostgresFence;
use tenure_postgres::fence::SqlxFence;
use tenure_store::Reason;
use tenure_testkit::{PgBouncer, quota};

use crate::database::Database;
use crate::ledger::shown;
use crate::suite::{plan, ready};
use crate::{install, token, user};

/// A pool with one connection, without prepared statements of its own.
async fn pool(database: &Database, address: SocketAddr) -> PgPool {
    let url = format!("postgres://postgres@{address}/{}?sslmode=disable", database.name());
    let options = PgConnectOptions::from_str(&url).unwrap().statement_cache_capacity(0);
    PgPoolOptions::new().max_connections(1).connect_with(options).await.unwrap()
}

#[tokio::test]
async fn a_transaction_of_sqlx_is_fenced_by_the_same_rule() {
    let Some(database) = Database::on_shared("sqlx_rules") else { return };
    let client = install(&database).await;
    let pool = pool(&database, database.server().address()).await;
    let fence = PostgresFence::new("orders");
    fence.sqlx().seal_on(&pool).seal(&token("billing=7")).await.unwrap();
    let mut transaction = pool.begin().await.unwrap();
    fence.sqlx().write(&token("billing=7"), &mut transaction).await.unwrap();
    sqlx::query("INSERT INTO orders VALUES (1)").execute(&mut *transaction).await.unwrap();
    transaction.commit().await.unwrap();

    fence.seal_on(&client).seal(&token("billing=8")).await.unwrap();
    for (offered, expected) in [
        ("billing=7", "orders refused token 7 of lease billing: token 8 has been there"),
        ("payroll=9", "orders is fenced by lease billing"),
    ] {
        let mut transaction = pool.begin().await.unwrap();
        let refused = fence.sqlx().write(&token(offered), &mut transaction).await.unwrap_err();
        assert!(refused.to_string().starts_with(expected), "{refused}");
        let after = sqlx::query("INSERT INTO orders VALUES (2)").execute(&mut *transaction).await;
        assert!(after.is_err());
        transaction.commit().await.unwrap();
        let refused = fence.sqlx().seal_on(&pool).seal(&token(offered)).await.unwrap_err();
        assert!(refused.to_string().starts_with(expected), "{refused}");
    }
    assert_eq!(database.sql("SELECT count(*) FROM orders"), "1");

    // Both clients share one memory.
    database.sql("UPDATE tenure.fence SET token = 5");
    let mut transaction = pool.begin().await.unwrap();
    let refused = fence.sqlx().write(&token("billing=9"), &mut transaction).await.unwrap_err();
    assert!(matches!(refused, FenceError::WentBack { .. }), "{refused}");
    drop(transaction);
    fence.acknowledge();
    fence.sqlx().seal_on(&pool).seal(&token("billing=9")).await.unwrap();

    database.sql("DROP SCHEMA tenure CASCADE");
    let mut transaction = pool.begin().await.unwrap();
    let refused = fence.sqlx().write(&token("billing=9"), &mut transaction).await.unwrap_err();
    assert!(matches!(refused, FenceError::Refused { reason: Reason::Unsupported, .. }), "{refused}");
    assert!(refused.to_string().contains("the fences are not installed"), "{refused}");
    drop(transaction);
    sqlx::raw_sql(&tenure_postgres::FenceSchema::usual().migration()).execute(&pool).await.unwrap();
    let shown = sqlx::query("SELECT tenure.fence('orders', 'billing', 9)").fetch_one(&pool).await.unwrap();
    assert_eq!(shown.get::<i64, _>(0), 0);
    pool.close().await;
}

#[tokio::test]
async fn writers_of_sqlx_keep_the_order_of_tokens_also_through_a_pooler() {
    let Some(database) = ready("suite_sqlx").await else { return };
    let Some(pooler) = PgBouncer::start_or_skip(database.server()) else { return };
    for address in [database.server().address(), pooler.address()] {
        for seed in 0..quota(1, 20) {
            let ledger = SqlxLedger { database: &database, address, resource: format!("{address} {seed}") };
            let counts = suite::run(&ledger, plan(seed).calls(150)).await.unwrap();
            println!("{counts}");
            assert!(counts.refused > 100, "{counts}");
            assert_eq!(
                counts.admitted + counts.refused,
                8 * 150,
                "no call failed for another reason: {counts}"
            );
        }
    }
}

struct SqlxLedger<'d> {
    database: &'d Database,
    address: SocketAddr,
    resource: String,
}

impl Resource for SqlxLedger<'_> {
    type Writer = SqlxWriter;

    async fn writer(&self) -> SqlxWriter {
        SqlxWriter {
            pool: pool(self.database, self.address).await,
            fence: PostgresFence::new(&self.resource).sqlx(),
            resource: self.resource.clone(),
        }
    }

    async fn shown(&self) -> Vec<Shown> {
        shown(&user(self.database).await, &self.resource).await
    }
}

struct SqlxWriter {
    pool: PgPool,
    fence: SqlxFence,
    resource: String,
}

impl Writer for SqlxWriter {
    async fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let mut transaction = self.pool.begin().await.unwrap();
        self.fence.write(token, &mut transaction).await?;
        let insert = sqlx::query(crate::ledger::INSERT).bind(&self.resource);
        let insert = insert.bind(token.token().get().cast_signed()).bind(number.cast_signed());
        insert.persistent(false).execute(&mut *transaction).await.unwrap();
        transaction.commit().await.map_err(|error| FenceError::unknown(&self.resource, error))
    }

    async fn seal(&mut self, token: &FencingToken) -> Option<Result<(), FenceError>> {
        Some(self.fence.seal_on(&self.pool).seal(token).await)
    }
}
