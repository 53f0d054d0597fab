use tenure_store::Key;
use tokio::sync::mpsc;

use super::command::Command;
use super::recorder::{AttemptReport, EventReport};
use super::reporter::Report;
use crate::trust::breach::Breach;

/// Channel to a keeper that does not keep it running, for calls on the keeper's own runtime that belong to no lease.
#[derive(Clone, Debug)]
pub(crate) struct WeakKeeper(mpsc::WeakUnboundedSender<Command>);

impl WeakKeeper {
    pub(super) fn new(commands: &mpsc::UnboundedSender<Command>) -> Self {
        Self(commands.downgrade())
    }

    /// Passes the report of a call on.
    pub(crate) fn report_attempt(&self, report: AttemptReport) {
        self.send(Command::Report(Report::Attempt(report)));
    }

    /// Passes the report of an event on.
    pub(crate) fn report_event(&self, report: EventReport) {
        self.send(Command::Report(Report::Event(report)));
    }

    /// Reports an answer that a sound store does not give by itself, with the breach if it is the proof of one.
    pub(crate) fn suspect(&self, key: &Key, breach: Option<Breach>) {
        self.send(Command::Suspect { key: key.clone(), breach });
    }

    fn send(&self, command: Command) {
        // If the keeper has ended, no report is wanted any more.
        if let Some(commands) = self.0.upgrade() {
            let _ = commands.send(command);
        }
    }
}
