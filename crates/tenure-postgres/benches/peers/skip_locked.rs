use std::time::Duration;

use tenure_store::BoxFuture;
use tenure_testkit::ComparedLock;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::Parameter;

/// A row that a transaction holds with `SELECT … FOR UPDATE SKIP LOCKED`. A contender that finds it locked tries again
/// later.
pub(crate) struct SkipLockedRow {
    client: Client,
    name: String,
}

impl SkipLockedRow {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self { client, name: name.to_owned() }
    }

    async fn try_lock(&self) -> bool {
        self.client.batch_execute("BEGIN").await.unwrap();
        let sql = "SELECT name FROM held_row WHERE name = $1 FOR UPDATE SKIP LOCKED";
        let parameters: &[Parameter<'_>] = &[(&self.name, Type::TEXT)];
        if !self.client.query_typed(sql, parameters).await.unwrap().is_empty() {
            return true;
        }
        self.client.batch_execute("ROLLBACK").await.unwrap();
        false
    }
}

impl ComparedLock for SkipLockedRow {
    fn acquire(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            while !self.try_lock().await {
                let sql = "INSERT INTO held_row (name) VALUES ($1) ON CONFLICT DO NOTHING";
                let parameters: &[Parameter<'_>] = &[(&self.name, Type::TEXT)];
                if self.client.execute_typed(sql, parameters).await.unwrap() == 0 {
                    tokio::time::sleep(POLL).await;
                }
            }
        })
    }

    fn renew(&mut self) -> BoxFuture<'_, Option<bool>> {
        Box::pin(async { None })
    }

    fn release(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.client.batch_execute("COMMIT").await.unwrap() })
    }
}

/// Pause between two attempts, as of redis-py's lock. The statement itself never waits.
const POLL: Duration = Duration::from_millis(100);
