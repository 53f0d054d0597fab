use tenure_store::BoxFuture;
use tenure_testkit::ComparedLock;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::Parameter;

/// A lock of a session. It lasts as long as its connection.
pub(crate) struct AdvisoryLock {
    client: Client,
    name: String,
}

impl AdvisoryLock {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self { client, name: name.to_owned() }
    }

    async fn call(&self, function: &str) {
        let sql = format!("SELECT {function}(hashtextextended($1, 0))::text");
        let parameters: &[Parameter<'_>] = &[(&self.name, Type::TEXT)];
        self.client.query_typed(&sql, parameters).await.unwrap();
    }
}

impl ComparedLock for AdvisoryLock {
    fn acquire(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.call("pg_advisory_lock"))
    }

    fn renew(&mut self) -> BoxFuture<'_, Option<bool>> {
        Box::pin(async { None })
    }

    fn release(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.call("pg_advisory_unlock"))
    }
}
