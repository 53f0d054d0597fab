use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure::clock::{BootClock, Clock};
use tenure::record::{Nonce, Record};
use tenure::{Event, EventReport, Key, Sighting, Survivors};
use tokio::sync::watch;

use crate::output;

/// Receives the keeper's reports about leases that have run out while their command is alive.
#[derive(Debug, Default)]
pub(crate) struct OutlivedReports(watch::Sender<OutlivedRecords>);

#[derive(Clone, Debug, Default)]
struct OutlivedRecords {
    /// The records that are not taken, because their commands are alive: the latest of each key.
    waited_for: BTreeMap<Key, Arc<Record>>,
    /// The record that was taken although its command is alive.
    taken: Option<(Key, Arc<Record>)>,
    granted: bool,
}

impl OutlivedReports {
    /// The next record that has run out and is still waited for, except those of these terms.
    pub(crate) async fn waited_for(&self, except: &[Nonce]) -> (Key, Arc<Record>) {
        let mut heard = self.0.subscribe();
        let next = |heard: &OutlivedRecords| {
            let mut all = heard.waited_for.iter();
            let new = all.find(|(_, record)| !except.contains(&record.term))?;
            Some((new.0.clone(), Arc::clone(new.1)))
        };
        match heard.wait_for(|heard| next(heard).is_some()).await.map(|heard| next(&heard)) {
            Ok(Some(next)) => next,
            _ => std::future::pending().await,
        }
    }

    /// The record that the latest grant took although its command is alive. Reports arrive from another thread, in
    /// order.
    pub(crate) async fn taken(&self) -> Option<(Key, Arc<Record>)> {
        let mut heard = self.0.subscribe();
        tokio::select! {
            heard = heard.wait_for(|heard| heard.granted) => heard.ok().and_then(|heard| heard.taken.clone()),
            () = BootClock::new().sleep_until(BootClock::new().now() + REPORT_MAX) => None,
        }
    }

    pub(crate) fn note(&self, report: &EventReport) {
        match &report.event {
            Event::Outlived { record, sighting: Sighting { tree_locked: true, .. }, taken } => {
                let (key, record) = (report.key.clone(), Arc::clone(record));
                self.0.send_modify(|heard| {
                    if *taken {
                        heard.taken = Some((key, record));
                    } else {
                        heard.waited_for.insert(key, record);
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
