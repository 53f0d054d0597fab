//! A database that was restored from a backup.

use tenure_fence::{FenceError, Seal};
use tenure_postgres::PostgresFence;

use crate::database::Database;
use crate::{fenced, install, refused, token, user};

#[tokio::test]
async fn a_mark_that_went_back_is_refused_until_it_is_acknowledged() {
    let Some(database) = Database::on_shared("went_back") else { return };
    let mut client = install(&database).await;
    let fence = PostgresFence::new("orders");
    fence.seal_on(&client).seal(&token("billing=5")).await.unwrap();
    database.sql("CREATE TABLE backup AS TABLE tenure.fence");
    let newer = fenced(&mut client, &fence, "billing=8").await.unwrap();
    newer.commit().await.unwrap();
    // The next call shows that the commit was made.
    fenced(&mut client, &fence, "billing=8").await.unwrap().commit().await.unwrap();
    for restore in ["INSERT INTO tenure.fence TABLE backup", "SELECT"] {
        database.sql(&format!("DELETE FROM tenure.fence; {restore}"));
        let expected = if restore == "SELECT" { 0 } else { 5 };
        for offered in ["billing=5", "billing=8", "billing=9"] {
            let refused = refused(&mut client, &fence, offered).await;
            let FenceError::WentBack { seen, shown, .. } = &refused else { panic!("{refused}") };
            assert_eq!((seen.get(), shown.get()), (8, expected));
            let words = "has shown token 8 before: it was restored from a backup";
            assert!(refused.to_string().contains(words), "{refused}");
        }
        assert!(matches!(
            fence.seal_on(&client).seal(&token("billing=9")).await,
            Err(FenceError::WentBack { .. })
        ));
    }
    fence.clone().acknowledge();
    fenced(&mut client, &fence, "billing=6").await.unwrap().commit().await.unwrap();
    assert_eq!(database.sql("SELECT token FROM tenure.fence"), "6");
}

/// The memory has only tokens that were committed.
#[tokio::test]
async fn a_token_that_was_rolled_back_is_not_remembered() {
    let Some(database) = Database::on_shared("not_seen") else { return };
    let mut client = install(&database).await;
    let fence = PostgresFence::new("orders");
    fence.seal_on(&client).seal(&token("billing=5")).await.unwrap();
    let open = fenced(&mut client, &fence, "billing=8").await.unwrap();
    tenure_fence::Fence::write(&fence, &token("billing=8"), &open).await.unwrap();
    open.rollback().await.unwrap();
    fenced(&mut client, &fence, "billing=5").await.unwrap().commit().await.unwrap();
}

/// An old snapshot shows an old mark, which did not go back.
#[tokio::test]
async fn an_old_snapshot_is_no_backup() {
    let Some(database) = Database::on_shared("old_snapshot") else { return };
    let (mut client, other) = (install(&database).await, user(&database).await);
    let fence = PostgresFence::new("orders");
    for first in [1, 2] {
        let snapshot = client
            .build_transaction()
            .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
            .start()
            .await
            .unwrap();
        snapshot.query("SELECT FROM orders", &[]).await.unwrap();
        let newer = token(&format!("billing={}", 10 * first));
        fence.seal_on(&other).seal(&newer).await.unwrap();
        let refused = tenure_fence::Fence::write(&fence, &newer, &snapshot).await.unwrap_err().to_string();
        assert!(refused.contains("40001") && refused.contains("run the transaction again"), "{refused}");
    }
}
