use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_fence::{Fence, FenceError, FencingToken};
use tenure_store::Reason;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Transaction};

use super::refusal::Refusal;
use super::server_error::ServerError;
use super::{FenceSchema, PostgresSeal};
use crate::words;

/// The fence of one resource in a database.
///
/// [`write`](Fence::write) fences a transaction: call it first. It sends one statement, without a name, so it works through a
/// pooler in transaction mode. If it fails, the server rolls the transaction back; also if the program ignores the error.
///
/// The statement can travel together with the first write: poll both futures at once, the fence first, for example with
/// `tokio::try_join!`. The server executes them in order, and refuses the second one if the first one fails.
///
/// A clone shares the memory of the greatest token that the resource has shown. If it shows a smaller one later, the database
/// was restored from a backup, and every call fails with [`FenceError::WentBack`] until [`acknowledge`](Self::acknowledge).
#[derive(Clone, Debug)]
pub struct PostgresFence {
    schema: FenceSchema,
    resource: String,
    lease_here: bool,
    statement: String,
    /// The greatest token that the database has shown as committed; zero if it has shown none.
    seen: Arc<AtomicU64>,
}

impl PostgresFence {
    /// The fence of this resource in the schema `tenure`: any name of 1 to 1,024 bytes that its writers agree on.
    ///
    /// The lease may be on any store. A token is stale as soon as a greater one was admitted.
    pub fn new(resource: impl Into<String>) -> Self {
        FenceSchema::usual().fence(resource)
    }

    pub(super) fn in_schema(schema: FenceSchema, resource: String) -> Self {
        let statement = schema.call(false);
        Self { schema, resource, lease_here: false, statement, seen: Arc::default() }
    }

    /// The lease is in the tables of the same database. A token is then stale from the moment its successor is *granted*, and a
    /// token that was never granted here is refused, too.
    ///
    /// The transaction locks the row of the grant. No renewal waits for it. The grant of a successor does, and is tried again
    /// if that takes longer than a second.
    #[must_use]
    pub fn lease_here(self) -> Self {
        Self { lease_here: true, statement: self.schema.call(true), ..self }
    }

    /// The resource.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Accepts that the database shows a smaller token than before, after an operator has inspected it: see
    /// [`FenceError::WentBack`].
    pub fn acknowledge(&self) {
        self.seen.store(0, Ordering::Relaxed);
    }

    /// Raises the fence with this connection, in a transaction of its own: `lease.fenced(&fence.seal_on(&client)).seal()`.
    pub fn seal_on<'c>(&self, client: &'c Client) -> PostgresSeal<'c> {
        PostgresSeal::new(self.clone(), client)
    }

    pub(super) fn schema(&self) -> &FenceSchema {
        &self.schema
    }

    pub(super) fn has_lease_here(&self) -> bool {
        self.lease_here
    }

    pub(super) fn statement(&self) -> &str {
        &self.statement
    }

    /// The greatest token that the database has shown as committed.
    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// The database has shown this mark as committed.
    pub(super) fn saw(&self, mark: u64) {
        self.seen.fetch_max(mark, Ordering::Relaxed);
    }

    /// Remembers the mark that the call returned: the one that was committed before this transaction.
    pub(super) fn admitted(&self, before: i64) {
        self.saw(u64::try_from(before).unwrap_or_default());
    }

    /// A refusal of a call that was sent with this greatest token.
    pub(super) fn refusal<'a>(&'a self, offered: &'a FencingToken, seen: u64) -> Refusal<'a> {
        Refusal { fence: self, offered, seen }
    }
}

impl Fence for PostgresFence {
    type Write<'w> = &'w Transaction<'w>;
    type Written = ();

    async fn write<'w>(
        &'w self,
        token: &'w FencingToken,
        transaction: &'w Transaction<'w>,
    ) -> Result<(), FenceError> {
        let call = Call::new(self, token);
        let refusal = self.refusal(token, call.seen());
        match transaction.query_typed(self.statement(), &call.parameters()).await {
            Ok(rows) => {
                self.admitted(answer(&rows).ok_or_else(|| refusal.of_answer())?);
                Ok(())
            }
            Err(error) => Err(match ServerError::of_tokio(&error) {
                Some(answer) => refusal.in_transaction(&answer),
                // The transaction ended with its connection, before it could be committed.
                None => FenceError::refused(&self.resource, Reason::Unreachable, words::chain(&error)),
            }),
        }
    }
}

/// The parameters of one call.
pub(super) struct Call<'a> {
    resource: &'a str,
    lease: &'a str,
    token: i64,
    seen: i64,
}

impl<'a> Call<'a> {
    pub(super) fn new(fence: &'a PostgresFence, token: &'a FencingToken) -> Self {
        let number = |number: u64| i64::try_from(number).expect("a token has at most 53 bits");
        Self {
            resource: &fence.resource,
            lease: token.name().as_str(),
            token: number(token.token().get()),
            seen: number(fence.seen()),
        }
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen.unsigned_abs()
    }

    pub(super) fn parameters(&self) -> [(&(dyn ToSql + Sync), Type); 4] {
        [
            (&self.resource, Type::TEXT),
            (&self.lease, Type::TEXT),
            (&self.token, Type::INT8),
            (&self.seen, Type::INT8),
        ]
    }

    #[cfg(feature = "sqlx")]
    pub(super) fn parts(&self) -> (&'a str, &'a str, i64, i64) {
        (self.resource, self.lease, self.token, self.seen)
    }
}

/// The mark in the answer; `None` if the function is not the one of the migration.
pub(super) fn answer(rows: &[Row]) -> Option<i64> {
    rows.first()?.try_get(0).ok()
}
