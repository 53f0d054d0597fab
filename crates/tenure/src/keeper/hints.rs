use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use tenure_store::{BoxFuture, BoxStream, Key, Prefix, Store};

use crate::clock::Clock;

/// Keys for which the keeper listens to hints of one kind.
pub(crate) struct Hints {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ask: AskForHints,
    events: FuturesUnordered<BoxFuture<'static, Option<HintEvent>>>,
    listening: HashMap<Key, AbortHandle>,
}

/// Subscribes to hints for a key.
type AskForHints = fn(&dyn Store, &Key) -> Option<BoxStream<'static, ()>>;

/// Result of waiting for a hint.
enum HintEvent {
    /// The key may have changed; the stream gives further hints.
    Hint(Key, BoxStream<'static, ()>),
    /// The stream for this key has ended.
    Ended(Key),
}

impl Hints {
    /// Hints about changes, for contenders.
    pub(crate) fn on_changes(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self::new(store, clock, |store, key| {
            store.guarantees().watch.then(|| store.watch(&Prefix::of(key))).flatten()
        })
    }

    /// Hints about losses, for holders.
    pub(crate) fn on_losses(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self::new(store, clock, |store, key| store.watch_held(key))
    }

    fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ask: AskForHints) -> Self {
        Self { store, clock, ask, events: FuturesUnordered::new(), listening: HashMap::new() }
    }

    /// True if the keeper listens to this key.
    pub(crate) fn listens_to(&self, key: &Key) -> bool {
        self.listening.contains_key(key)
    }

    /// Subscribes to a key; `false` if the store gives no hints.
    pub(crate) fn listen(&mut self, key: &Key) -> bool {
        let Some(stream) = (self.ask)(&*self.store, key) else { return false };
        self.await_next(key.clone(), stream, Duration::ZERO);
        true
    }

    /// Unsubscribes from a key.
    pub(crate) fn stop(&mut self, key: &Key) {
        if let Some(listening) = self.listening.remove(key) {
            listening.abort();
        }
    }

    /// The next key that may have changed.
    pub(crate) async fn next(&mut self) -> Option<Key> {
        loop {
            match self.events.next().await? {
                Some(HintEvent::Hint(key, stream)) => {
                    self.await_next(key.clone(), stream, PAUSE);
                    return Some(key);
                }
                // The next waiting contender subscribes again.
                Some(HintEvent::Ended(key)) => drop(self.listening.remove(&key)),
                None => {}
            }
        }
    }

    fn await_next(&mut self, key: Key, mut stream: BoxStream<'static, ()>, pause: Duration) {
        let (abort, registration) = AbortHandle::new_pair();
        self.listening.insert(key.clone(), abort);
        let clock = Arc::clone(&self.clock);
        let next = async move {
            if !pause.is_zero() {
                clock.sleep_until(clock.now() + pause).await;
            }
            match stream.next().await {
                Some(()) => HintEvent::Hint(key, stream),
                None => HintEvent::Ended(key),
            }
        };
        self.events.push(Box::pin(async move { Abortable::new(next, registration).await.ok() }));
    }
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hints").field("listening", &self.listening.len()).finish_non_exhaustive()
    }
}

/// Minimum time between two hints. A stream that is always ready must not keep the keeper busy.
const PAUSE: Duration = Duration::from_millis(10);
