use tenure::{AttemptReport, EventReport, Recorder};

use super::maybe_panic;

/// Records nothing, and panics sometimes.
#[derive(Debug)]
pub(super) struct PanickyRecorder;

impl Recorder for PanickyRecorder {
    fn attempt(&self, _: &AttemptReport) {
        maybe_panic("a recorder");
    }

    fn event(&self, _: &EventReport) {
        maybe_panic("a recorder");
    }
}
