use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::Shared;
use tenure_store::{BoxFuture, Reason};
use tokio::task::AbortHandle;

use super::Connection;
use super::task::spawn;
use crate::open::OpenError;

/// Result of an attempt.
type Opened = Result<Arc<Connection>, OpenError>;

/// An attempt to open a connection, which all calls that need it share.
///
/// It is a task of its own and ends by its own limit. A call that gives up does not end it. Otherwise calls whose limit is
/// shorter than the handshake would begin it again and again, and never get a connection.
#[derive(Clone)]
pub(super) struct OpenAttempt {
    task: AbortHandle,
    outcome: Shared<BoxFuture<'static, Opened>>,
}

impl OpenAttempt {
    pub(super) fn start(opening: impl Future<Output = Opened> + Send + 'static) -> Self {
        let task = spawn(opening);
        let abort = task.abort_handle();
        let outcome: BoxFuture<'static, _> = Box::pin(async {
            let ended = || OpenError::new(Reason::Unreachable, "the tokio runtime of the call has ended");
            task.await.unwrap_or_else(|_| Err(ended()))
        });
        Self { task: abort, outcome: outcome.shared() }
    }

    /// True if the outcome is known: a call that needs a connection now starts another attempt.
    pub(super) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for the end. Each call that waits gets the connection, or the error.
    pub(super) async fn outcome(self) -> Opened {
        self.outcome.await
    }
}
