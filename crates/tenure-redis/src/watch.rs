//! Hints by publish/subscribe: each write but a renewal publishes on the channels of all prefixes that cover its key.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::{StreamExt, stream};
use redis::aio::{PubSubSink, PubSubStream};
use tenure_store::{BoxStream, Prefix};
use tokio::sync::mpsc;

use crate::connection::Pool;
use crate::names::Names;

/// All watches of a store, which share one connection.
pub(crate) struct Listener {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Arc<Pool>,
    names: Names,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Commands to the task that listens.
    commands: Option<mpsc::UnboundedSender<Command>>,
    last: u64,
    watchers: HashMap<u64, Watcher>,
}

struct Watcher {
    prefix: Prefix,
    /// Has room for one hint: further ones are merged.
    hints: mpsc::Sender<()>,
}

enum Command {
    Subscribe(String),
    Unsubscribe(String),
}

impl Listener {
    pub(crate) fn new(pool: Arc<Pool>, names: Names) -> Self {
        Self { shared: Arc::new(Shared { pool, names, state: Mutex::default() }) }
    }

    /// Hints about this prefix. Sends nothing until it is polled.
    pub(crate) fn watch(&self, prefix: &Prefix) -> BoxStream<'static, ()> {
        let (shared, prefix) = (Arc::clone(&self.shared), prefix.clone());
        let watch = stream::once(async move {
            let (number, hints) = shared.register(prefix);
            let watch = Watch { shared, number, hints };
            stream::unfold(watch, async |mut watch| {
                watch.shared.ensure_listening();
                watch.hints.recv().await.map(|()| ((), watch))
            })
        });
        watch.flatten().boxed()
    }
}

/// One watch, which ends when it is dropped.
struct Watch {
    shared: Arc<Shared>,
    number: u64,
    hints: mpsc::Receiver<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let Some(watcher) = state.watchers.remove(&self.number) else { return };
        let is_needed = state.watchers.values().any(|other| other.prefix == watcher.prefix);
        if state.watchers.is_empty() {
            // Ends the task, and with it the connection.
            state.commands = None;
        } else if !is_needed && let Some(commands) = &state.commands {
            let _ = commands.send(Command::Unsubscribe(self.shared.names.channel(&watcher.prefix)));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, prefix: Prefix) -> (u64, mpsc::Receiver<()>) {
        let (sender, receiver) = mpsc::channel(1);
        let mut state = self.lock();
        state.last += 1;
        let number = state.last;
        if let Some(commands) = &state.commands {
            let _ = commands.send(Command::Subscribe(self.names.channel(&prefix)));
        }
        state.watchers.insert(number, Watcher { prefix, hints: sender });
        (number, receiver)
    }

    /// Starts the task that listens, unless it runs.
    fn ensure_listening(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.commands.as_ref().is_none_or(mpsc::UnboundedSender::is_closed) {
            let (sender, commands) = mpsc::unbounded_channel();
            state.commands = Some(sender);
            start(Listening { shared: Arc::clone(self), commands });
        }
    }

    /// Listens until there is no watch any more.
    async fn listen(&self, commands: &mut mpsc::UnboundedReceiver<Command>) {
        loop {
            if let Ok((mut sink, stream)) = self.subscribe().await {
                // A change before the subscription was not published to it.
                self.hint_all();
                if self.forward(&mut sink, stream, commands).await.is_none() {
                    return;
                }
            }
            if commands.is_closed() && commands.is_empty() {
                return;
            }
            // Contenders also read at intervals, so hints may be missing for a while.
            #[expect(
                clippy::disallowed_methods,
                reason = "the pace of reconnects, not a promise to a holder"
            )]
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn subscribe(&self) -> Result<(PubSubSink, PubSubStream), ()> {
        let mut pubsub = self.pool.subscriber().await.map_err(drop)?;
        let channels: Vec<String> = {
            let state = self.lock();
            state.watchers.values().map(|watcher| self.names.channel(&watcher.prefix)).collect()
        };
        for channel in channels {
            pubsub.subscribe(channel).await.map_err(drop)?;
        }
        Ok(pubsub.split())
    }

    /// Forwards messages to watches. `None` once there is no watch any more.
    async fn forward(
        &self,
        sink: &mut PubSubSink,
        mut messages: PubSubStream,
        commands: &mut mpsc::UnboundedReceiver<Command>,
    ) -> Option<()> {
        loop {
            let next = match select(std::pin::pin!(commands.recv()), messages.next()).await {
                Either::Left((command, _)) => Either::Left(command?),
                Either::Right((message, _)) => Either::Right(message),
            };
            match next {
                Either::Left(Command::Subscribe(channel)) => {
                    if sink.subscribe(&channel).await.is_err() {
                        return Some(());
                    }
                    self.hint(|watched| self.names.channel(watched) == channel);
                }
                Either::Left(Command::Unsubscribe(channel)) => {
                    if sink.unsubscribe(&channel).await.is_err() {
                        return Some(());
                    }
                }
                Either::Right(Some(message)) => {
                    let channel = message.get_channel_name();
                    self.hint(|watched| self.names.channel(watched) == channel);
                }
                // The connection is broken.
                Either::Right(None) => return Some(()),
            }
        }
    }

    fn hint(&self, is_meant: impl Fn(&Prefix) -> bool) {
        for watcher in self.lock().watchers.values() {
            if is_meant(&watcher.prefix) {
                // If it is full, a hint is waiting already.
                let _ = watcher.hints.try_send(());
            }
        }
    }

    fn hint_all(&self) {
        self.hint(|_| true);
    }
}

/// The task that listens. Its runtime may end before the watches of other runtimes.
struct Listening {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.commands.close();
        // Each remaining watch starts the task again on its own runtime, when it waits for its next hint.
        self.shared.hint_all();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the task moves hints for all watches, and safety never depends on hints"
)]
fn start(mut listening: Listening) {
    tokio::spawn(async move {
        let Listening { shared, commands } = &mut listening;
        shared.listen(commands).await;
    });
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("watches", &self.shared.lock().watchers.len()).finish()
    }
}

/// Wait before the next attempt to subscribe.
const AGAIN: Duration = Duration::from_secs(1);
