use std::future::pending;

use futures_util::StreamExt;
use tenure_store::{BoxFuture, BoxStream, Prefix, Store};

/// Source of hints.
pub(crate) enum ChangeHints {
    /// None at the moment.
    None,
    /// The store, after a pause. Hints during the pause count as one.
    After(Option<BoxFuture<'static, ()>>, BoxStream<'static, ()>),
}

impl ChangeHints {
    /// Subscribes to hints, if the store gives some and there is no subscription yet.
    pub(crate) fn listen(&mut self, store: &dyn Store, prefix: &Prefix) {
        if let Self::None = self
            && store.guarantees().watch
            && let Some(stream) = store.watch(prefix)
        {
            *self = Self::After(None, stream);
        }
    }

    /// Delays the next hint until `pause` has completed.
    pub(crate) fn pause(&mut self, until: BoxFuture<'static, ()>) {
        if let Self::After(pause, _) = self {
            *pause = Some(until);
        }
    }

    /// The next hint; `None` if the subscription has ended.
    pub(crate) async fn next(&mut self) -> Option<()> {
        let Self::After(pause, stream) = self else { return pending().await };
        if let Some(until) = pause {
            until.await;
            *pause = None;
        }
        stream.next().await
    }
}
