use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::Shared;
use tenure_store::{BoxFuture, Reason, StoreError};
use tokio::task::AbortHandle;

use super::task::spawn;

/// An attempt to open a connection, which all calls of one runtime share.
///
/// It is a task of its own and ends by its own limit. A call that gives up does not end it. Otherwise calls whose limit is
/// shorter than the handshake would begin it again and again, and never get a connection.
#[derive(Clone)]
pub(super) struct Attempt {
    task: AbortHandle,
    outcome: Shared<BoxFuture<'static, Result<(), Arc<StoreError>>>>,
}

impl Attempt {
    pub(super) fn start(opening: impl Future<Output = Result<(), StoreError>> + Send + 'static) -> Self {
        let task = spawn(opening);
        let abort = task.abort_handle();
        let outcome: BoxFuture<'static, _> = Box::pin(async {
            let ended =
                || StoreError::refused(Reason::Unreachable, "the Tokio runtime of the call has ended");
            task.await.unwrap_or_else(|_| Err(ended())).map_err(Arc::new)
        });
        Self { task: abort, outcome: outcome.shared() }
    }

    /// True if the outcome is known: a call that needs a connection now starts another attempt.
    pub(super) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for the end. Each call that waits gets the error.
    pub(super) async fn outcome(self) -> Result<(), StoreError> {
        self.outcome.await.map_err(|error| match &*error {
            StoreError::Refused(refused) => StoreError::refused(refused.reason, refused.source.to_string()),
            StoreError::Throttled(throttled) => StoreError::Throttled(throttled.clone()),
            StoreError::Unknown(unknown) => StoreError::unknown(unknown.source.to_string()),
        })
    }
}
