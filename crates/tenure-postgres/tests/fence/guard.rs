//! A guarded table: a write path that forgets the token is refused, too.

use bytes::Bytes;
use futures_util::SinkExt;
use tenure_fence::Fence;
use tenure_postgres::{FenceSchema, PostgresFence};
use tokio_postgres::Client;

use crate::database::Database;
use crate::{code, fenced, install, role_at, token, user};

/// Statements that write to the table `orders`, which has the order 1.
const WRITES: [&str; 9] = [
    "INSERT INTO orders VALUES (2)",
    "UPDATE orders SET note = 'x' WHERE id = 1",
    "UPDATE orders SET note = 'x' WHERE false",
    "DELETE FROM orders WHERE id = 7",
    "INSERT INTO orders VALUES (1) ON CONFLICT (id) DO UPDATE SET note = 'y'",
    "MERGE INTO orders AS o USING (SELECT 1 AS id) AS s ON o.id = s.id WHEN MATCHED THEN UPDATE SET note = 'z'",
    "WITH gone AS (DELETE FROM orders RETURNING id) SELECT id FROM gone",
    "DELETE FROM customers",
    "TRUNCATE orders",
];

async fn guarded(database: &Database) -> Client {
    let client = install(database).await;
    client
        .batch_execute(
            "CREATE TABLE customers (id int PRIMARY KEY); INSERT INTO customers VALUES (1); \
             ALTER TABLE orders ADD customer int REFERENCES customers ON DELETE CASCADE; \
             INSERT INTO orders VALUES (1, 'first', 1); SELECT tenure.fence_table('orders', 'orders')",
        )
        .await
        .unwrap();
    client
}

#[tokio::test]
async fn every_kind_of_write_needs_a_transaction_with_a_token() {
    let Some(database) = Database::on_shared("guarded") else { return };
    let mut client = guarded(&database).await;
    for write in WRITES {
        let forgotten = client.execute(write, &[]).await;
        assert_eq!(code(forgotten).code(), "TF005", "{write}");
        // The token of another resource does not count.
        let other = fenced(&mut client, &PostgresFence::new("stock"), "billing=7").await.unwrap();
        assert_eq!(code(other.execute(write, &[]).await).code(), "TF005", "{write}");
        drop(other);
        let transaction = fenced(&mut client, &PostgresFence::new("orders"), "billing=7").await.unwrap();
        transaction.execute(write, &[]).await.unwrap_or_else(|error| panic!("{write}: {error}"));
        transaction.rollback().await.unwrap();
    }
    // The client cannot use a connection again after a failed COPY.
    assert_eq!(code(copy(&user(&database).await).await).code(), "TF005");
    client.batch_execute("BEGIN; SELECT tenure.fence('orders', 'billing', 7)").await.unwrap();
    copy(&client).await.unwrap();
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(database.sql("SELECT string_agg(id::text, ',' ORDER BY id) FROM orders"), "1,8,9");
    // The next transaction needs its own token. Reads need none.
    assert_eq!(code(client.execute(WRITES[0], &[]).await).code(), "TF005");
    client.query("SELECT FROM orders FOR UPDATE", &[]).await.unwrap();
    let refused = client.execute(WRITES[0], &[]).await.unwrap_err();
    let answer = refused.as_db_error().unwrap();
    assert_eq!(
        answer.message(),
        "the table public.orders is guarded by the fence orders: INSERT was refused, because its transaction carries no token"
    );
    assert!(answer.hint().unwrap().contains(".fence('orders', lease, token)"), "{answer:?}");

    client
        .batch_execute("SELECT tenure.unfence_table('orders'); SELECT tenure.unfence_table('orders')")
        .await
        .unwrap();
    client.execute(WRITES[0], &[]).await.unwrap();
}

async fn copy(client: &Client) -> Result<(), tokio_postgres::Error> {
    let sink = client.copy_in::<_, Bytes>("COPY orders (id) FROM STDIN").await?;
    let mut sink = std::pin::pin!(sink);
    sink.send(Bytes::from_static(b"8\n9\n")).await?;
    sink.finish().await?;
    Ok(())
}

#[tokio::test]
async fn a_rollback_to_a_savepoint_takes_the_token_back() {
    let Some(database) = Database::on_shared("guarded_savepoints") else { return };
    let mut client = guarded(&database).await;
    let fence = PostgresFence::new("orders");
    let mut outer = client.transaction().await.unwrap();
    let inner = outer.savepoint("s").await.unwrap();
    fence.write(&token("billing=7"), &inner).await.unwrap();
    inner.execute(WRITES[0], &[]).await.unwrap();
    inner.rollback().await.unwrap();
    assert_eq!(code(outer.execute(WRITES[0], &[]).await).code(), "TF005");
    drop(outer);

    let mut outer = client.transaction().await.unwrap();
    let inner = outer.savepoint("s").await.unwrap();
    fence.write(&token("billing=7"), &inner).await.unwrap();
    inner.commit().await.unwrap();
    outer.execute(WRITES[0], &[]).await.unwrap();
    outer.rollback().await.unwrap();

    // A block that catches its own error is a savepoint, too.
    let caught = client
        .batch_execute(
            "BEGIN; DO $$ BEGIN PERFORM tenure.fence('orders', 'billing', 7); RAISE 'x'; EXCEPTION WHEN OTHERS THEN END $$; \
             INSERT INTO orders VALUES (2)",
        )
        .await;
    assert_eq!(code(caught).code(), "TF005");
    client.batch_execute("ROLLBACK").await.unwrap();
    // A refusal that is caught admits nothing.
    client.batch_execute("SELECT tenure.fence('orders', 'billing', 8)").await.unwrap();
    let stale = client
        .batch_execute(
            "BEGIN; DO $$ BEGIN PERFORM tenure.fence('orders', 'billing', 7); EXCEPTION WHEN OTHERS THEN END $$; \
             INSERT INTO orders VALUES (2)",
        )
        .await;
    assert_eq!(code(stale).code(), "TF005");
}

#[tokio::test]
async fn partitions_are_guarded_also_later_ones() {
    let Some(database) = Database::on_shared("guarded_partitions") else { return };
    let client = install(&database).await;
    client
        .batch_execute(
            "CREATE TABLE events (id int, note text) PARTITION BY RANGE (id); \
             CREATE TABLE low PARTITION OF events FOR VALUES FROM (0) TO (10); \
             SELECT tenure.fence_table('events', 'events'); SELECT tenure.fence_table('events', 'events'); \
             CREATE TABLE high PARTITION OF events FOR VALUES FROM (10) TO (20)",
        )
        .await
        .unwrap();
    for write in [
        "INSERT INTO events VALUES (1)",
        "INSERT INTO low VALUES (1)",
        "INSERT INTO high VALUES (11)",
        "TRUNCATE events",
        "TRUNCATE low",
    ] {
        assert_eq!(code(client.batch_execute(write).await).code(), "TF005", "{write}");
        let fence = "SELECT tenure.fence('events', 'billing', 7)";
        client.batch_execute(&format!("BEGIN; {fence}; {write}; COMMIT")).await.unwrap();
    }
    // The documentation says so: a later partition is guarded against TRUNCATE by another call.
    client.batch_execute("TRUNCATE high; SELECT tenure.fence_table('events', 'events')").await.unwrap();
    assert_eq!(code(client.batch_execute("TRUNCATE high").await).code(), "TF005");
    client.batch_execute("SELECT tenure.unfence_table('events')").await.unwrap();
    client
        .batch_execute("INSERT INTO events VALUES (1); INSERT INTO low VALUES (1); TRUNCATE low, high")
        .await
        .unwrap();
}

#[tokio::test]
async fn what_cannot_be_guarded_is_refused() {
    let Some(database) = Database::on_shared("unguardable") else { return };
    let client = guarded(&database).await;
    client
        .batch_execute(
            "CREATE VIEW some_orders AS SELECT * FROM orders; CREATE TABLE parent (id int); \
             CREATE TABLE heir () INHERITS (parent); CREATE SEQUENCE numbers",
        )
        .await
        .unwrap();
    for (arguments, expected) in [
        ("'missing', 'orders'", "42P01"),
        ("'some_orders', 'orders'", "TF006"),
        ("'numbers', 'orders'", "TF006"),
        ("'parent', 'orders'", "TF006"),
        ("'orders', 'another'", "TF006"),
        ("'orders', ''", "TF006"),
        ("'orders', NULL", "TF006"),
        ("NULL, 'orders'", "TF006"),
        ("0, 'orders'", "TF006"),
    ] {
        let call = format!("SELECT tenure.fence_table({arguments})");
        assert_eq!(code(client.batch_execute(&call).await).code(), expected, "{call}");
    }
    assert_eq!(code(client.batch_execute("SELECT tenure.unfence_table(NULL)").await).code(), "TF006");
    client
        .batch_execute("SELECT tenure.fence_table('orders', 'orders')")
        .await
        .expect("it is guarded already");
    client
        .batch_execute(
            "SELECT tenure.unfence_table('orders'); SELECT tenure.fence_table('orders', 'an''other')",
        )
        .await
        .unwrap();
    client
        .batch_execute(
            "BEGIN; SELECT tenure.fence('an''other', 'billing', 7); INSERT INTO orders VALUES (5); COMMIT",
        )
        .await
        .unwrap();
}

/// The role has no right on the table of marks, and none to remove the guard.
#[tokio::test]
async fn a_role_with_the_least_rights_writes_to_a_guarded_table_and_cannot_remove_the_guard() {
    let Some(database) = Database::on_shared("guarded_role") else { return };
    let client = guarded(&database).await;
    let rights = FenceSchema::usual().rights("clerk");
    client
        .batch_execute(&format!("CREATE ROLE clerk LOGIN; GRANT SELECT, INSERT ON orders TO clerk; {rights}"))
        .await
        .unwrap();
    let mut clerk = role_at(&database, database.server().address(), "clerk").await;
    assert_eq!(code(clerk.execute(WRITES[0], &[]).await).code(), "TF005");
    let transaction = fenced(&mut clerk, &PostgresFence::new("orders"), "billing=7").await.unwrap();
    transaction.execute(WRITES[0], &[]).await.unwrap();
    transaction.commit().await.unwrap();
    for forbidden in [
        "UPDATE tenure.fence SET token = 1",
        "DELETE FROM tenure.fence",
        "INSERT INTO tenure.fence VALUES ('x', 'y', 1, now())",
        "SELECT tenure.unfence_table('orders')",
        "SELECT tenure.fence_table('orders', 'orders')",
        "DROP TRIGGER tenure_fence ON orders",
    ] {
        assert_eq!(code(clerk.batch_execute(forbidden).await).code(), "42501", "{forbidden}");
    }
    assert_eq!(clerk.query("SELECT token FROM tenure.fence", &[]).await.unwrap().len(), 1);
}
