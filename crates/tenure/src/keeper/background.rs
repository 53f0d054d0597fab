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

    /// Runs a job on a witness, without a reply.
    pub(crate) fn run(&mut self, job: impl FnOnce() + Send + 'static) {
        let done = self.job(job);
        self.reply_after(done, Vec::new());
    }

    /// The end of a job on a witness, or of its limit.
    pub(crate) fn job(&self, job: impl FnOnce() + Send + 'static) -> BoxFuture<'static, ()> {
        self.jobs.run(JOB_MAX, job).map(drop_result).boxed()
    }

    /// The end of a job on the logbook or the verdicts, or of its limit.
    pub(crate) fn limited_job(&self, job: impl FnOnce() + Send + 'static) -> BoxFuture<'static, ()> {
        self.jobs.run_limited(JOB_MAX, job).map(drop_result).boxed()
    }

    /// Sends the replies once the future has completed: a program may exit as soon as it has its reply.
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

fn drop_result(_: Option<()>) {}

/// Longest time that a reply waits for the disk.
const JOB_MAX: Duration = Duration::from_secs(1);
