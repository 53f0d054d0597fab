use sqlx::PgConnection;
use tenure_fence::{Fence, FenceError, FencingToken};
use tenure_store::Reason;

use super::postgres_fence::Call;
use super::server_error::ServerError;
use super::{PostgresFence, SqlxSeal};

/// A fence in transactions of `sqlx`: see [`PostgresFence::sqlx`].
///
/// ```no_run
/// # async fn run(lease: tenure::Lease, pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use tenure_postgres::PostgresFence;
///
/// let fence = PostgresFence::new("orders").sqlx();
/// let mut transaction = pool.begin().await?;
/// lease.fenced(&fence).write(&mut *transaction).await?;
/// sqlx::query("UPDATE orders SET billed = true WHERE id = 7").execute(&mut *transaction).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqlxFence(PostgresFence);

impl PostgresFence {
    /// The same fence, with the same memory, in transactions of `sqlx`.
    pub fn sqlx(&self) -> SqlxFence {
        SqlxFence(self.clone())
    }
}

impl SqlxFence {
    /// Raises the fence with a connection of this pool, in a transaction of its own.
    pub fn seal_on<'p>(&self, pool: &'p sqlx::PgPool) -> SqlxSeal<'p> {
        SqlxSeal::new(self.0.clone(), pool)
    }
}

impl Fence for SqlxFence {
    /// The connection of a transaction: `&mut *transaction`. Without a transaction, the write is not fenced.
    type Write<'w> = &'w mut PgConnection;
    type Written = ();

    async fn write<'w>(
        &'w self,
        token: &'w FencingToken,
        connection: &'w mut PgConnection,
    ) -> Result<(), FenceError> {
        let call = Call::new(&self.0, token);
        let refusal = self.0.refusal(token, call.seen());
        match query(self.0.statement(), &call).fetch_one(connection).await {
            Ok(before) => {
                self.0.admitted(before);
                Ok(())
            }
            Err(sqlx::Error::ColumnDecode { .. } | sqlx::Error::RowNotFound) => Err(refusal.of_answer()),
            Err(error) => Err(match ServerError::of_sqlx(&error) {
                Some(answer) => refusal.in_transaction(&answer),
                // The transaction ended with its connection, before it could be committed.
                None => FenceError::refused(self.0.resource(), Reason::Unreachable, error),
            }),
        }
    }
}

/// The call, as a statement without a name: a pooler may give the next transaction to another server connection.
pub(super) fn query<'q>(
    statement: &'q str,
    call: &Call<'q>,
) -> sqlx::query::QueryScalar<'q, sqlx::Postgres, i64, sqlx::postgres::PgArguments> {
    let (resource, lease, token, seen) = call.parts();
    sqlx::query_scalar(statement).bind(resource).bind(lease).bind(token).bind(seen).persistent(false)
}
