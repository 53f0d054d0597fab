use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tenure_store::Key;
use tokio::sync::{mpsc, watch};

use super::leader_watcher::LeaderWatcher;
use super::read_pace::ReadPace;
use super::{Leader, LeaderView};
use crate::Error;
use crate::keeper::Connection;
use crate::observe::Observers;

/// A stream of leaders: the present one first, then every change that was seen, never an older token. `None` means that
/// there is no leader: the lease is vacant or has run out.
///
/// It never ends by itself. After an error the stream continues: when the key can be read again, it yields the
/// leader. A cause that lasts is reported again after a minute, and then after growing pauses. It starts at the first poll, and stops when dropped.
///
/// Terms that began and ended between two reads are not reported; [`Coordinator::watch`](crate::Coordinator::watch)
/// reports them from the history.
#[must_use = "it yields nothing until it is polled"]
pub struct Leaders {
    connection: Connection,
    observers: Arc<Observers>,
    key: Key,
    pace: ReadPace,
    stage: LeadersStage,
}

enum LeadersStage {
    New,
    Watching { reports: mpsc::Receiver<Result<Option<Leader>, Error>>, view: watch::Receiver<LeaderView> },
    Over,
}

impl Leaders {
    pub(super) fn new(connection: Connection, observers: Arc<Observers>, key: Key, pace: ReadPace) -> Self {
        Self { connection, observers, key, pace, stage: LeadersStage::New }
    }

    /// Time since the latest successful read of the key; `None` before the first. What the stream yielded last is that
    /// old, also if nothing changes.
    pub fn age(&self) -> Option<Duration> {
        let LeadersStage::Watching { view, .. } = &self.stage else { return None };
        let as_of = view.borrow().as_of;
        as_of.map(|as_of| self.connection.clock.now().since(as_of))
    }

    /// Stops watching. The next poll starts anew, with the leader at that time.
    pub(super) fn stop(&mut self) {
        self.stage = LeadersStage::New;
    }

    /// The next leader; `None` inside if there is no leader. After the keeper has ended, every call fails.
    pub async fn next(&mut self) -> Result<Option<Leader>, Error> {
        let next = std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await;
        next.unwrap_or_else(|| Err(self.connection.gone_error()))
    }
}

impl Stream for Leaders {
    type Item = Result<Option<Leader>, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let LeadersStage::New = this.stage {
            let (out, reports) = mpsc::channel(UNREAD_MAX);
            let view =
                LeaderWatcher::start(&this.connection, &this.observers, &this.key, this.pace, Some(out));
            this.stage = LeadersStage::Watching { reports, view };
        }
        let LeadersStage::Watching { reports, .. } = &mut this.stage else { return Poll::Ready(None) };
        let next = ready!(reports.poll_recv(context));
        Poll::Ready(Some(next.unwrap_or_else(|| {
            this.stage = LeadersStage::Over;
            Err(this.connection.gone_error())
        })))
    }
}

impl fmt::Debug for Leaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaders").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Number of reports that wait for a slow reader. Beyond it the watcher itself waits.
const UNREAD_MAX: usize = 16;
