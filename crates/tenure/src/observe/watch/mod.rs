//! Tells what happens to keys, to those who only look.
//!
//! It looks at every key as an observer does: when the store hints that something changed, when a version is expected to
//! run out, and from time to time. A hint that never comes only delays what is reported.

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
pub(crate) use watcher::Watcher;

use super::Observers;
use crate::keeper::{Command, Connection};

/// A stream of what happens to a key and all keys below it. It begins with how they stand.
///
/// It never ends by itself, and no failure of the store ends it. It starts when it is first polled, and dropping it stops
/// it. A reader that is slow gets reports later and misses nothing that the records remember.
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
#[must_use = "a watch tells nothing until it is polled"]
pub struct Watch {
    /// As long as somebody watches there is a keeper.
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

    /// Tells renewals too. It counts if it is called before the first poll.
    pub fn renewals(mut self) -> Self {
        self.renewals = true;
        self
    }

    /// Watches on the keeper's own runtime, until nothing reads what is reported.
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
            // The keeper has ended, which it does not while somebody watches, unless it died.
            this.stage = Stage::Over;
            let (error, seen_at) = (this.connection.gone_error(), this.connection.clock.wall());
            WatchEvent::Unavailable { error, seen_at }
        })))
    }
}

/// How many events wait for a slow reader. After that the watch itself waits.
const UNREAD_MAX: usize = 64;

/// How often keys are listed, and those are looked at that nobody holds: rarely enough for a store that is paid by the
/// call.
const SLOW: Duration = Duration::from_secs(10);

/// When something that could not be read is tried again for the first time. Each pause is twice as long as the one before,
/// up to [`SLOW`].
const RETRY: Duration = Duration::from_millis(250);
