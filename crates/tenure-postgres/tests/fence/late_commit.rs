//! A holder that saw its loss and stopped: what it had sent before arrives after the takeover.

use std::time::Duration;

use tenure_fence::{Fence, Seal};
use tenure_postgres::PostgresFence;
use tenure_testkit::{Fault, Rule};

use crate::database::Database;
use crate::rules::waiting;
use crate::{fenced, install, token, user, user_at};

/// The transaction was admitted, so it has the lock. The newer holder waits for its end, also if the client is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_held_back_is_made_before_the_newer_token_is_admitted() {
    let Some(database) = Database::on_shared("late_commit") else { return };
    let admin = install(&database).await;
    let mut old = user_at(&database, database.proxy().address()).await;
    let late = Rule::new(Fault::CutThenDeliver(Duration::from_secs(1))).containing("COMMIT").times(1);
    let late = database.proxy().install(late);
    for number in 1..=2 {
        let fence = PostgresFence::new(format!("orders {number}"));
        fence.seal_on(&admin).seal(&token("billing=7")).await.unwrap();
        let transaction = fenced(&mut old, &fence, "billing=7").await.unwrap();
        transaction.execute("INSERT INTO orders VALUES ($1)", &[&number]).await.unwrap();
        if number == 2 {
            // The connection dies in the open transaction: nothing was committed, and the newer holder gets the lock.
            database.proxy().cut_connections();
            assert!(transaction.commit().await.is_err());
        } else {
            assert!(transaction.commit().await.is_err(), "the client does not know that it will be made");
        }
        let newer = {
            let (fence, client) = (fence.clone(), user(&database).await);
            tokio::spawn(async move { fence.seal_on(&client).seal(&token("billing=8")).await })
        };
        if number == 1 {
            waiting(&database, 1).await;
            assert_eq!(late.counts().installed, 0, "it is still held back");
        }
        newer.await.unwrap().unwrap();
        let expected = if number == 1 { "1" } else { "0" };
        let written = format!("SELECT count(*) FROM orders WHERE id = {number}");
        assert_eq!(database.sql(&written), expected, "what the newer holder finds does not change any more");
        database.proxy().settle(Duration::from_secs(20));
        assert_eq!(database.sql(&written), expected);
        old = user_at(&database, database.proxy().address()).await;
        let refused = crate::refused(&mut old, &fence, "billing=7").await;
        assert!(refused.is_stale(), "{refused}");
    }
    assert_eq!(late.counts().applied, 1);
}

/// All statements were sent, and the network delivers them after the takeover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_held_back_before_its_fence_is_refused() {
    let Some(database) = Database::on_shared("late_fence") else { return };
    let admin = install(&database).await;
    let mut old = user_at(&database, database.proxy().address()).await;
    let fence = PostgresFence::new("orders");
    fence.seal_on(&admin).seal(&token("billing=7")).await.unwrap();
    let late = Rule::new(Fault::DelayRequest(Duration::from_secs(1))).containing(".fence(").times(1);
    let late = database.proxy().install(late);
    let transaction = old.transaction().await.unwrap();
    let offered = token("billing=7");
    let sent = async {
        let insert = "INSERT INTO orders VALUES (1)";
        tokio::join!(
            fence.write(&offered, &transaction),
            transaction.batch_execute(insert),
            transaction.batch_execute("COMMIT")
        )
    };
    let takeover = async {
        // The statements are under way.
        tokio::time::sleep(Duration::from_millis(300)).await;
        PostgresFence::new("orders").seal_on(&admin).seal(&token("billing=8")).await.unwrap();
        assert_eq!(late.counts().installed, 0, "the fence is still held back");
    };
    let ((admitted, inserted, _), ()) = tokio::join!(sent, takeover);
    assert!(admitted.unwrap_err().is_stale());
    assert_eq!(crate::code(inserted).code(), "25P02");
    assert_eq!(late.counts().installed, 1);
    assert_eq!(database.sql("SELECT count(*) FROM orders"), "0");
}

#[tokio::test]
async fn a_lost_answer_of_the_fence_means_that_nothing_was_written_and_one_of_a_seal_is_unknown() {
    let Some(database) = Database::on_shared("lost_fence") else { return };
    install(&database).await;
    let fence = PostgresFence::new("orders");
    let cut = || Rule::new(Fault::CutAfter).containing(".fence(").times(1);
    database.proxy().install(cut());
    let mut client = user_at(&database, database.proxy().address()).await;
    let refused = crate::refused(&mut client, &fence, "billing=7").await;
    assert!(matches!(refused, tenure_fence::FenceError::Refused { .. }), "{refused:?}");
    tenure_testkit::wait_until("the server has rolled back", || {
        database.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'lost_fence' AND xact_start IS NOT NULL",
        ) == "1"
    });
    assert_eq!(database.sql("SELECT count(*) FROM tenure.fence"), "0");
    database.proxy().install(cut());
    let client = user_at(&database, database.proxy().address()).await;
    let unknown = fence.seal_on(&client).seal(&token("billing=7")).await.unwrap_err();
    assert!(matches!(unknown, tenure_fence::FenceError::Unknown { .. }), "{unknown:?}");
    assert_eq!(database.sql("SELECT token FROM tenure.fence"), "7", "this time it was raised");
}
