use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use tenure_store::{
    Administration, BoxStream, Guarantees, Identity, Key, Listed, Prefix, Put, Reading, Scratch, Store,
    StoreError, StoreFuture, Write,
};

/// The wire between one process and the store. A check can cut it, or delay the calls over it. A clone is the same
/// wire.
///
/// The store behind it does nothing wrong: a packet that arrives a minute late is normal.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    store: Arc<dyn Store>,
    state: Arc<Mutex<WireState>>,
}

#[derive(Debug, Default)]
struct WireState {
    mode: WireMode,
    /// The writes in flight, in the order in which they were sent.
    late_writes: Vec<LateWrite>,
    /// The callers that wait for an answer that does not come.
    waiting: Vec<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WireMode {
    #[default]
    Open,
    /// Reads are answered, writes stay in flight for a long time.
    Delays,
    /// Nothing gets through, and nothing is kept.
    Cut,
}

/// A write in flight.
#[derive(Clone, Debug)]
pub(crate) struct LateWrite {
    pub(crate) key: Key,
    pub(crate) write: Write,
}

impl Wire {
    pub(crate) fn to(store: Arc<dyn Store>) -> Self {
        Self { store, state: Arc::default() }
    }

    /// From now on writes stay in flight, without an answer, until the check [takes](Self::take_late_writes) and
    /// delivers them.
    pub(crate) fn delay_writes(&self) {
        self.state().mode = WireMode::Delays;
    }

    /// From now on no call gets through, as if the process were stopped, dead, or cut off from the store.
    pub(crate) fn cut(&self) {
        self.state().mode = WireMode::Cut;
    }

    /// From now on everything gets through. Pending calls end with an unknown outcome.
    pub(crate) fn open(&self) {
        let waiting = {
            let mut state = self.state();
            state.mode = WireMode::Open;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Takes the writes in flight.
    pub(crate) fn take_late_writes(&self) -> Vec<LateWrite> {
        std::mem::take(&mut self.state().late_writes)
    }

    fn mode(&self) -> WireMode {
        self.state().mode
    }

    /// Waits until everything gets through again.
    async fn wait_until_open(&self) -> StoreError {
        poll_fn(|context| {
            let mut state = self.state();
            if state.mode == WireMode::Open {
                return Poll::Ready(());
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
        StoreError::unknown("no answer came back over the wire")
    }

    fn state(&self) -> MutexGuard<'_, WireState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Wire {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> StoreFuture<'a, Reading> {
        Box::pin(async move {
            match self.mode() {
                WireMode::Open | WireMode::Delays => self.store.get(key).await,
                WireMode::Cut => Err(self.wait_until_open().await),
            }
        })
    }

    fn write<'a>(&'a self, key: &'a Key, write: Write) -> StoreFuture<'a, Put> {
        Box::pin(async move {
            match self.mode() {
                WireMode::Open => self.store.write(key, write).await,
                WireMode::Delays => {
                    self.state().late_writes.push(LateWrite { key: key.clone(), write });
                    Err(self.wait_until_open().await)
                }
                WireMode::Cut => Err(self.wait_until_open().await),
            }
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.store.list(prefix)
    }

    fn list_stamped<'a>(&'a self, prefix: &'a Prefix) -> Option<BoxStream<'a, Result<Listed, StoreError>>> {
        self.store.list_stamped(prefix)
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        self.store.watch(prefix)
    }

    /// Not over the wire: an operator has separate access to the store.
    fn administration(&self) -> Option<&dyn Administration> {
        self.store.administration()
    }

    fn scratch(&self) -> Option<&dyn Scratch> {
        self.store.scratch()
    }

    fn identity(&self) -> Identity {
        self.store.identity()
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}
