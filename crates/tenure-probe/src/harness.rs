use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure::clock::Clock;
use tenure_conformance::{Harness, Supported};
use tenure_store::{BoxFuture, Key, Store};

use crate::ledger::{Ledger, Loss};
use crate::scratch_area::ScratchArea;

/// Gives the suite access to the scratch area.
pub(crate) struct ProbeHarness<'a> {
    pub(crate) areas: &'a [Arc<ScratchArea>],
    pub(crate) ledger: &'a Ledger,
    pub(crate) clock: &'a Arc<dyn Clock>,
    opened: AtomicUsize,
}

impl<'a> ProbeHarness<'a> {
    pub(crate) fn new(areas: &'a [Arc<ScratchArea>], ledger: &'a Ledger, clock: &'a Arc<dyn Clock>) -> Self {
        Self { areas, ledger, clock, opened: AtomicUsize::new(0) }
    }
}

impl Harness for ProbeHarness<'_> {
    fn name(&self) -> String {
        self.areas[0].to_string()
    }

    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        let next = self.opened.fetch_add(1, Ordering::Relaxed) % self.areas.len();
        let scratch_area: Arc<dyn Store> = Arc::clone(&self.areas[next]) as _;
        Box::pin(async { scratch_area })
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        self.clock.sleep_until(self.clock.now() + wait)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(self.clock)
    }

    fn restart(&self) -> BoxFuture<'_, Supported> {
        Box::pin(async { Supported::No("a probe restarts no server".into()) })
    }

    fn lose_next_answer(&self) -> BoxFuture<'_, Supported> {
        self.ledger.lose_next(Loss::Answer);
        Box::pin(async { Supported::Yes })
    }

    fn lose_next_request(&self) -> BoxFuture<'_, Supported> {
        self.ledger.lose_next(Loss::Request);
        Box::pin(async { Supported::Yes })
    }

    fn delete<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Supported> {
        Box::pin(async move {
            match self.areas[0].delete(key).await {
                Ok(()) => Supported::Yes,
                Err(error) => Supported::No(format!("nothing could be deleted: {error}")),
            }
        })
    }
}
