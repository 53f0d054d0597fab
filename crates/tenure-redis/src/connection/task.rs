//! Tasks of connections, and their limits.

use std::time::Duration;

use tokio::task::JoinHandle;

/// Starts a task of a connection on the runtime of the call. The keeper calls a store on its own runtime, which the
/// user's work cannot starve. When that runtime ends, the connection ends with it, and the next call opens another.
#[expect(clippy::disallowed_methods, reason = "opens or drives a connection, on the runtime of its calls")]
pub(super) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn(task)
}

/// The output of a future, if it has one within this time.
pub(super) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "a limit for a server, not a promise to a holder")]
    let limited = tokio::time::timeout(limit, future);
    limited.await.ok()
}
