//! The rule of the fence, call by call.

use tenure_fence::{Fence, FenceError, Seal};
use tenure_postgres::PostgresFence;
use tenure_store::Reason;

use crate::database::Database;
use crate::{code, fenced, install, token, user};

#[tokio::test]
async fn a_stale_writers_transaction_leaves_no_trace() {
    let Some(database) = Database::on_shared("no_trace") else { return };
    let mut client = install(&database).await;
    let fence = PostgresFence::new("orders");
    let transaction = fenced(&mut client, &fence, "billing=8").await.unwrap();
    transaction.execute("INSERT INTO orders VALUES (1, 'new')", &[]).await.unwrap();
    transaction.commit().await.unwrap();
    let mark = || database.sql("SELECT resource, lease, token FROM tenure.fence");
    assert_eq!(mark(), "orders|billing|8");

    // It writes before the fence, offers its token, ignores the answer, writes again and commits.
    let transaction = client.transaction().await.unwrap();
    transaction.execute("INSERT INTO orders VALUES (2, 'late')", &[]).await.unwrap();
    let refused = PostgresFence::new("orders").write(&token("billing=7"), &transaction).await.unwrap_err();
    let FenceError::Stale { highest, .. } = &refused else { panic!("{refused}") };
    assert_eq!(highest.get(), 8);
    assert_eq!(
        refused.to_string(),
        "orders refused token 7 of lease billing: token 8 has been there. A newer holder writes: stop for good"
    );
    assert_eq!(
        code(transaction.execute("INSERT INTO orders VALUES (3, 'later')", &[]).await).code(),
        "25P02"
    );
    // PostgreSQL answers ROLLBACK, and the client calls that a success.
    transaction.commit().await.unwrap();
    assert_eq!(database.sql("SELECT id FROM orders"), "1");
    assert_eq!(mark(), "orders|billing|8");
}

#[tokio::test]
async fn an_equal_token_is_the_same_holder_writing_again_and_at_the_same_time() {
    let Some(database) = Database::on_shared("equal") else { return };
    let (mut first, mut second) = (install(&database).await, user(&database).await);
    let fence = PostgresFence::new("orders");
    for id in [1, 2] {
        let transaction = fenced(&mut first, &fence, "billing=8").await.unwrap();
        transaction.execute("INSERT INTO orders VALUES ($1)", &[&id]).await.unwrap();
        transaction.commit().await.unwrap();
    }
    // Two open transactions of one holder do not wait for each other.
    let one = fenced(&mut first, &fence, "billing=8").await.unwrap();
    let two = fenced(&mut second, &fence, "billing=8").await.unwrap();
    two.execute("INSERT INTO orders VALUES (3)", &[]).await.unwrap();
    two.commit().await.unwrap();
    one.execute("INSERT INTO orders VALUES (4)", &[]).await.unwrap();
    one.commit().await.unwrap();
    assert_eq!(database.sql("SELECT count(*) FROM orders"), "4");
}

#[tokio::test]
async fn a_newer_holder_waits_for_the_open_transaction_of_an_earlier_one_and_new_ones_queue_behind_it() {
    let Some(database) = Database::on_shared("waits") else { return };
    let mut old = install(&database).await;
    let fence = PostgresFence::new("orders");
    fence.seal_on(&old).seal(&token("billing=7")).await.unwrap();
    let open = fenced(&mut old, &fence, "billing=7").await.unwrap();
    open.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();

    let seal = |offered: &'static str, client: tokio_postgres::Client, fence: PostgresFence| {
        tokio::spawn(async move { fence.seal_on(&client).seal(&token(offered)).await })
    };
    let newer = seal("billing=8", user(&database).await, fence.clone());
    waiting(&database, 1).await;
    // A shared lock would be free for it. Otherwise a stream of such transactions could keep the newer one waiting.
    let late = seal("billing=7", user(&database).await, PostgresFence::new("orders"));
    waiting(&database, 2).await;
    open.commit().await.unwrap();
    newer.await.unwrap().unwrap();
    assert!(late.await.unwrap().unwrap_err().is_stale());
    assert_eq!(database.sql("SELECT count(*) FROM orders"), "1");
}

/// Waits until this many sessions wait for the lock of a resource.
pub(crate) async fn waiting(database: &Database, sessions: usize) {
    let watcher = user(database).await;
    let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND wait_event_type = 'Lock' AND wait_event = 'advisory'";
    for _ in 0..500 {
        if watcher.query_one(count, &[]).await.unwrap().get::<_, i64>(0) == sessions as i64 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{sessions} sessions never waited");
}

#[tokio::test]
async fn a_rollback_undoes_the_mark_and_a_savepoint_too() {
    let Some(database) = Database::on_shared("rollbacks") else { return };
    let mut client = install(&database).await;
    let fence = PostgresFence::new("orders");
    let mark = || database.sql("SELECT token FROM tenure.fence");
    fenced(&mut client, &fence, "billing=9").await.unwrap().rollback().await.unwrap();
    assert_eq!(mark(), "");
    let mut outer = fenced(&mut client, &fence, "billing=5").await.unwrap();
    let inner = outer.savepoint("s").await.unwrap();
    fence.write(&token("billing=8"), &inner).await.unwrap();
    inner.rollback().await.unwrap();
    // It is as if the greater token had never been there, also for the memory of the fence.
    fence.write(&token("billing=5"), &outer).await.unwrap();
    outer.commit().await.unwrap();
    assert_eq!(mark(), "5");
    fenced(&mut client, &fence, "billing=6").await.unwrap().commit().await.unwrap();
    assert_eq!(mark(), "6");
}

#[tokio::test]
async fn of_concurrent_first_writers_the_greatest_token_wins_at_every_isolation_level() {
    let Some(database) = Database::on_shared("first") else { return };
    install(&database).await;
    for isolation in ["read committed", "repeatable read", "serializable"] {
        for round in 0..10 {
            let (resource, racers) = (format!("{isolation} {round}"), 8);
            let mut tasks = Vec::new();
            for number in 1..=racers {
                let (client, fence) = (user(&database).await, PostgresFence::new(&resource));
                let set = format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {isolation}");
                client.batch_execute(&set).await.unwrap();
                tasks.push(tokio::spawn(async move {
                    fence.seal_on(&client).seal(&token(&format!("billing={number}"))).await
                }));
            }
            for (number, task) in (1..=racers).zip(tasks) {
                match task.await.unwrap() {
                    Ok(()) => {}
                    Err(error) => assert!(error.is_stale() && number < racers, "{number}: {error}"),
                }
            }
            let mark = database.sql(&format!("SELECT token FROM tenure.fence WHERE resource = '{resource}'"));
            assert_eq!(mark, racers.to_string());
        }
    }
}

#[tokio::test]
async fn a_snapshot_from_before_the_takeover_is_a_serialization_failure() {
    let Some(database) = Database::on_shared("snapshots") else { return };
    let (client, other) = (install(&database).await, user(&database).await);
    let fence = PostgresFence::new("orders");
    let fresh = |number: u32| token(&format!("billing={number}"));
    let mut number = 10;
    for isolation in ["REPEATABLE READ", "SERIALIZABLE"] {
        // An equal token, a greater one, and the first one of a resource.
        for (offered, resource) in [(0, "orders"), (5, "orders"), (0, isolation)] {
            number += 10;
            let fence_of = |resource: &str| PostgresFence::new(resource);
            fence.seal_on(&other).seal(&fresh(number)).await.unwrap();
            client
                .batch_execute(&format!("BEGIN ISOLATION LEVEL {isolation}; SELECT FROM orders"))
                .await
                .unwrap();
            fence_of(resource).seal_on(&other).seal(&fresh(number + 3)).await.unwrap();
            let call = format!("SELECT tenure.fence('{resource}', 'billing', {})", number + offered);
            let refused = client.simple_query(&call).await;
            assert_eq!(code(refused).code(), "40001", "{isolation} {offered} {resource}");
            client.batch_execute("ROLLBACK").await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_token_of_another_lease_is_refused_whatever_its_number() {
    let Some(database) = Database::on_shared("other_lease") else { return };
    let mut client = install(&database).await;
    let fence = PostgresFence::new("orders");
    fence.seal_on(&client).seal(&token("billing=8")).await.unwrap();
    for offered in ["payroll=7", "payroll=8", "payroll=900", "Billing=9"] {
        let refused = crate::refused(&mut client, &fence, offered).await;
        let FenceError::OtherLease { mark, .. } = &refused else { panic!("{refused}") };
        assert_eq!(mark, &token("billing=8"));
        assert!(
            refused.to_string().starts_with("orders is fenced by lease billing, and refused token"),
            "{refused}"
        );
    }
    // Another resource has its own mark, and names are compared byte by byte.
    fenced(&mut client, &PostgresFence::new("Orders"), "payroll=7").await.unwrap().commit().await.unwrap();
    let slot = PostgresFence::new("slot");
    let offered = "a%20b/%C3%BC%20'x'%20of%20lease%20%22y%22=3";
    fenced(&mut client, &slot, offered).await.unwrap().commit().await.unwrap();
    let refused = crate::refused(&mut client, &slot, "payroll=7").await;
    let FenceError::OtherLease { mark, .. } = &refused else { panic!("{refused}") };
    assert_eq!(mark, &token(offered));
}

#[tokio::test]
async fn what_no_lease_has_is_refused_with_a_code_of_its_own() {
    let Some(database) = Database::on_shared("arguments") else { return };
    let mut client = install(&database).await;
    for (arguments, expected) in [
        ("'orders', 'billing', 0", "TF003"),
        ("'orders', 'billing', -1", "TF003"),
        ("'orders', 'billing', 9007199254740992", "TF003"),
        ("'orders', 'billing', NULL", "TF006"),
        ("NULL, 'billing', 7", "TF006"),
        ("'orders', NULL, 7", "TF006"),
        ("'orders', '', 7", "TF006"),
        ("'', 'billing', 7", "TF006"),
        ("'orders', 'billing', 7, NULL", "TF006"),
        ("repeat('x', 1025), 'billing', 7", "TF006"),
    ] {
        for function in ["fence", "fence_granted"] {
            let call = format!("SELECT tenure.{function}({arguments})");
            assert_eq!(code(client.simple_query(&call).await).code(), expected, "{call}");
        }
    }
    assert_eq!(database.sql("SELECT count(*) FROM tenure.fence"), "0");
    for resource in ["".to_owned(), "x".repeat(1025), "a\0b".to_owned()] {
        let refused = crate::refused(&mut client, &PostgresFence::new(resource), "billing=7").await;
        assert!(matches!(refused, FenceError::Refused { reason: Reason::Invalid, .. }), "{refused}");
    }
    fenced(&mut client, &PostgresFence::new("ü".repeat(512)), "billing=9007199254740991").await.unwrap();
}

/// A caller may pass a column of any collation.
#[tokio::test]
async fn the_collation_of_the_caller_does_not_matter() {
    let Some(database) = Database::on_shared("collations") else { return };
    let client = install(&database).await;
    client
        .batch_execute(
            "CREATE TABLE names (r text COLLATE \"POSIX\", l text COLLATE \"ucs_basic\"); \
             INSERT INTO names VALUES ('orders', 'billing'); \
             SELECT tenure.fence(r, l, 7) FROM names; SELECT tenure.fence(r, l, 7) FROM names",
        )
        .await
        .unwrap();
    let stale =
        client.simple_query("SELECT tenure.fence(resource => r, lease => l, token => 6) FROM names").await;
    assert_eq!(code(stale).code(), "TF001");

    // In this collation the name has another hash, and it has the same lock.
    database
        .sql("CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
    client.batch_execute("BEGIN; SELECT tenure.fence('orders', 'billing', 7)").await.unwrap();
    let other = user(&database).await;
    let newer = tokio::spawn(async move {
        let call = "SELECT tenure.fence('orders' COLLATE any_case, 'billing' COLLATE any_case, 8)";
        other.batch_execute(call).await
    });
    waiting(&database, 1).await;
    client.batch_execute("COMMIT").await.unwrap();
    newer.await.unwrap().unwrap();
    let other_case =
        client.simple_query("SELECT tenure.fence('ORDERS' COLLATE any_case, 'Billing', 1)").await;
    other_case.expect("it is another resource");
}

#[tokio::test]
async fn a_failed_transaction_a_reader_and_an_impatient_one_are_told_what_to_do() {
    let Some(database) = Database::on_shared("told") else { return };
    let mut client = install(&database).await;
    let fence = PostgresFence::new("orders");
    let transaction = client.transaction().await.unwrap();
    assert!(transaction.batch_execute("SELECT 1 / 0").await.is_err());
    let refused = fence.write(&token("billing=7"), &transaction).await.unwrap_err().to_string();
    assert!(
        refused.contains("orders was not written: a statement before the fence has failed: roll back"),
        "{refused}"
    );
    drop(transaction);

    let reader = client.build_transaction().read_only(true).start().await.unwrap();
    let refused = fence.write(&token("billing=7"), &reader).await.unwrap_err().to_string();
    assert!(refused.contains("only reads"), "{refused}");
    drop(reader);

    let holder = user(&database).await;
    holder.batch_execute("BEGIN; SELECT tenure.fence('orders', 'billing', 7)").await.unwrap();
    client.batch_execute("SET lock_timeout = '50ms'").await.unwrap();
    let refused = crate::refused(&mut client, &fence, "billing=8").await;
    assert!(matches!(refused, FenceError::Refused { reason: Reason::Unreachable, .. }), "{refused}");
    assert!(refused.to_string().contains("the transaction of another holder is still open"), "{refused}");
}

/// The transaction of a paused holder may be open. PostgreSQL can end it.
#[tokio::test]
async fn an_idle_transaction_of_a_paused_holder_ends_by_the_timeout_of_the_server() {
    let Some(database) = Database::on_shared("paused") else { return };
    let mut paused = install(&database).await;
    let fence = PostgresFence::new("orders");
    paused.batch_execute("SET idle_in_transaction_session_timeout = '100ms'").await.unwrap();
    let open = fenced(&mut paused, &fence, "billing=7").await.unwrap();
    open.execute("INSERT INTO orders VALUES (1)", &[]).await.unwrap();
    fence.seal_on(&user(&database).await).seal(&token("billing=8")).await.unwrap();
    assert!(open.commit().await.is_err());
    assert_eq!(database.sql("SELECT count(*) FROM orders"), "0");
}

#[tokio::test]
async fn a_mark_is_durable_also_if_the_user_does_not_wait_for_the_disk() {
    let Some(database) = Database::on_shared("durable") else { return };
    let mut client = install(&database).await;
    client.batch_execute("SET synchronous_commit = off").await.unwrap();
    let fence = PostgresFence::new("orders");
    let setting = "SELECT current_setting('synchronous_commit')";
    for expected in ["on", "off"] {
        // Only the first transaction of a term writes the mark.
        let transaction = fenced(&mut client, &fence, "billing=7").await.unwrap();
        let shown: String = transaction.query_one(setting, &[]).await.unwrap().get(0);
        assert_eq!(shown, expected);
        transaction.commit().await.unwrap();
    }
    assert_eq!(client.query_one(setting, &[]).await.unwrap().get::<_, String>(0), "off");
}
