//! Tasks of connections, and their limits.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

/// Starts a task of a connection on the runtime of the call. The keeper calls a store on its own runtime, which the
/// user's work cannot starve. When that runtime ends, the connection ends with it, and the next call opens another.
#[expect(clippy::disallowed_methods, reason = "opens or drives a connection, on the runtime of its calls")]
pub(crate) fn spawn<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn(task)
}

/// The output of work that may block, in a thread of its own; `None` without it. A caller that gives up leaves the thread
/// alone: one of the runtime would keep the runtime from ending.
#[expect(clippy::disallowed_methods, reason = "the read of a file that may never end")]
pub(crate) async fn in_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, output) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(move || drop(done.send(work()))).ok()?;
    output.await.ok()
}

/// The output of a future, if it has one within this time.
pub(super) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "a limit for a server, not a promise to a holder")]
    let limited = tokio::time::timeout(limit, future);
    limited.await.ok()
}

/// Stops a driver, unless it is kept.
pub(crate) struct AbortOnDrop(Option<AbortHandle>);

impl AbortOnDrop {
    pub(super) fn new(driver: AbortHandle) -> Self {
        Self(Some(driver))
    }

    /// Leaves the driver alone.
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(driver) = &self.0 {
            driver.abort();
        }
    }
}
