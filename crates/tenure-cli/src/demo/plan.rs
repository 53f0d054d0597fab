use std::ops::RangeInclusive;
use std::time::Duration;

use crate::args;
use crate::duration;
use crate::exit::Failure;

/// The durations of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DemoPlan {
    pub(super) ttl: Duration,
    pub(super) pause: Duration,
}

impl DemoPlan {
    pub(super) fn of(demo: &args::Demo) -> Result<Self, Failure> {
        check("--ttl", demo.ttl, TTL)?;
        check("--pause", demo.pause, PAUSE)?;
        Ok(Self { ttl: demo.ttl, pause: demo.pause })
    }

    /// True if the lease of a stopped worker runs out during the pause, so that the other worker takes over.
    pub(super) fn outlasts_the_lease(&self) -> bool {
        self.pause > self.ttl
    }
}

fn check(option: &str, span: Duration, range: RangeInclusive<Duration>) -> Result<(), Failure> {
    if range.contains(&span) {
        return Ok(());
    }
    let [span, least, most] = [span, *range.start(), *range.end()].map(duration::exact);
    Err(Failure::usage(format!(
        "{option} {span} is out of range: the demo takes {least} to {most}. See tenure demo --help"
    )))
}

/// A shorter one would be lost on a busy machine before the pause begins.
const TTL: RangeInclusive<Duration> = Duration::from_millis(500)..=Duration::from_secs(60);

/// Without a pause there is nothing to show.
const PAUSE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(300);
