use std::future::pending;

use futures_util::StreamExt;
use tenure_store::{BoxFuture, BoxStream, Prefix, Store};

/// Where hints come from.
pub(crate) enum ChangeHints {
    /// Nowhere, for now.
    None,
    /// From the store, after a pause. Those that come meanwhile are one.
    After(Option<BoxFuture<'static, ()>>, BoxStream<'static, ()>),
}

impl ChangeHints {
    /// Asks for hints, where the store gives some and nobody has asked yet.
    pub(crate) fn listen(&mut self, store: &dyn Store, prefix: &Prefix) {
        if let Self::None = self
            && store.guarantees().watch
            && let Some(stream) = store.watch(prefix)
        {
            *self = Self::After(None, stream);
        }
    }

    /// Takes the next one only after this.
    pub(crate) fn pause(&mut self, until: BoxFuture<'static, ()>) {
        if let Self::After(pause, _) = self {
            *pause = Some(until);
        }
    }

    /// The next hint; `None` if there will be no more.
    pub(crate) async fn next(&mut self) -> Option<()> {
        let Self::After(pause, stream) = self else { return pending().await };
        if let Some(until) = pause {
            until.await;
            *pause = None;
        }
        stream.next().await
    }
}
