use std::time::Duration;

use serde_json::json;
use tenure::Lease;
use tenure::clock::{BootClock, Clock, Instant};

use crate::duration;
use crate::output::plain;
use crate::progress::{Importance, Notice, ProgressOutput};
use crate::repetition::Repetition;

/// Messages about the renewals of a lease.
#[derive(Debug)]
pub(super) struct RenewalMessages<'a> {
    progress: &'a ProgressOutput,
    lease: &'a Lease,
    /// Set while renewals fail.
    failing: Option<Repetition>,
}

impl<'a> RenewalMessages<'a> {
    pub(super) fn new(progress: &'a ProgressOutput, lease: &'a Lease) -> Self {
        Self { progress, lease, failing: None }
    }

    /// The next time to report that renewals still fail.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        self.failing.as_ref().map(|repetition| repetition.due(now))
    }

    /// Reports a failed renewal, with its cause. The command is stopped after `stop_in`.
    pub(super) fn failed(&mut self, stop_in: Duration) {
        self.failing.get_or_insert_default().repeated(BootClock::new().now());
        let cause = self.lease.last_error();
        let cause = cause.as_deref().unwrap_or("the store did not answer in time");
        self.progress.say(&Notice {
            name: "renewal_failed",
            fields: json!({ "message": cause, "stop_in_ms": duration::millis_up(stop_in) }),
            sentence: format!(
                "renewal of {} failed: {}. The command is stopped in {} unless a renewal succeeds before then",
                self.lease.key().titled(),
                plain(cause),
                duration::at_least(stop_in)
            ),
            importance: Importance::News,
        });
    }

    /// Reports a renewal that succeeded.
    pub(super) fn succeeded(&mut self) {
        let again = self.failing.take().is_some();
        let left = self.lease.remaining();
        self.progress.say(&Notice {
            name: if again { "renewed_again" } else { "renewed" },
            fields: json!({ "left_ms": u64::try_from(left.as_millis()).unwrap_or(u64::MAX) }),
            sentence: format!(
                "{} is renewed{}, and held for {} more",
                self.lease.key().titled(),
                if again { " again" } else { "" },
                duration::at_least(left)
            ),
            importance: if again { Importance::News } else { Importance::Verbose },
        });
    }
}
