use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::record::Record;
use tenure::{AttemptReport, Event, EventReport, Recorder, Sighting, Survivors};
use tokio::sync::watch;

use crate::output;

/// Receives the keeper's reports about leases that have run out while their command is alive.
#[derive(Debug)]
pub(crate) struct OutlivedReports(watch::Sender<OutlivedRecords>);

#[derive(Clone, Debug, Default)]
struct OutlivedRecords {
    /// The record that is not taken, because its command is alive.
    waited_for: Option<Arc<Record>>,
    /// The record that was taken although its command is alive.
    taken: Option<Arc<Record>>,
    granted: bool,
}

impl OutlivedReports {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::default()))
    }

    /// The next record that has run out and is still waited for.
    pub(crate) async fn waited_for(&self, before: Option<&Arc<Record>>) -> Arc<Record> {
        let mut heard = self.0.subscribe();
        let is_next = |heard: &OutlivedRecords| {
            heard
                .waited_for
                .as_ref()
                .is_some_and(|record| before.is_none_or(|before| before.term != record.term))
        };
        match heard.wait_for(is_next).await.map(|heard| heard.waited_for.clone()) {
            Ok(Some(record)) => record,
            _ => std::future::pending().await,
        }
    }

    /// The record that the latest grant took although its command is alive. Reports arrive from another thread, in
    /// order.
    pub(crate) async fn taken(&self) -> Option<Arc<Record>> {
        let mut heard = self.0.subscribe();
        tokio::select! {
            heard = heard.wait_for(|heard| heard.granted) => heard.ok().and_then(|heard| heard.taken.clone()),
            () = BootClock::new().sleep_until(BootClock::new().now() + REPORT_MAX) => None,
        }
    }
}

impl Recorder for OutlivedReports {
    fn attempt(&self, _: &AttemptReport) {}

    fn event(&self, report: &EventReport) {
        match &report.event {
            Event::Outlived { record, sighting: Sighting { tree_locked: true, .. }, taken } => {
                let record = Some(Arc::clone(record));
                self.0.send_modify(|heard| {
                    if *taken {
                        heard.taken = record;
                    } else {
                        heard.waited_for = record;
                    }
                });
            }
            Event::Granted { .. } => self.0.send_modify(|heard| heard.granted = true),
            _ => {}
        }
    }
}

/// The surviving processes of a former command, in words.
pub(crate) fn sentence(survivors: &Survivors) -> String {
    let guards = if survivors.guards {
        "under a process that guards it and does not renew the lease"
    } else {
        "an orphan without a guard"
    };
    let processes = survivors.processes.iter();
    let list: Vec<_> =
        processes.map(|it| format!("process {} ({})", it.pid, output::plain(&it.command))).collect();
    match list.join(", ") {
        none if none.is_empty() => format!("{guards}, in a process that cannot be seen from here"),
        list => format!("{guards}: {list}"),
    }
}

/// Longest delay of a report on a busy machine.
const REPORT_MAX: Duration = Duration::from_secs(1);
