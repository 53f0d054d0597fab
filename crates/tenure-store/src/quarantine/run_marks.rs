use std::sync::Arc;
use std::time::Duration;

/// Marks about the quarantine that participants keep on the server itself.
///
/// A restart may lose them, or bring back those of any earlier run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunMarks {
    /// The run to which `seen` belongs.
    pub run: Option<Arc<str>>,
    /// The run whose quarantine has passed.
    pub cleared: Option<Arc<str>>,
    /// First sightings of the run: the name of a clock, and the time on it.
    pub seen: Vec<(Arc<str>, Duration)>,
}

impl RunMarks {
    /// Marks of the run `run` without sightings, which is not cleared.
    pub fn of_run(run: impl Into<Arc<str>>) -> Self {
        Self { run: Some(run.into()), ..Self::default() }
    }

    /// Adds a sighting at this time on the clock of this name.
    #[must_use]
    pub fn with_sighting(mut self, clock: impl Into<Arc<str>>, at: Duration) -> Self {
        self.seen.push((clock.into(), at));
        self
    }

    /// Sets the run whose quarantine has passed.
    #[must_use]
    pub fn with_cleared(self, run: impl Into<Arc<str>>) -> Self {
        Self { cleared: Some(run.into()), ..self }
    }
}
