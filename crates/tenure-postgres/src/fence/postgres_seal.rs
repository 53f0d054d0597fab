use tenure_fence::{FenceError, FencingToken, Seal};
use tokio_postgres::Client;

use super::PostgresFence;
use super::postgres_fence::{Call, answer};
use super::refusal::TRIES_MAX;
use super::server_error::ServerError;
use crate::words;

/// A fence with a connection that raises it: see [`PostgresFence::seal_on`].
#[derive(Debug)]
pub struct PostgresSeal<'c> {
    fence: PostgresFence,
    client: &'c Client,
}

impl<'c> PostgresSeal<'c> {
    pub(super) fn new(fence: PostgresFence, client: &'c Client) -> Self {
        Self { fence, client }
    }
}

impl Seal for PostgresSeal<'_> {
    /// Raises the fence. Waits for the open transactions of earlier holders to end.
    async fn seal<'w>(&'w self, token: &'w FencingToken) -> Result<(), FenceError> {
        let fence = &self.fence;
        let call = Call::new(fence, token);
        let refusal = fence.refusal(token, call.seen());
        let mut tries = 1;
        loop {
            match self.client.query_typed(fence.statement(), &call.parameters()).await {
                Ok(rows) => {
                    answer(&rows).ok_or_else(|| refusal.of_answer())?;
                    fence.saw(token.token().get());
                    return Ok(());
                }
                Err(error) => match ServerError::of_tokio(&error) {
                    Some(answer) if answer.is_passing() && tries < TRIES_MAX => tries += 1,
                    Some(answer) => return Err(refusal.of_own_transaction(&answer)),
                    None => return Err(FenceError::unknown(fence.resource(), words::chain(&error))),
                },
            }
        }
    }
}
