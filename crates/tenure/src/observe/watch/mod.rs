//! Watching keys without contending for them.
//!
//! A watch reads each key when the store hints at a change, when a version is due to run out, and at intervals. A lost
//! hint only delays a report.

mod changes;
mod event;
mod hints;
mod holder_exits;
mod keys;
mod watcher;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tenure_store::Prefix;
use tokio::sync::mpsc;

pub use event::{Change, ChangeKind, WatchEvent};
pub(crate) use hints::ChangeHints;
pub(crate) use holder_exits::HolderExits;
pub(crate) use watcher::{Watcher, observe_surely};

use super::Observers;
use crate::keeper::{Command, Connection};

/// A stream of changes of a key and all keys below it. It begins with their current standing.
///
/// It never ends by itself, not even when the store fails. It starts at the first poll, and stops when dropped. A slow
/// reader gets reports later, but misses nothing that the records keep.
///
/// ```
/// use futures_util::StreamExt;
/// use tenure::store::Memory;
/// use tenure::{Coordinator, Prefix, WatchEvent, ChangeKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tenure::Error> {
/// let coordinator = Coordinator::connect(Memory::new()).await?;
/// let mut watch = coordinator.watch(&Prefix::parse("billing")?);
/// assert!(matches!(watch.next().await, Some(WatchEvent::Stands(seen)) if seen.standing.is_free()));
///
/// let lease = coordinator.lease("billing")?.acquire().await?;
/// let Some(WatchEvent::Changed(change)) = watch.next().await else { panic!() };
/// assert_eq!((change.kind, change.token), (ChangeKind::Granted, Some(lease.token())));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a watch yields nothing until it is polled"]
pub struct Watch {
    /// Keeps the keeper alive.
    connection: Connection,
    observers: Arc<Observers>,
    prefix: Prefix,
    renewals: bool,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    New,
    Watching(mpsc::Receiver<WatchEvent>),
    Over,
}

impl Watch {
    pub(crate) fn new(connection: Connection, observers: Arc<Observers>, prefix: Prefix) -> Self {
        Self { connection, observers, prefix, renewals: false, stage: Stage::New }
    }

    /// Reports renewals too. Call it before the first poll.
    pub fn renewals(mut self) -> Self {
        self.renewals = true;
        self
    }

    /// Watches on the keeper's runtime until the reader is gone.
    fn start(&self, out: mpsc::Sender<WatchEvent>) {
        let (clock, observers) = (Arc::clone(&self.connection.clock), Arc::clone(&self.observers));
        let (prefix, renewals) = (self.prefix.clone(), self.renewals);
        self.connection.keeper.send(Command::Visit(Box::new(move |store| {
            Box::pin(Watcher::new(store, clock, observers, prefix, renewals, out).run())
        })));
    }
}

impl Stream for Watch {
    type Item = WatchEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        let this = self.get_mut();
        if let Stage::New = this.stage {
            let (out, reported) = mpsc::channel(UNREAD_MAX);
            this.start(out);
            this.stage = Stage::Watching(reported);
        }
        let Stage::Watching(reported) = &mut this.stage else { return Poll::Ready(None) };
        let next = ready!(reported.poll_recv(context));
        Poll::Ready(Some(next.unwrap_or_else(|| {
            // The keeper has died: it does not end while a watch exists.
            this.stage = Stage::Over;
            let (error, seen_at) = (this.connection.gone_error(), this.connection.clock.wall());
            WatchEvent::Unavailable { error, seen_at }
        })))
    }
}

/// Number of events that wait for a slow reader. Beyond it the watch itself waits.
const UNREAD_MAX: usize = 64;

/// Interval of listings and of reads of vacant keys. It is long, because some stores charge per call.
const SLOW: Duration = Duration::from_secs(10);

/// First delay of a retry after a failed read. Each following delay doubles, up to [`SLOW`].
const RETRY: Duration = Duration::from_millis(250);
