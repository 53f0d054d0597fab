use std::sync::Arc;

use tenure::{AttemptReport, EventReport, Recorder};

use crate::outlived_reports::OutlivedReports;
use crate::store_errors::StoreErrors;

/// The reports of the keeper that a command turns into messages.
#[derive(Debug, Default)]
pub(crate) struct KeeperReports {
    pub(crate) outlived: OutlivedReports,
    pub(crate) errors: StoreErrors,
}

impl KeeperReports {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }
}

impl Recorder for KeeperReports {
    fn attempt(&self, report: &AttemptReport) {
        self.errors.note(report);
    }

    fn event(&self, report: &EventReport) {
        self.outlived.note(report);
    }
}
