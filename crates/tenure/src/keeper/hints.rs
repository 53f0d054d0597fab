use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use tenure_store::{BoxFuture, BoxStream, Key, Prefix, Store};

use crate::clock::Clock;

/// The keys on which the store is asked for hints of one kind.
pub(crate) struct Hints {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ask: AskForHints,
    events: FuturesUnordered<BoxFuture<'static, Option<HintEvent>>>,
    listening: HashMap<Key, AbortHandle>,
}

/// Asks the store for hints on a key.
type AskForHints = fn(&dyn Store, &Key) -> Option<BoxStream<'static, ()>>;

/// What came of waiting for a hint.
enum HintEvent {
    /// A key has perhaps changed, and this is where the next hint comes from.
    Hint(Key, BoxStream<'static, ()>),
    /// There are no more hints on this key.
    Ended(Key),
}

impl Hints {
    /// Hints on changes, for contenders.
    pub(crate) fn on_changes(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self::new(store, clock, |store, key| {
            store.guarantees().watch.then(|| store.watch(&Prefix::of(key))).flatten()
        })
    }

    /// Hints on losses, for holders.
    pub(crate) fn on_losses(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self::new(store, clock, |store, key| store.watch_held(key))
    }

    fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, ask: AskForHints) -> Self {
        Self { store, clock, ask, events: FuturesUnordered::new(), listening: HashMap::new() }
    }

    /// Whether hints on this key are asked for.
    pub(crate) fn listens_to(&self, key: &Key) -> bool {
        self.listening.contains_key(key)
    }

    /// Asks for hints on a key; `false` where the store gives none.
    pub(crate) fn listen(&mut self, key: &Key) -> bool {
        let Some(stream) = (self.ask)(&*self.store, key) else { return false };
        self.await_next(key.clone(), stream, Duration::ZERO);
        true
    }

    /// Asks for no more hints on a key.
    pub(crate) fn stop(&mut self, key: &Key) {
        if let Some(listening) = self.listening.remove(key) {
            listening.abort();
        }
    }

    /// The next key that has perhaps changed.
    pub(crate) async fn next(&mut self) -> Option<Key> {
        loop {
            match self.events.next().await? {
                Some(HintEvent::Hint(key, stream)) => {
                    self.await_next(key.clone(), stream, PAUSE);
                    return Some(key);
                }
                // Whoever waits next asks again.
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

/// Hints in quick succession are one hint. A stream that always has one must not keep the keeper busy.
const PAUSE: Duration = Duration::from_millis(10);
