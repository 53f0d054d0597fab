use std::sync::Arc;
use std::time::Duration;

use super::deadlines::Deadlines;
use crate::clock::Clock;
use crate::host::workers::Workers;

/// Runs jobs on workers. Their limits share the keeper's one timer.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    pub(crate) workers: Arc<Workers>,
    pub(crate) clock: Arc<dyn Clock>,
    deadlines: Deadlines,
}

impl Jobs {
    pub(crate) fn new(workers: Arc<Workers>, clock: Arc<dyn Clock>, deadlines: Deadlines) -> Self {
        Self { workers, clock, deadlines }
    }

    /// The result of the job; `None` if it takes longer than `limit`, or no worker can run it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let workers = Arc::clone(&self.workers);
        self.until(limit, async move { workers.run(job).await.ok() })
    }

    /// The same for a job that leases can do without: see [`Workers::run_limited`].
    pub(crate) fn run_limited<T: Send + 'static>(
        &self,
        limit: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let workers = Arc::clone(&self.workers);
        self.until(limit, async move { workers.run_limited(job).await.ok() })
    }

    fn until<T: Send + 'static>(
        &self,
        limit: Duration,
        done: impl Future<Output = Option<T>> + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let done = self.deadlines.until(self.clock.now() + limit, done);
        async move { done.await.flatten() }
    }
}
