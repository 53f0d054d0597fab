use std::fmt;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_store::BoxFuture;

use super::jobs::Jobs;

/// Jobs that run off the keeper's loop, and the replies that wait for them.
///
/// A healthy disk answers in microseconds, a failing one never. Meanwhile the keeper must watch the deadlines of all
/// leases. So workers wait for the disk, each job has a limit, and the keeper continues without a job that misses its
/// limit.
pub(crate) struct Background {
    jobs: Jobs,
    replies: FuturesUnordered<BoxFuture<'static, ()>>,
}

/// Answers a caller.
pub(crate) type Reply = Box<dyn FnOnce() + Send>;

impl Background {
    pub(crate) fn new(jobs: Jobs) -> Self {
        Self { jobs, replies: FuturesUnordered::new() }
    }

    /// Runs the job, then sends the replies. A program may exit as soon as it has its reply, and would leave the job
    /// undone.
    pub(crate) fn run(&mut self, job: impl FnOnce() + Send + 'static, replies: Vec<Reply>) {
        let done = self.jobs.run(JOB_MAX, job);
        self.reply_after(done.map(|_| ()), replies);
    }

    /// Sends the replies once the future has completed.
    pub(crate) fn reply_after(
        &mut self,
        first: impl Future<Output = ()> + Send + 'static,
        replies: Vec<Reply>,
    ) {
        self.replies.push(Box::pin(async move {
            first.await;
            replies.into_iter().for_each(|reply| reply());
        }));
    }

    /// True if no job or reply is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.replies.is_empty()
    }

    /// Waits until a job and its replies are done; `None` if none is pending.
    pub(crate) async fn next(&mut self) -> Option<()> {
        self.replies.next().await
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("under_way", &self.replies.len()).finish_non_exhaustive()
    }
}

/// Longest time that a reply waits for the disk.
const JOB_MAX: Duration = Duration::from_secs(1);
