use std::sync::Arc;
use std::time::Duration;

use tenure_core::election::{LeaderFilter, LeaderReport};
use tenure_core::machine::{Rules, Standard};
use tenure_store::{Key, Prefix, Store};
use tokio::sync::{mpsc, watch};

use super::read_pace::ReadPace;
use super::{Leader, LeaderView};
use crate::Error;
use crate::clock::{Clock, Instant};
use crate::host::entropy::Entropy;
use crate::keeper::Command;
use crate::keeper::Connection;
use crate::observe::{ChangeHints, HolderExits, Observation, Observers, ReportedCauses, observe_surely};

/// Reads one key again and again, on the keeper's runtime, and reports its leader.
pub(super) struct LeaderWatcher {
    clock: Arc<dyn Clock>,
    observers: Arc<Observers>,
    key: Key,
    pace: ReadPace,
    filter: LeaderFilter,
    view: watch::Sender<LeaderView>,
    reports: Option<mpsc::Sender<Result<Option<Leader>, Error>>>,
    /// The reported errors, until a read succeeds.
    causes: ReportedCauses,
    /// Pause after the next failure.
    pause: Duration,
}

impl LeaderWatcher {
    /// Starts to watch. It stops when the receiver of the view is dropped.
    pub(super) fn start(
        connection: &Connection,
        observers: &Arc<Observers>,
        key: &Key,
        pace: ReadPace,
        reports: Option<mpsc::Sender<Result<Option<Leader>, Error>>>,
    ) -> watch::Receiver<LeaderView> {
        let (view, latest) = watch::channel(LeaderView::default());
        let watcher = Self {
            clock: Arc::clone(&connection.clock),
            observers: Arc::clone(observers),
            key: key.clone(),
            pace,
            filter: LeaderFilter::new(),
            view,
            reports,
            causes: ReportedCauses::default(),
            pause: RETRY,
        };
        connection.keeper.send(Command::Visit(Box::new(move |store| Box::pin(watcher.run(store)))));
        latest
    }

    async fn run(mut self, store: Arc<dyn Store>) {
        let view = self.view.clone();
        tokio::select! {
            biased;
            () = view.closed() => {}
            () = self.watch(&*store) => {}
        }
    }

    /// Returns when the reader of the reports is gone.
    async fn watch(&mut self, store: &dyn Store) {
        let prefix = Prefix::of(&self.key);
        let mut hints = ChangeHints::None;
        let mut exits = HolderExits::new(self.observers.host().clone(), Arc::clone(&self.clock));
        loop {
            // Before the read: a change between the two gives a hint.
            hints.listen(store, &prefix);
            let sent = self.clock.now();
            let seen = observe_surely(&self.observers, store, &self.key, None).await;
            let pause = match seen {
                Ok(seen) => {
                    exits.expect(&seen);
                    let pause = self.pause_after(&seen);
                    if self.saw(&seen, sent).await.is_err() {
                        return;
                    }
                    pause
                }
                Err(error) => {
                    if self.failed(error).await.is_err() {
                        return;
                    }
                    let pause = self.pause;
                    self.pause = (pause * 2).min(SLOW);
                    pause
                }
            };
            hints.pause(self.clock.sleep_until(self.clock.now() + self.pace.hint_pause));
            tokio::select! {
                biased;
                hint = hints.next() => if hint.is_none() {
                    hints = ChangeHints::None;
                    self.clock.sleep_until(self.clock.now() + self.pace.hint_pause).await;
                },
                Some(_) = exits.next() => {}
                () = self.clock.sleep_until(self.clock.now() + pause) => {}
            }
        }
    }

    /// Takes in an observation. Fails if the reader is gone.
    async fn saw(&mut self, seen: &Observation, sent: Instant) -> Result<(), ReportsClosed> {
        self.pause = RETRY;
        let was_failing = !std::mem::take(&mut self.causes).is_empty();
        let report = self.filter.saw(seen.record.as_ref(), &seen.standing);
        let leader = match report {
            Some(LeaderReport::Leader(record)) => Leader::of(&record),
            Some(LeaderReport::NoLeader) => None,
            // After an error the reader learns that the leader it knows still leads.
            None if was_failing => self.view.borrow().leader.clone(),
            None => {
                self.view.send_modify(|view| view.as_of = Some(sent));
                return Ok(());
            }
        };
        self.view.send_replace(LeaderView { leader: leader.clone(), as_of: Some(sent) });
        self.report(Ok(leader)).await
    }

    /// Takes in an error, and reports it unless its cause was reported recently.
    async fn failed(&mut self, error: Error) -> Result<(), ReportsClosed> {
        if !self.causes.is_due(&error, self.clock.now()) {
            return Ok(());
        }
        self.report(Err(error)).await
    }

    async fn report(&self, report: Result<Option<Leader>, Error>) -> Result<(), ReportsClosed> {
        match &self.reports {
            Some(reports) => reports.send(report).await.map_err(|_| ReportsClosed),
            None => Ok(()),
        }
    }

    /// Time until the next read without a hint.
    fn pause_after(&self, seen: &Observation) -> Duration {
        let (_, jitter) = Entropy.step();
        let lasts = seen.standing.remaining().zip(seen.record.as_ref().and_then(|record| record.ttl));
        match lasts {
            Some((remaining, ttl)) => Standard.poll_after(ttl, jitter).min(remaining.at_most),
            None => Standard.poll_after(self.pace.ttl, jitter).min(SLOW),
        }
    }
}

/// The reader of the reports is gone.
struct ReportsClosed;

/// Longest pause between two reads without a leader, and after failures.
const SLOW: Duration = Duration::from_secs(10);

/// First pause after a failed read. Each following one doubles, up to [`SLOW`].
const RETRY: Duration = Duration::from_millis(250);
