//! A recorder of refused writes.

use std::sync::Mutex;

use tenure::{AttemptReport, Event, EventReport, Recorder, Token};

/// Each refusal: the resource, the token that was offered, and the greatest one that the resource has seen.
#[derive(Debug, Default)]
pub(crate) struct Refusals(pub(crate) Mutex<Vec<(String, Option<Token>, Token)>>);

impl Recorder for Refusals {
    fn attempt(&self, _: &AttemptReport) {}

    fn event(&self, report: &EventReport) {
        if let Event::Fenced { resource, highest } = &report.event {
            self.0.lock().unwrap().push((resource.to_string(), report.token, *highest));
        }
    }
}
