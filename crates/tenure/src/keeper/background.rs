use std::fmt;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tenure_store::BoxFuture;

use super::jobs::Jobs;

/// What the keeper has done off its loop.
///
/// A disk answers in microseconds while it is healthy, and never when it fails, and the keeper has the deadlines of all
/// leases to watch meanwhile. So workers wait for the disk, each time with a limit, and the keeper goes on without what is
/// not done by then.
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

    /// Runs the job, and then replies: a program may end the moment it has its reply, and would leave the job undone.
    pub(crate) fn run(&mut self, job: impl FnOnce() + Send + 'static, replies: Vec<Reply>) {
        let done = self.jobs.run(JOB_MAX, job);
        self.reply_after(done.map(|_| ()), replies);
    }

    /// Replies once the future has ended.
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

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.replies.is_empty()
    }

    /// Waits until something is done; `None` if nothing is under way.
    pub(crate) async fn next(&mut self) -> Option<()> {
        self.replies.next().await
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("under_way", &self.replies.len()).finish_non_exhaustive()
    }
}

/// No reply waits longer for a disk.
const JOB_MAX: Duration = Duration::from_secs(1);
