use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;
use tenure_store::{
    Administration, BoxFuture, BoxStream, Expect, Guarantees, Identity, Key, Prefix, Put, Reading, Scratch,
    Store, StoreError,
};

/// The wire between one process and the store, which a check can cut, or delay what is sent over it. A clone is the
/// same wire.
///
/// The store behind it does nothing wrong: a packet that arrives a minute late is a day like any other.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    store: Arc<dyn Store>,
    line: Arc<Mutex<Line>>,
}

#[derive(Debug, Default)]
struct Line {
    state: State,
    /// The writes that are on their way, in the order in which they were sent.
    late: Vec<Late>,
    /// Whoever waits for an answer that does not come.
    waiting: Vec<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// Reads are answered, writes are on their way for a long time.
    Delays,
    /// Nothing comes through, and nothing is kept.
    Cut,
}

/// A write that is on its way.
#[derive(Clone, Debug)]
pub(super) struct Late {
    pub(super) key: Key,
    pub(super) value: Bytes,
    pub(super) expect: Expect,
}

impl Wire {
    pub(super) fn to(store: Arc<dyn Store>) -> Self {
        Self { store, line: Arc::default() }
    }

    /// From now on writes are on their way, without an answer, until somebody [takes](Self::take_late) and delivers
    /// them.
    pub(super) fn delay_writes(&self) {
        self.line().state = State::Delays;
    }

    /// From now on nothing comes through, as when the process is stopped, dead, or alone on its side of the network.
    pub(super) fn cut(&self) {
        self.line().state = State::Cut;
    }

    /// From now on everything comes through. Calls that are still waiting end with an unknown outcome.
    pub(super) fn open(&self) {
        let waiting = {
            let mut line = self.line();
            line.state = State::Open;
            std::mem::take(&mut line.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The writes that are on their way.
    pub(super) fn take_late(&self) -> Vec<Late> {
        std::mem::take(&mut self.line().late)
    }

    fn state(&self) -> State {
        self.line().state
    }

    /// Waits until everything comes through again.
    async fn silence(&self) -> StoreError {
        poll_fn(|context| {
            let mut line = self.line();
            if line.state == State::Open {
                return Poll::Ready(());
            }
            line.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await;
        StoreError::unknown("no answer came back over the wire")
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Wire {
    fn guarantees(&self) -> Guarantees {
        self.store.guarantees()
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Reading, StoreError>> {
        Box::pin(async move {
            match self.state() {
                State::Open | State::Delays => self.store.get(key).await,
                State::Cut => Err(self.silence().await),
            }
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a Key,
        value: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Put, StoreError>> {
        Box::pin(async move {
            match self.state() {
                State::Open => self.store.put(key, value, expect).await,
                State::Delays => {
                    self.line().late.push(Late { key: key.clone(), value, expect });
                    Err(self.silence().await)
                }
                State::Cut => Err(self.silence().await),
            }
        })
    }

    fn list<'a>(&'a self, prefix: &'a Prefix) -> BoxStream<'a, Result<Key, StoreError>> {
        self.store.list(prefix)
    }

    fn watch(&self, prefix: &Prefix) -> Option<BoxStream<'static, ()>> {
        self.store.watch(prefix)
    }

    /// Not over the wire: an operator has a way of his own to the store.
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
