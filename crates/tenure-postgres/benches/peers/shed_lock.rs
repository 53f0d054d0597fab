use std::time::Duration;

use tenure_store::BoxFuture;
use tenure_testkit::ComparedLock;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::Parameter;

/// The statements of ShedLock's JDBC provider with the time of the database, done again without the cost of Java.
///
/// ShedLock itself never waits: the next run of the schedule tries again. Here a contender tries every 100 ms.
pub(crate) struct ShedLock {
    client: Client,
    name: String,
    /// Name of the machine in ShedLock. Here each lock is one of its own.
    locked_by: String,
    seconds: f64,
    exists: bool,
}

impl ShedLock {
    pub(crate) fn new(client: Client, name: &str, ttl: Duration) -> Self {
        static OPENED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = OPENED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let locked_by = format!("{}-{number}", std::process::id());
        Self { client, name: name.to_owned(), locked_by, seconds: ttl.as_secs_f64(), exists: false }
    }

    /// Executes a statement with the name, the owner and the ttl as its parameters. True if it changed a row.
    async fn changes(&self, sql: &str) -> bool {
        let parameters: &[Parameter<'_>] =
            &[(&self.name, Type::TEXT), (&self.locked_by, Type::TEXT), (&self.seconds, Type::FLOAT8)];
        self.client.execute_typed(sql, parameters).await.unwrap() == 1
    }

    async fn try_lock(&mut self) -> bool {
        // It inserts once per process, and remembers that the row exists.
        let insert = !std::mem::replace(&mut self.exists, true);
        let update = format!(
            "SET lock_until = {UNTIL}, locked_at = {NOW}, locked_by = $2 \
             WHERE shedlock.name = $1 AND shedlock.lock_until <= {NOW}"
        );
        if insert {
            self.changes(&format!(
                "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES ($1, {UNTIL}, {NOW}, $2) \
                 ON CONFLICT (name) DO UPDATE {update}"
            ))
            .await
        } else {
            self.changes(&format!("UPDATE shedlock {update}")).await
        }
    }
}

impl ComparedLock for ShedLock {
    fn acquire(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            while !self.try_lock().await {
                tokio::time::sleep(POLL).await;
            }
        })
    }

    fn renew(&mut self) -> BoxFuture<'_, Option<bool>> {
        Box::pin(async {
            let sql = format!(
                "UPDATE shedlock SET lock_until = {UNTIL} \
                 WHERE name = $1 AND locked_by = $2 AND lock_until > {NOW}"
            );
            Some(self.changes(&sql).await)
        })
    }

    fn release(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let sql = format!(
                "UPDATE shedlock SET lock_until = CASE WHEN locked_at + {AT_LEAST} > {NOW} \
                 THEN locked_at + {AT_LEAST} ELSE {NOW} END WHERE name = $1 AND locked_by = $2"
            );
            assert!(self.changes(&sql).await);
        })
    }
}

const NOW: &str = "timezone('utc', CURRENT_TIMESTAMP)";
const UNTIL: &str = "timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $3)";
/// ShedLock's `lockAtLeastFor`, which is zero by default.
const AT_LEAST: &str = "make_interval(secs => 0)";

const POLL: Duration = Duration::from_millis(100);
