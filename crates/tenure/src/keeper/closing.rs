use std::time::Duration;

use tokio::sync::oneshot;

use super::{Keeper, deliver};
use crate::Error;
use crate::clock::Instant;

/// A shutdown in progress, and the errors of the leases that could not be vacated.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// The callers that wait, each with the end of its wait, the earliest first.
    replies: Vec<(Instant, oneshot::Sender<Vec<Error>>)>,
    pub(crate) errors: Vec<Error>,
}

impl Closing {
    /// Adds a caller, which waits until `limit` at most.
    pub(crate) fn wait(&mut self, limit: Instant, reply: oneshot::Sender<Vec<Error>>) {
        self.replies.push((limit, reply));
    }

    /// End of the first caller's wait.
    pub(crate) fn limit(&self) -> Option<Instant> {
        self.replies.first().map(|(limit, _)| *limit)
    }

    /// Answers all callers, once all leases have ended. The first receives the errors.
    pub(crate) fn reply_to_all(&mut self) {
        for (_, reply) in self.replies.drain(..) {
            let _ = reply.send(std::mem::take(&mut self.errors));
        }
    }
}

impl Keeper {
    /// Answers the callers whose limit has passed. The keeper continues to vacate leases whose work has ended.
    pub(crate) fn close_in_time(&mut self, now: Instant) {
        let Some(closing) = &mut self.closing else { return };
        let due = closing.replies.iter().take_while(|(limit, _)| *limit <= now).count();
        for (_, reply) in closing.replies.drain(..due) {
            let pending =
                self.leases.values().filter_map(|entry| deliver::pending_error(entry, &self.store_name));
            let errors = std::mem::take(&mut closing.errors).into_iter().chain(pending).collect();
            let _ = reply.send(errors);
        }
    }
}

/// Longest duration of a shutdown.
pub(crate) const SHUTDOWN_MAX: Duration = Duration::from_secs(10);
