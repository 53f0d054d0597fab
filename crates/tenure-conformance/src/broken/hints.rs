use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::task::AtomicWaker;
use tenure_store::{Key, Prefix};

/// All watchers.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    watchers: Mutex<Vec<Weak<Watcher>>>,
}

impl Watchers {
    pub(super) fn watch(&self, prefix: &Prefix) -> HintStream {
        let watcher = Arc::new(Watcher {
            prefix: prefix.clone(),
            hinted: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        });
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&watcher));
        HintStream(watcher)
    }

    pub(super) fn changed(&self, key: &Key) {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).retain(|watcher| {
            let Some(watcher) = watcher.upgrade() else { return false };
            if watcher.prefix.covers(key) {
                watcher.hinted.store(true, Ordering::Release);
                watcher.waker.wake();
            }
            true
        });
    }
}

/// One watcher. Hints that it has not taken yet are merged into one.
#[derive(Debug)]
struct Watcher {
    prefix: Prefix,
    hinted: AtomicBool,
    waker: AtomicWaker,
}

/// The hints for one watcher; never ends.
#[derive(Debug)]
pub(super) struct HintStream(Arc<Watcher>);

impl Stream for HintStream {
    type Item = ();

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<()>> {
        self.0.waker.register(context.waker());
        if self.0.hinted.swap(false, Ordering::AcqRel) { Poll::Ready(Some(())) } else { Poll::Pending }
    }
}
