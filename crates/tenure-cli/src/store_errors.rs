use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{BootClock, Clock, Instant};
use tenure::{AttemptReport, Operation};
use tokio::sync::watch;

/// The latest error of the store, as the keeper reports it, until a call succeeds.
#[derive(Debug, Default)]
pub(crate) struct StoreErrors(watch::Sender<Option<FailedCall>>);

#[derive(Debug)]
struct FailedCall {
    cause: Arc<str>,
    is_write: bool,
    at: Instant,
}

impl StoreErrors {
    pub(crate) fn note(&self, report: &AttemptReport) {
        let (now, is_write) = (BootClock::new().now(), matches!(report.operation, Operation::Write(_)));
        self.0.send_if_modified(|failed| {
            let had_failed = failed.is_some();
            match &report.error {
                Some(cause) => *failed = Some(FailedCall { cause: Arc::clone(cause), is_write, at: now }),
                // On a full disk, every read succeeds, and every write fails.
                None => {
                    *failed =
                        failed.take().filter(|it| it.is_write && !is_write && now.since(it.at) < UNTRIED_MAX)
                }
            }
            failed.is_some() != had_failed
        });
    }

    /// The error; `None` once a call has succeeded.
    pub(crate) fn latest(&self) -> Option<Arc<str>> {
        self.0.borrow().as_ref().map(|failed| Arc::clone(&failed.cause))
    }

    /// Completes when calls have failed for this long.
    pub(super) async fn lasting(&self, least: Duration) {
        loop {
            let _ = self.0.subscribe().wait_for(Option::is_some).await;
            tokio::select! {
                () = BootClock::new().sleep_until(BootClock::new().now() + least) => return,
                () = self.over() => {}
            }
        }
    }

    /// Completes when a call has succeeded.
    pub(super) async fn over(&self) {
        let _ = self.0.subscribe().wait_for(Option::is_none).await;
    }
}

/// Time after which a failed write does not count any more if only reads were tried since.
const UNTRIED_MAX: Duration = Duration::from_secs(30);
