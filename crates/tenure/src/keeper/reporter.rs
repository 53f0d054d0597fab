use std::sync::Arc;
use std::{io, thread};

use tenure_core::Token;
use tenure_store::Key;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tracing::Level;
use tracing::level_filters::LevelFilter;

use super::Event;
use super::recorder::{AttemptReport, EventReport, Recorder};
use crate::host::simulation::simulated;
use crate::store::caught::caught;

/// Passes reports to the user's recorder and to tracing on a separate thread, so that the keeper never waits for them
/// and never panics with them.
///
/// Without a listener there is no thread: waking one for each report would cost more than all other bookkeeping of a
/// lease. A listener that subscribes later receives the reports from then on.
#[derive(Debug)]
pub(crate) struct Reporter {
    recorder: Option<Arc<dyn Recorder>>,
    queue: Option<Sender<Report>>,
    missed: u64,
}

#[derive(Debug)]
pub(crate) enum Report {
    Attempt(AttemptReport),
    Event(EventReport),
    Breach { store: Arc<str>, key: Key, what: Arc<str> },
    SameToken { store: Arc<str>, key: Key, token: Token },
    Forgotten { store: Arc<str>, key: Key, token: Token },
    Missed(u64),
}

impl Reporter {
    /// With a recorder the thread starts at once; without one, when a subscriber for traces exists.
    pub(crate) fn start(recorder: Option<Arc<dyn Recorder>>) -> io::Result<Self> {
        let heard = recorder.clone().filter(|_| simulated(|_| ()).is_none());
        let queue = heard.map(|recorder| start(Some(recorder))).transpose()?;
        Ok(Self { recorder, queue, missed: 0 })
    }

    /// True if a listener wants such a report.
    fn is_wanted(&self, level: Level) -> bool {
        self.recorder.is_some() || is_traced(level)
    }

    /// Never waits: reports that do not fit are counted.
    pub(crate) fn report(&mut self, report: Report) {
        if !self.is_wanted(report.level()) {
            return;
        }
        // The simulation has one thread.
        if simulated(|_| ()).is_some() {
            return pass_on_one(&report, self.recorder.as_deref());
        }
        let Some(queue) = self.queue() else {
            self.missed += 1;
            return;
        };
        if self.missed > 0 && queue.try_send(Report::Missed(self.missed)).is_ok() {
            self.missed = 0;
        }
        if let Err(TrySendError::Full(_)) = queue.try_send(report) {
            self.missed += 1;
        }
    }

    fn queue(&mut self) -> Option<Sender<Report>> {
        if self.queue.is_none() {
            // No thread could be started. The next report tries again.
            self.queue = start(self.recorder.clone()).ok();
        }
        self.queue.clone()
    }
}

#[expect(clippy::disallowed_methods, reason = "the reporter owns its thread")]
fn start(recorder: Option<Arc<dyn Recorder>>) -> io::Result<Sender<Report>> {
    // A channel of `std` would allocate and write the memory of all pending reports now.
    let (queue, reports) = channel(QUEUE_MAX);
    thread::Builder::new().name("tenure-reporter".into()).spawn(move || pass_on(reports, recorder))?;
    Ok(queue)
}

/// True if a subscriber exists: for traces, or for `log` in programs that forward traces to it.
fn is_traced(level: Level) -> bool {
    level <= LevelFilter::current() || log_level(level) <= log::max_level()
}

fn log_level(level: Level) -> log::Level {
    match level {
        Level::ERROR => log::Level::Error,
        Level::WARN => log::Level::Warn,
        Level::INFO => log::Level::Info,
        Level::DEBUG => log::Level::Debug,
        Level::TRACE => log::Level::Trace,
    }
}

impl Report {
    /// Level of the report. `trace` below repeats it, because its macros need constants.
    fn level(&self) -> Level {
        match self {
            Self::Attempt(_) => Level::DEBUG,
            Self::Event(report) => match report.event {
                Event::Renewed { .. } => Level::DEBUG,
                Event::Granted { .. } | Event::Lost(_) | Event::Left(_) | Event::Denied(_) => Level::INFO,
                Event::AtRisk(_) | Event::Keeping { .. } | Event::Outlived { .. } => Level::WARN,
                Event::WentBack { .. } | Event::Fenced { .. } => Level::ERROR,
            },
            Self::Breach { .. } | Self::SameToken { .. } => Level::ERROR,
            Self::Forgotten { .. } => Level::INFO,
            Self::Missed(_) => Level::WARN,
        }
    }
}

fn pass_on(mut reports: Receiver<Report>, recorder: Option<Arc<dyn Recorder>>) {
    while let Some(report) = reports.blocking_recv() {
        pass_on_one(&report, recorder.as_deref());
    }
}

/// The listeners are code of the user: if one panics, it loses this report and gets the next one.
fn pass_on_one(report: &Report, recorder: Option<&dyn Recorder>) {
    let traced = caught(|| trace(report));
    let recorded = caught(|| recorder.map(|recorder| record(recorder, report)));
    for (whose, outcome) in [("the trace subscriber", traced), ("the recorder", recorded.map(drop))] {
        if let Err(panicked) = outcome {
            let _ = caught(|| tracing::error!("{whose} lost a report: its code {panicked}"));
        }
    }
}

fn record(recorder: &dyn Recorder, report: &Report) {
    match report {
        Report::Attempt(attempt) => recorder.attempt(attempt),
        Report::Event(event) => recorder.event(event),
        // Each lease that is not granted reports this as an event, too.
        Report::Breach { .. } => {}
        // The loss of the earlier of the two is reported as an event, too.
        Report::SameToken { .. } => {}
        // No lease is affected.
        Report::Forgotten { .. } => {}
        Report::Missed(count) => recorder.missed(*count),
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
                Event::Keeping { because } => tracing::warn!(
                    store, key, holder = %it.holder, token, because = &**because,
                    "lease lost, and its work cannot be stopped: its record is kept until that ends"
                ),
                Event::Outlived { record, sighting, taken } => tracing::warn!(
                    store, key, holder = %it.holder,
                    former = record.holder.as_ref().map(|holder| &**holder.id()),
                    token = record.token.get(),
                    guards = sighting.guards_locked,
                    tree = sighting.tree_locked,
                    taken,
                    "the former lease ran out while its witness was still locked"
                ),
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
                Event::Fenced { resource, highest } => tracing::error!(
                    store, key, holder = %it.holder, token, resource = &**resource, %highest,
                    "a resource refused a write: a newer holder has been there"
                ),
            }
        }
        Report::Breach { store, key, what } => tracing::error!(
            store = &**store,
            key = key.as_str(),
            what = &**what,
            "the store broke a promise: nothing more is granted on it"
        ),
        Report::SameToken { store, key, token } => tracing::error!(
            store = &**store,
            key = key.as_str(),
            %token,
            "two terms have one token: the record was restored, or the store let two writes through. Check it with \
             tenure probe"
        ),
        Report::Forgotten { store, key, token } => tracing::info!(
            store = &**store,
            key = key.as_str(),
            %token,
            "the record of a vacant lease was removed: the next token is still greater"
        ),
        Report::Missed(count) => tracing::warn!(count, "reports were dropped: the recorder is too slow"),
    }
}

/// Maximum number of pending reports: minutes of a busy process.
const QUEUE_MAX: usize = 4096;
