//! The cost of a fence: one statement, which can travel together with the first write.

use std::time::Duration;

use tenure_fence::{Fence, Seal};
use tenure_postgres::PostgresFence;

use crate::database::Database;
use crate::{fenced, install, token, user_at};

#[tokio::test]
async fn a_fenced_transaction_has_one_statement_more_and_a_seal_is_one() {
    let Some(database) = Database::on_shared("fence_cost") else { return };
    install(&database).await;
    let mut client = user_at(&database, database.proxy().address()).await;
    for fence in [PostgresFence::new("orders"), PostgresFence::new("orders")] {
        database.proxy().clear_log();
        let transaction = fenced(&mut client, &fence, "billing=7").await.unwrap();
        transaction.batch_execute("INSERT INTO orders VALUES (1) ON CONFLICT DO NOTHING").await.unwrap();
        transaction.commit().await.unwrap();
        let sent: Vec<_> = database.proxy().log().iter().map(|sent| sent.method.clone()).collect();
        assert_eq!(sent, ["QUERY", "EXECUTE", "QUERY", "QUERY"], "begin, fence, insert, commit");
    }
    database.proxy().clear_log();
    PostgresFence::new("orders").seal_on(&client).seal(&token("billing=8")).await.unwrap();
    assert_eq!(database.proxy().log().len(), 1);
}

/// The fence waits for a lock, and the write has been sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_write_can_be_sent_without_waiting_for_the_fence() {
    let Some(database) = Database::on_shared("pipelined") else { return };
    let admin = install(&database).await;
    let mut client = user_at(&database, database.proxy().address()).await;
    let (fence, offered) = (PostgresFence::new("orders"), token("billing=7"));
    for (number, other) in [(1, "7"), (2, "8")] {
        let insert = format!("INSERT INTO orders VALUES ({number})");
        admin
            .batch_execute(&format!("BEGIN; SELECT tenure.fence('orders', 'billing', {other})"))
            .await
            .unwrap();
        let transaction = client.transaction().await.unwrap();
        let together =
            async { tokio::join!(fence.write(&offered, &transaction), transaction.batch_execute(&insert)) };
        let release = async {
            for _ in 0..500 {
                if database.proxy().log().iter().any(|sent| sent.target.contains(&insert)) {
                    return admin.batch_execute("COMMIT").await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("the write was not sent");
        };
        let ((admitted, written), ()) = tokio::join!(together, release);
        if number == 1 {
            admitted.unwrap();
            written.unwrap();
        } else {
            assert!(admitted.unwrap_err().is_stale());
            assert_eq!(crate::code(written).code(), "25P02", "the server refuses what follows");
        }
        transaction.commit().await.unwrap();
    }
    assert_eq!(database.sql("SELECT string_agg(id::text, ',') FROM orders"), "1");
}
