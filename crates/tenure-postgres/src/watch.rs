//! Hints: the notifications of writes.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_util::Stream;
use tenure_store::{BoxStream, Key, Prefix};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::connection::{Connections, OnNotification, spawn};

/// The streams of hints of a store, and the connection that listens for all of them.
///
/// It has a connection of its own, and only while there is a stream: a pooler lends a connection for one transaction, and
/// would not pass a notification on. When the connection ends, all streams end. The caller opens a new one when it next
/// reads.
#[derive(Debug)]
pub(crate) struct Listeners {
    connections: Arc<Connections>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    streams: Vec<Subscriber>,
    /// Number of the next stream or task.
    next: u64,
    listener: Option<Listener>,
}

/// The task that connects, and then waits for the end of the connection.
#[derive(Debug)]
struct Listener {
    number: u64,
    task: AbortHandle,
}

#[derive(Debug)]
struct Subscriber {
    number: u64,
    prefix: Prefix,
    sender: mpsc::Sender<()>,
}

impl Listeners {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, shared: Arc::default() }
    }

    /// Hints on the keys that `prefix` covers; `None` through a pooler, and outside of a runtime.
    pub(crate) fn listen(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        if self.connections.connector().is_pooled() || Handle::try_current().is_err() {
            return None;
        }
        let (sender, receiver) = mpsc::channel(1);
        let mut shared = lock(&self.shared);
        let number = shared.number();
        shared.streams.push(Subscriber { number, prefix: prefix.clone(), sender });
        if shared.listener.as_ref().is_none_or(|listener| listener.task.is_finished()) {
            let (number, weak) = (shared.number(), Arc::downgrade(&self.shared));
            let task = spawn(run(Arc::clone(&self.connections), weak, number)).abort_handle();
            shared.listener = Some(Listener { number, task });
        }
        Some(Box::pin(HintStream { number, receiver, shared: Arc::clone(&self.shared) }))
    }
}

/// Connects, listens, and passes notifications on until the connection ends.
async fn run(connections: Arc<Connections>, shared: Weak<Mutex<Shared>>, number: u64) {
    // Not before the task runs: a runtime that has ended would drop it at once, while the caller holds the lock.
    let end = EndOfStreams { shared, listener: number };
    let to = Weak::clone(&end.shared);
    let on_notification: OnNotification = Arc::new(move |notification| {
        if let Some(shared) = to.upgrade() {
            lock(&shared).notify(Key::from_stored(notification.payload()).ok().as_ref());
        }
    });
    let connector = connections.connector();
    let Ok(connected) = connector.open(on_notification).await else { return };
    let stopped = connected.abort_on_drop();
    if connected.is_pooled || connected.client.batch_execute(&connector.statements.listen).await.is_err() {
        return;
    }
    // From here on, the connection says goodbye when its client is dropped with this task.
    stopped.keep();
    // Something may have changed before the server listened.
    if let Some(shared) = end.shared.upgrade() {
        lock(&shared).notify(None);
    }
    connected.ended().await;
}

/// Ends all streams when the listener ends: also when its runtime drops the task, while the streams belong to others.
struct EndOfStreams {
    shared: Weak<Mutex<Shared>>,
    /// The listener. Another one may have taken its place.
    listener: u64,
}

impl Drop for EndOfStreams {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut shared = lock(&shared);
        if shared.listener.as_ref().is_some_and(|listener| listener.number == self.listener) {
            shared.listener = None;
            // Without their senders, the streams end.
            shared.streams.clear();
        }
    }
}

impl Shared {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives a hint to all streams for this key, or to every stream.
    fn notify(&mut self, key: Option<&Key>) {
        for subscriber in &self.streams {
            if key.is_none_or(|key| subscriber.prefix.covers(key)) {
                // A stream that is full has a hint already.
                let _ = subscriber.sender.try_send(());
            }
        }
    }
}

/// A stream of hints. The last one that is dropped ends the connection.
struct HintStream {
    number: u64,
    receiver: mpsc::Receiver<()>,
    shared: Arc<Mutex<Shared>>,
}

impl Stream for HintStream {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<()>> {
        self.receiver.poll_recv(context)
    }
}

impl Drop for HintStream {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.streams.retain(|subscriber| subscriber.number != self.number);
        let unused = shared.streams.is_empty().then(|| shared.listener.take()).flatten();
        drop(shared);
        if let Some(listener) = unused {
            listener.task.abort();
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
