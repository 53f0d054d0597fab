use sqlx::PgPool;
use tenure_fence::{FenceError, FencingToken, Seal};
use tenure_store::Reason;

use super::PostgresFence;
use super::postgres_fence::Call;
use super::refusal::TRIES_MAX;
use super::server_error::ServerError;
use super::sqlx_fence::query;

/// A fence with a pool of `sqlx` that raises it: see [`SqlxFence::seal_on`](super::SqlxFence::seal_on).
#[derive(Debug)]
pub struct SqlxSeal<'p> {
    fence: PostgresFence,
    pool: &'p PgPool,
}

impl<'p> SqlxSeal<'p> {
    pub(super) fn new(fence: PostgresFence, pool: &'p PgPool) -> Self {
        Self { fence, pool }
    }
}

impl Seal for SqlxSeal<'_> {
    /// Raises the fence. Waits for the open transactions of earlier holders to end.
    async fn seal<'w>(&'w self, token: &'w FencingToken) -> Result<(), FenceError> {
        let fence = &self.fence;
        let call = Call::new(fence, token);
        let refusal = fence.refusal(token, call.seen());
        let lost = |error| FenceError::refused(fence.resource(), Reason::Unreachable, error);
        let mut tries = 1;
        loop {
            // sqlx sends a statement in two parts. Only in a transaction does a pooler give both to one server connection.
            let mut transaction = self.pool.begin().await.map_err(lost)?;
            match query(fence.statement(), &call).fetch_one(&mut *transaction).await {
                Ok(_) => match transaction.commit().await {
                    Ok(()) => {
                        fence.saw(token.token().get());
                        return Ok(());
                    }
                    Err(error) => match ServerError::of_sqlx(&error) {
                        Some(answer) if answer.is_passing() && tries < TRIES_MAX => tries += 1,
                        Some(answer) => return Err(refusal.of_own_transaction(&answer)),
                        None => return Err(FenceError::unknown(fence.resource(), error)),
                    },
                },
                Err(sqlx::Error::ColumnDecode { .. } | sqlx::Error::RowNotFound) => {
                    return Err(refusal.of_answer());
                }
                Err(error) => match ServerError::of_sqlx(&error) {
                    Some(answer) if answer.is_passing() && tries < TRIES_MAX => tries += 1,
                    Some(answer) => return Err(refusal.in_transaction(&answer)),
                    // The transaction was not committed.
                    None => return Err(lost(error)),
                },
            }
        }
    }
}
