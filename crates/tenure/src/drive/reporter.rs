use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

use super::recorder::{AttemptReport, EventReport, Recorder};
use crate::machine::Event;

/// Passes reports to people's code on a thread of its own, so that the keeper never waits for it and never panics with
/// it.
#[derive(Debug)]
pub(super) struct Reporter {
    queue: SyncSender<Report>,
    missed: u64,
}

#[derive(Debug)]
pub(super) enum Report {
    Attempt(AttemptReport),
    Event(EventReport),
    Missed(u64),
}

impl Reporter {
    #[expect(clippy::disallowed_methods, reason = "the reporter owns its thread")]
    pub(super) fn start(recorder: Option<Arc<dyn Recorder>>) -> std::io::Result<Self> {
        let (queue, reports) = sync_channel(QUEUE_MAX);
        thread::Builder::new().name("tenure-reporter".into()).spawn(move || pass_on(reports, recorder))?;
        Ok(Self { queue, missed: 0 })
    }

    /// Never waits: what does not fit is counted.
    pub(super) fn report(&mut self, report: Report) {
        if self.missed > 0 && self.queue.try_send(Report::Missed(self.missed)).is_ok() {
            self.missed = 0;
        }
        if let Err(TrySendError::Full(_)) = self.queue.try_send(report) {
            self.missed += 1;
        }
    }
}

fn pass_on(reports: Receiver<Report>, recorder: Option<Arc<dyn Recorder>>) {
    for report in reports {
        // Somebody else's code: if it panics, this report is lost and the next one is not.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            trace(&report);
            if let Some(recorder) = &recorder {
                match &report {
                    Report::Attempt(attempt) => recorder.attempt(attempt),
                    Report::Event(event) => recorder.event(event),
                    Report::Missed(count) => recorder.missed(*count),
                }
            }
        }));
    }
}

fn trace(report: &Report) {
    match report {
        Report::Attempt(it) => tracing::debug!(
            store = &*it.store,
            key = it.key.as_str(),
            holder = %it.holder,
            token = it.token.map(|token| token.get()),
            operation = ?it.operation,
            outcome = ?it.outcome,
            latency_us = it.latency.as_micros() as u64,
            error = it.error.as_deref(),
            "attempt on the store"
        ),
        Report::Event(it) => {
            let token = it.token.map(|token| token.get());
            let (store, key) = (&*it.store, it.key.as_str());
            match &it.event {
                Event::Granted { .. } => {
                    tracing::info!(store, key, holder = %it.holder, token, "lease granted")
                }
                Event::Renewed { .. } => {
                    tracing::debug!(store, key, holder = %it.holder, token, "lease renewed")
                }
                Event::AtRisk(fault) => {
                    tracing::warn!(store, key, holder = %it.holder, token, ?fault, "lease at risk: a renewal failed")
                }
                Event::Lost(why) => {
                    tracing::info!(store, key, holder = %it.holder, token, %why, "lease lost")
                }
                Event::Left(left) => {
                    tracing::info!(store, key, holder = %it.holder, token, ?left, "lease left")
                }
                Event::Denied(denied) => {
                    tracing::info!(store, key, holder = %it.holder, ?denied, "lease not granted")
                }
                Event::WentBack { seen, shown } => tracing::error!(
                    store, key, holder = %it.holder, %seen, shown = shown.map(|token| token.get()),
                    "a token went back: the record was deleted, restored or tampered with"
                ),
            }
        }
        Report::Missed(count) => tracing::warn!(count, "reports were dropped: the recorder is too slow"),
    }
}

/// A recorder may be this many reports behind: minutes of a busy process.
const QUEUE_MAX: usize = 4096;
